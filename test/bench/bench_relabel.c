// SPDX-License-Identifier: Apache-2.0
/* What relabelling costs: twenty rules as people write them over what is known of a container in
 * Kubernetes, and the longest that a value made for it can keep one match busy. For instructions:
 * valgrind --tool=callgrind build/test/bench/bench_relabel 1. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "relabel/pattern.h"
#include "relabel/relabel.h"

#define ROUNDS 7

DEFINE_CLEANUP(json_t *, json_freep, json_decref);
DEFINE_CLEANUP(struct relabel *, relabel_freep, relabel_free);
DEFINE_CLEANUP(struct pattern *, pattern_freep, pattern_free);

#define POD "__meta_kubernetes_pod_"
#define RULE(action, source, more) \
	"{\"action\":\"" action "\",\"source_labels\":[" source "]" more "}"

static const char
	rules
		[] =
			"[" RULE("drop", "\"namespace\"", ",\"regex\":\"kube-.*|monitoring|ingress-nginx\"") "," RULE(
				"drop", "\"" POD "annotation_example_com_profile\"",
				",\"regex\":\"false\"") "," RULE("keep",
								 "\"" POD "phase\"", ",\"regex\":\"|Running|Pending\"") "," RULE("replace", "\"" POD "label_team\"", ",\"target_label\":\"team\"") "," RULE("replace", "\"" POD "label_tier\"", ",\"regex\":\"(.+)\",\"target_label\":\"tier\"") "," RULE("replace", "\"" POD "label_app_kubernetes_io_version\"",
																																					  ",\"regex\":\"v?([0-9]+)\\\\.([0-9]+).*\",\"target_label\":\"version\","
																																					  "\"replacement\":\"$1.$2\"") "," RULE("replace",
																																										"\"namespace\",\"" POD "label_app\"", ",\"separator\":\"/\",\"target_label\":\"job\"") "," RULE("replace",
																																																						"\"" POD "container_image\"", ",\"regex\":\"(?:[^/]+/)*([^:@/]+)(?:[:@].*)?\",\"target_label\":\"image\"") "," RULE("replace",
																																																																				    "\"" POD
																																																																				    "controller_name\"",
																																																																				    ",\"regex\":\"(.+)-[0-9a-z]{8,10}\",\"target_label\":\"workload\"") "," RULE("lowercase", "\"team\"", ",\"target_label\":\"team\"") "," RULE("hashmod", "\"" POD "uid\"", ",\"target_label\":\"__shard\",\"modulus\":8") "," RULE("keep",
																																																																																																      "\"__shard\"",
																																																																																																      ",\"regex\":\"[0-7]\"") "," RULE("dropequal", "\"pod\"", ",\"target_label\":\"namespace\"") ","
																																																																																																												  "{\"action\":\"labelmap\",\"regex\":\"" POD
																																																																																																												  "label_(chart|release|zone)\"},"
																																																																																																												  "{\"action\":\"labelmap\",\"regex\":\"" POD
																																																																																																												  "annotation_example_com_(.+)\"},"
																																																																																																												  "{\"action\":\"labeldrop\",\"regex\":\"pod_template_hash|controller_revision_hash\"},"
																																																																																																												  "{\"target_label\":\"cluster\",\"replacement\":\"prod-1\"}," RULE("replace", "\"zone\"", ",\"regex\":\"\",\"target_label\":\"zone\",\"replacement\":\"-\"") "," RULE(
																																																																																																													  "replace",
																																																																																																													  "\"service_name\",\"tier\"",
																																																																																																													  ",\"regex\":\"(.+);(.+)\",\"target_label\":\"service_name\",\"replacement\":\"$1-$2\"") ","
																																																																																																																								  "{\"action\":\"labeldrop\",\"regex\":\"__tmp_.*\"}]";

static int fill(struct labels *l)
{
	static const char *const own[][2] = {
		{"namespace", "shop"},
		{"pod", "checkout-7d9c5b8f6d-x2x4k"},
		{"container", "server"},
		{"node", "ip-10-0-12-34"},
		{"service_name", "checkout"},
		{POD "uid", "5c07e1f4-93b3-4856-a77e-665e3b0b4fc7"},
		{POD "container_image", "registry.example/team/checkout:v1.27.3"},
		{POD "controller_name", "checkout-7d9c5b8f6d"},
		{POD "controller_kind", "ReplicaSet"},
		{POD "label_team", "Payments"},
		{POD "label_tier", "backend"},
		{POD "label_app", "checkout"},
		{POD "label_app_kubernetes_io_version", "v1.27.3"},
		{POD "label_pod_template_hash", "7d9c5b8f6d"},
		{POD "annotation_example_com_entity", "somebody"},
	};
	char name[80];
	int r = 0;

	for (size_t i = 0; i < array_size(own) && !r; i++)
		r = labels_set(l, own[i][0], own[i][1]);
	/* a pod's labels and annotations come twice; usual ones have fifteen of them */
	for (size_t i = 0; i < 30 && !r; i++) {
		snprintf(name, sizeof(name), POD "annotation%s_checksum_config_%zu",
			 i % 2 ? "present" : "", i / 2);
		r = labels_set(l, name, i % 2 ? "true" : "0a1b2c3d4e5f60718293a4b5c6d7e8f9");
	}
	return r;
}

