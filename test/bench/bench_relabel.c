// SPDX-License-Identifier: Apache-2.0
/* The cost of relabelling: twenty typical rules over the metadata of a container in Kubernetes, and
 * the longest duration of one match with a hostile value. For instructions: valgrind
 * --tool=callgrind build/test/bench/bench_relabel 1. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "relabel/pattern.h"
#include "relabel/relabel.h"
#include "relabel/rule.h"
#include "support/figure.h"

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
	/* a pod's labels and annotations appear twice; typical pods have fifteen */
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
	figure((double)best / 1e3 / n, "us", "%zu labels", meta.n);
	return 0;
}

static char *repeated(const char *before, const char *piece, size_t n, const char *after)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PATTERN_TEXT_MAX);
	int r = buf_puts(&b, before);

	for (size_t i = 0; i < n && !r; i++)
		r = buf_puts(&b, piece);
	if (!r)
		r = buf_puts(&b, after);
	return r ? NULL : buf_take(&b);
}

/* The longest match: a text of @letters as long as PATTERN_WORK_MAX allows and source labels make.
 */
static int bench_match(const char *text, const char *letters)
{
	_cleanup_(pattern_freep) struct pattern *p = NULL;
	static char value[RULE_SOURCES_MAX * LABELS_VALUE_MAX];
	struct pattern_match m;
	struct pattern_error error = {""};
	uint64_t start = nsec_read(CLOCK_PROCESS_CPUTIME_ID), read_ns, best = UINT64_MAX, first = 0;
	size_t n;
	int r = pattern_new(text, &p, &error);

	read_ns = nsec_read(CLOCK_PROCESS_CPUTIME_ID) - start;
	if (r) {
		printf("%.24s: %s\n", text, error.text);
		return 1;
	}
	n = PATTERN_WORK_MAX / pattern_work(p, 1);
	if (n > sizeof(value))
		n = sizeof(value);
	srand(1);
	for (size_t i = 0; i < n; i++)
		value[i] = letters[(size_t)rand() % strlen(letters)];
	for (int round = 0; round < ROUNDS; round++) {
		start = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
		r = pattern_match(p, value, n, &m);
		start = nsec_read(CLOCK_PROCESS_CPUTIME_ID) - start;
		first = round ? first : start;
		best = start < best ? start : best;
	}
	printf("%-24.24s read in %.1f ms; %5zu bytes of %-2s %s in %.1f ms, then %.1f ms\n", text,
	       (double)read_ns / 1e6, n, letters, r ? "do not match" : "match", (double)first / 1e6,
	       (double)best / 1e6);
	return 0;
}

static int bench_matches(void)
{
	static const struct {
		const char *before, *piece, *after, *letters;
		size_t n;
	} rows[] = {
		{"(a*)*b", "", "", "a", 0},
		{".*a.*b", "", "", "a", 0},
		{"", ".*a", "c", "ab", 1000},
		{"", "(?:a*b*)*", "c?", "ab", 1000},
		{"", "a?", "", "a", PATTERN_TEXT_MAX / 2},
		{"", "(a|b)*", "c", "ab", PATTERN_GROUPS_MAX},
		{"((((((((((((((((((((((((((((((((a|b", ")*", "", "ab", 32},
		/* more states than the DFA has room for, each made and dropped */
		{"(?:a|b)*a(?:a|b){1000}", "", "", "a", 0},
		{"(?:a|b)*a(?:a|b){1000}", "", "", "ab", 0},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(freep) char *text =
			repeated(rows[i].before, rows[i].piece, rows[i].n, rows[i].after);

		if (!text || bench_match(text, rows[i].letters))
			return 1;
	}
	return 0;
}

/* The largest number of rules, over all labels of a pod. */
static int bench_all(const char *rule)
{
	_cleanup_(freep) char *text =
		repeated("[{\"target_label\":\"a\"}", rule, RELABEL_RULES_MAX - 1, "]");
	_cleanup_(json_freep) json_t *json = text ? json_loads(text, 0, NULL) : NULL;
	_cleanup_(relabel_freep) struct relabel *relabel = NULL;
	_cleanup_(labels_deinit) struct labels facts = {.max = LABELS_META_MAX};
	struct relabel_error error = {""};
	struct relabel_result result;
	uint64_t start;
	char name[300];
	int r = 0;

	if (!json || relabel_new(json, &relabel, &error))
		return 1;
	for (int i = 0; i < 512 && !r; i++) {
		snprintf(name, sizeof(name), POD "label_%0250d", i);
		r = labels_set(&facts, name, "v");
	}
	if (r)
		return 1;
	start = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
	r = relabel_apply(relabel, &facts, NULL, &result);
	start = nsec_read(CLOCK_PROCESS_CPUTIME_ID) - start;
	printf("%zu rules %s over %zu names: %s in %.1f ms\n", relabel_n_rules(relabel), rule,
	       facts.n, relabel_outcome_name(r), (double)start / 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	return bench_rules(argc > 1 ? atoi(argv[1]) : 2000) || bench_matches() ||
	       bench_all(",{\"action\":\"labelmap\",\"regex\":\"__tmp_(.*)\"}") ||
	       bench_all(",{\"action\":\"labelmap\",\"regex\":\".*0.*0l(.*)\"}") ||
	       bench_all(",{\"action\":\"labelmap\",\"regex\":\".*0.{200}l.*\"}");
}
