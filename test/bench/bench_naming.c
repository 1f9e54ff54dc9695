// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of labelling an entity: of a pod with 20 labels and 20 annotations, without rules, with
 * two selection patterns, and with five relabelling rules. Each container is labelled once, and
 * again after a change of its pod; a pass over unchanged entities consists of hash table lookups.
 * The lowest of five rounds; "valgrind --tool=callgrind" counts instructions.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "discovery/entity.h"
#include "metadata/pod.h"
#include "naming/labelling.h"
#include "naming/names.h"
#include "relabel/pattern.h"
#include "relabel/relabel.h"
#include "support/figure.h"

#define ROUNDS 5
#define TIMES  2000

static const char rules[] =
	"[{\"action\":\"drop\",\"source_labels\":[\"namespace\"],\"regex\":\"kube-.*\"},"
	"{\"source_labels\":[\"__meta_kubernetes_pod_label_key_3\"],\"target_label\":\"team\"},"
	"{\"action\":\"labelmap\",\"regex\":\"__meta_kubernetes_pod_label_(key_1.*)\"},"
	"{\"action\":\"labeldrop\",\"regex\":\"key_1[0-4]\"},"
	"{\"action\":\"lowercase\",\"source_labels\":[\"pod\"],\"target_label\":\"pod\"}]";

static struct pod *make_pod(void)
{
	json_t *pairs = json_object(), *object;
	struct pod *pod = NULL;
	char key[32];

	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "key/%d", i);
		json_object_set_new(pairs, key, json_string("a value of some length"));
	}
	object = json_pack("{s:{s:s, s:s, s:s, s:O, s:o}}", "metadata", "uid", "u", "namespace",
			   "shop", "name", "web-5d4f8c7b9-x2x4k", "labels", pairs, "annotations",
			   pairs);
	if (!object || pod_of_json(object, &pod) ||
	    pod_add_container(pod, POD_CONTAINER_ORDINARY, "web", "id", "image"))
		exit(1);
	json_decref(object);
	return pod;
}

static void run(const char *what, const struct naming_settings *settings, const struct names *names,
		const struct entity *entity)
{
	_cleanup_(labelling_deinit) struct labelling labelling = {0};
	struct pattern_error error;
	uint64_t best = UINT64_MAX;
	size_t n_labels = 0;

	if (labelling_init(settings, &labelling, &error))
		exit(1);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = nsec_monotonic(), took;

		for (int i = 0; i < TIMES; i++) {
			_cleanup_(labelled_deinit) struct labelled is = {0};

			if (labelling_apply(&labelling, names, entity, true, false, &is))
				exit(1);
			n_labels = is.labels.n;
		}
		took = nsec_monotonic() - start;
		best = took < best ? took : best;
	}
	printf("%-24s %6.1f us an entity, %zu labels\n", what, (double)best / TIMES / 1e3,
	       n_labels);
	figure((double)best / TIMES / 1e3, "us", "%s", what);
}

int main(void)
{
	static const char *const patterns[] = {"^kube-", "/proxy$"};
	struct cgroup_id id = {.kind = CGROUP_KIND_CONTAINER, .container_id = "id"};
	struct names names = {.outcome = METADATA_OK};
	struct naming_settings settings = {0};
	struct relabel_error error;
	struct entity_table *entities;
	struct relabel *relabel;
	struct entity *entity;
	json_t *json = json_loads(rules, 0, NULL);

	if (entity_table_new("node", &entities) || entity_container(entities, &id, &entity) ||
	    relabel_new(json, &relabel, &error))
		return 1;
	names.known.pod = make_pod();
	names.known.container = names.known.pod->containers;
	run("names alone", &settings, &names, entity);
	settings.ignore = patterns;
	settings.n_ignore = 2;
	run("and two --ignore", &settings, &names, entity);
	settings.relabel = relabel;
	run("and five rules", &settings, &names, entity);
	pod_free((struct pod *)names.known.pod);
	entity_unref(entity);
	entity_table_free(entities);
	relabel_free(relabel);
	json_decref(json);
	return 0;
}