static int apply(const struct relabel *relabel, const struct labels *meta)
{
	_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
	struct relabel_result result;
	int r = labels_copy(meta, &l);

	return r ? r : relabel_apply(relabel, &l, NULL, &result);
}

static int bench_rules(int n)
{
	_cleanup_(json_freep) json_t *json = json_loads(rules, 0, NULL);
	_cleanup_(relabel_freep) struct relabel *relabel = NULL;
	_cleanup_(labels_deinit) struct labels meta = {.max = LABELS_META_MAX};
	struct relabel_error error = {""};
	uint64_t best = UINT64_MAX, start = nsec_read(CLOCK_PROCESS_CPUTIME_ID);

	if (!json || relabel_new(json, &relabel, &error) || fill(&meta)) {
		printf("%s\n", error.text);
		return 1;
	}
	printf("%zu rules read in %.0f us\n", relabel_n_rules(relabel),
	       (double)(nsec_read(CLOCK_PROCESS_CPUTIME_ID) - start) / 1e3);
	for (int round = 0; round < ROUNDS; round++) {
		start = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
		for (int i = 0; i < n; i++)
			if (apply(relabel, &meta) != RELABEL_KEPT)
				return 1;
		start = nsec_read(CLOCK_PROCESS_CPUTIME_ID) - start;
		best = start < best ? start : best;
	}
	printf("applied to %zu labels in %.1f us\n", meta.n, (double)best / 1e3 / n);
	return 0;
}

static int bench_limit(void)
{
	static const char *const patterns[] = {"(a*)*b", "(a|aa)+b", "(.*a){12}b", ".*a.*b",
					       "(?i).*a.*a.*b"};
	char text[LABELS_VALUE_MAX + 1];

	memset(text, 'a', sizeof(text) - 1);
	memcpy(text + sizeof(text) - 3, "bc", 3);
	for (size_t i = 0; i < array_size(patterns); i++) {
		_cleanup_(pattern_freep) struct pattern *p = NULL;
		struct pattern_error error;
		uint64_t best = UINT64_MAX;
		int r = pattern_new(patterns[i], &p, &error);

		for (int round = 0; round < ROUNDS && r != PATTERN_REFUSED; round++) {
			uint64_t start = nsec_read(CLOCK_PROCESS_CPUTIME_ID);

			r = pattern_match(p, text, sizeof(text) - 1, NULL);
			start = nsec_read(CLOCK_PROCESS_CPUTIME_ID) - start;
			best = start < best ? start : best;
		}
		printf("%-16s %zu bytes: %s after %.1f ms\n", patterns[i], sizeof(text) - 1,
		       r == PATTERN_LIMIT ? "gave up" : "did not match", (double)best / 1e6);
	}
	return 0;
}

int main(int argc, char **argv)
{
	return bench_rules(argc > 1 ? atoi(argv[1]) : 2000) || bench_limit();
}
