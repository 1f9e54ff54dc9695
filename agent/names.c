// SPDX-License-Identifier: Apache-2.0
/*
 * Once a second all containers are gone through, some hundred, and each is looked up in what is
 * known, by two looks into hash tables; where that has changed they are named again. For as long as
 * one that is alive and in a pod has no name the kubelet is asked again, at once while it is young,
 * since it has to learn of a container's id first, and rarely when it is old: a sandbox never gets
 * a name of its own, and its pod's is enough.
 */
#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/labels.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "discovery/discovery.h"
#include "metadata/workload.h"

#define NAMES_PERIOD_NS	  NSEC_PER_SEC
/* A container that has no name by now is one of those that get none. */
#define NAMES_YOUNG_NS	  (30 * NSEC_PER_SEC)
#define NAMES_PREFIX	  "podprof.io/"
/* Bytes of a setting's name with its NUL. */
#define NAMES_SETTING_MAX 64

struct names {
	struct discovery *discovery;
	struct metadata *metadata;
	struct loop_source *timer;
	uint64_t version; /* of the metadata that named owners are named by */
	size_t n_containers[METADATA_OUTCOME_MAX]; /* that live, as the last look left them */
};

/* The pod's annotations podprof.io/go-heap and so on, as "go_heap". */
static int read_settings(const struct pod *pod, struct labels *ret)
{
	const size_t prefix = strlen(NAMES_PREFIX);
	char name[NAMES_SETTING_MAX];

	for (size_t i = 0; i < pod->annotations.n; i++) {
		const struct pod_pair *pair = &pod->annotations.items[i];
		size_t n = strlen(pair->key);

		if (strncmp(pair->key, NAMES_PREFIX, prefix) != 0 || n - prefix >= sizeof(name))
			continue;
		for (size_t k = 0; k <= n - prefix; k++)
			name[k] = pair->key[prefix + k] == '-' ? '_' : pair->key[prefix + k];
		/* what is no name, or one too many, is no setting */
		if (labels_set(ret, name, pair->value) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

static int name_owner(struct owner *owner, const struct metadata_names *known)
{
	_cleanup_(labels_deinit) struct labels settings = {0};
	struct workload workload;
	struct owner_names names = {
		.namespace = known->pod->namespace,
		.pod = known->pod->name,
		.container = known->container ? known->container->name : "",
	};
	int r = read_settings(known->pod, &settings);

	workload_of_pod(known->pod, &workload);
	names.service = workload_service(known->pod, &workload);
	return r ? r : owner_set_names(owner, &names, &settings);
}

/* A list may lack, for a moment, what an earlier one had: the kubelet's, when it has just started.
 */
static bool knows_more(const struct owner *owner, enum metadata_outcome outcome)
{
	return outcome == METADATA_POD && owner->named && labels_get(&owner->labels, "container");
}

/* Whether it may yet get a name that it has not. */
static bool is_wanting(const struct owner *owner, enum metadata_outcome outcome)
{
	return outcome != METADATA_OK && owner->id.pod_uid[0] &&
	       nsec_wall() < owner->first_seen_ns + NAMES_YOUNG_NS;
}

static void look(void *ctx)
{
	struct names *names = ctx;
	const struct owner *next = NULL;
	bool changed = names->version != metadata_version(names->metadata), wanting = false;

	memset(names->n_containers, 0, sizeof(names->n_containers));
	while ((next = discovery_next_owner(names->discovery, next))) {
		struct owner *owner = (struct owner *)next;
		enum metadata_outcome outcome;
		struct metadata_names known;

		if (owner->kind != OWNER_CONTAINER || !owner_alive(owner))
			continue;
		outcome = metadata_find(names->metadata, owner->id.container_id, owner->id.pod_uid,
					&known);
		if ((outcome == METADATA_OK || outcome == METADATA_POD) &&
		    (changed || !owner->named) && !knows_more(owner, outcome))
			(void)name_owner(owner, &known); /* without memory it is tried again */
		wanting = wanting || is_wanting(owner, outcome);
		names->n_containers[outcome]++;
	}
	names->version = metadata_version(names->metadata);
	if (wanting)
		metadata_look(names->metadata);
}

DEFINE_CLEANUP(struct names *, names_freep, names_free);

int names_new(const struct names_opts *opts, struct names **ret)
{
	_cleanup_(names_freep) struct names *names = calloc(1, sizeof(*names));
	struct metadata_opts metadata = opts->metadata;
	int r;

	if (!names)
		return -ENOMEM;
	names->discovery = opts->discovery;
	metadata.loop = opts->loop;
	metadata.source = opts->source;
	metadata.ctx = opts->ctx;
	r = metadata_new(&metadata, &names->metadata);
	if (!r)
		r = loop_add_timer(opts->loop, look, names, &names->timer);
	if (!r && metadata_active(names->metadata))
		r = loop_arm(names->timer, NAMES_PERIOD_NS, NAMES_PERIOD_NS);
	if (r)
		return r;
	*ret = take_ptr(names);
	return 0;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	metadata_free(names->metadata);
	loop_remove(names->timer);
	free(names);
}

const char *names_setting(const struct names *names, const struct owner *owner, const char *setting,
			  bool *ret_known)
{
	bool has_pod = owner->kind == OWNER_CONTAINER && owner->id.pod_uid[0];

	*ret_known = owner->named || !has_pod || !metadata_active(names->metadata);
	return labels_get(&owner->settings, setting);
}

void names_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc containers = {
		"podprof_metadata_containers", METRIC_GAUGE,
		"Containers by what Kubernetes has told of their names.", NULL};
	const struct names *names = ctx;

	metadata_collect(names->metadata, sink);
	metric_family(sink, &containers);
	for (int i = 0; i < METADATA_OUTCOME_MAX; i++)
		metric_u64(sink, names->n_containers[i],
			   &(struct metric_label){"outcome", metadata_outcome_name(i)}, 1);
}
