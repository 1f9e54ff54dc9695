// SPDX-License-Identifier: Apache-2.0
/*
 * Discovery tells of each owner as it makes it. From then on all are gone through once a second:
 * each is looked up in what is known, by two looks into hash tables, and where that is not what its
 * labels were made of (its stamp) it is named again. For as long as one that is alive and in a pod
 * has no name the kubelet is asked again, at once while it is young, since it has to learn of a
 * container's id first, and rarely when it is old: a sandbox never gets a name of its own, and its
 * pod's is enough.
 */
#include "naming/naming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/labels.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "discovery/discovery.h"
#include "naming/names.h"

#define NAMING_PERIOD_NS NSEC_PER_SEC
/* A container that has no name by now is one of those that get none: it is no reason to ask. */
#define NAMING_YOUNG_NS	 (30 * NSEC_PER_SEC)

/* How the wait for a container's names has ended. */
enum waited {
	WAITED_OK,
	WAITED_POD,	    /* its pod's are known: a sandbox, or it takes longer */
	WAITED_NO_MATCH,    /* its cgroup's path names no pod, and nobody knows its id */
	WAITED_UNKNOWN_ID,  /* it does, and those who know pods do not know it */
	WAITED_UNREACHABLE, /* nobody answers */
	WAITED_DENIED,	    /* nobody that was asked will tell */
	WAITED_GONE,	    /* it had ended before anybody knew it */
	WAITED_MAX,
};

static const char *const waited_names[WAITED_MAX] = {
	[WAITED_OK] = "ok",
	[WAITED_POD] = "pod",
	[WAITED_NO_MATCH] = "no_match",
	[WAITED_UNKNOWN_ID] = "unknown_id",
	[WAITED_UNREACHABLE] = "unreachable",
	[WAITED_DENIED] = "denied",
	[WAITED_GONE] = "gone",
};

struct naming {
	struct discovery *discovery;
	struct metadata *metadata;
	struct loop_source *timer;
	size_t n_containers[METADATA_OUTCOME_MAX]; /* that live, as the last look left them */
	uint64_t n_waited[WAITED_MAX];
};

/* What labels are made of, as a number that is never 0: the pod as it was then, and whether the
 * container itself was known. */
#define STAMP_CONTAINER 2u

static uint64_t stamp_of(const struct names *names)
{
	uint64_t pod = names_known(names) ? names->known.pod->version : 0;

	return pod * 4 + (names->outcome == METADATA_OK ? STAMP_CONTAINER : 0) + 1;
}

static bool has_own_name(const struct owner *owner)
{
	return owner->stamp & STAMP_CONTAINER;
}

static bool younger(const struct owner *owner, uint64_t age_ns)
{
	return nsec_wall() < owner->first_seen_ns + age_ns;
}

/* Whether it may yet get a name of its own. */
static bool is_wanting(const struct naming *naming, const struct owner *owner, uint64_t age_ns)
{
	return owner->kind == OWNER_CONTAINER && !has_own_name(owner) &&
	       metadata_active(naming->metadata) && younger(owner, age_ns);
}

/* A list may lack, for a moment, what an earlier one had: the kubelet's, when it has just started.
 * And of what has gone the names stay. */
static bool knows_more(const struct owner *owner, const struct names *names)
{
	return names->outcome == METADATA_POD ? has_own_name(owner)
					      : owner->named && !names_known(names);
}

/* Without memory the stamp stays, and it is tried again. */
static void label(struct owner *owner, const struct names *names)
{
	_cleanup_(labels_deinit) struct labels labels = {0}, settings = {0};

	if (names_labels(names, owner, &labels) || names_settings(names, &settings))
		return;
	owner_set_labels(owner, &labels, &settings);
	owner->named = names_known(names);
	owner->stamp = stamp_of(names);
}

static enum waited waited(const struct owner *owner, const struct names *names)
{
	if (has_own_name(owner))
		return WAITED_OK;
	if (owner->named)
		return WAITED_POD;
	if (!owner_alive(owner))
		return WAITED_GONE;
	if (names->outcome == METADATA_DENIED)
		return WAITED_DENIED;
	if (names->outcome == METADATA_UNREACHABLE)
		return WAITED_UNREACHABLE;
	return owner->id.pod_uid[0] ? WAITED_UNKNOWN_ID : WAITED_NO_MATCH;
}

static void name_owner(struct naming *naming, struct owner *owner, const struct names *names)
{
	bool was_pending = owner->pending;

	if (owner->stamp != stamp_of(names) && !knows_more(owner, names))
		label(owner, names);
	owner->pending = is_wanting(naming, owner, OWNER_PENDING_NS);
	if (was_pending && !owner->pending)
		naming->n_waited[waited(owner, names)]++;
}

static void on_owner(void *ctx, struct owner *owner)
{
	struct naming *naming = ctx;
	struct names names;

	names_find(naming->metadata, owner, &names);
	name_owner(naming, owner, &names);
}

static void look(void *ctx)
{
	struct naming *naming = ctx;
	struct owner *owner = NULL;
	bool wanting = false;

	memset(naming->n_containers, 0, sizeof(naming->n_containers));
	while ((owner = discovery_next_owner(naming->discovery, owner))) {
		struct names names;

		names_find(naming->metadata, owner, &names);
		name_owner(naming, owner, &names);
		if (owner->kind != OWNER_CONTAINER || !owner_alive(owner))
			continue;
		wanting = wanting ||
			  (owner->id.pod_uid[0] && is_wanting(naming, owner, NAMING_YOUNG_NS));
		naming->n_containers[names.outcome]++;
	}
	if (wanting)
		metadata_look(naming->metadata);
}

DEFINE_CLEANUP(struct naming *, naming_freep, naming_free);

int naming_new(const struct naming_opts *opts, struct naming **ret)
{
	_cleanup_(naming_freep) struct naming *naming = calloc(1, sizeof(*naming));
	struct metadata_opts metadata = opts->metadata;
	int r;

	if (!naming)
		return -ENOMEM;
	metadata.loop = opts->loop;
	metadata.source = opts->source;
	metadata.ctx = opts->ctx;
	r = metadata_new(&metadata, &naming->metadata);
	if (!r)
		r = loop_add_timer(opts->loop, look, naming, &naming->timer);
	if (!r)
		r = loop_arm(naming->timer, NAMING_PERIOD_NS, NAMING_PERIOD_NS);
	if (r)
		return r;
	naming->discovery = opts->discovery;
	discovery_listen(naming->discovery, on_owner, naming);
	*ret = take_ptr(naming);
	return 0;
}

void naming_free(struct naming *naming)
{
	if (!naming)
		return;
	if (naming->discovery)
		discovery_listen(naming->discovery, NULL, NULL);
	metadata_free(naming->metadata);
	loop_remove(naming->timer);
	free(naming);
}

const char *naming_setting(const struct naming *naming, const struct owner *owner,
			   const char *setting, bool *ret_known)
{
	bool has_pod = owner->kind == OWNER_CONTAINER && owner->id.pod_uid[0];

	*ret_known = owner->named || !has_pod || !metadata_active(naming->metadata);
	return labels_get(&owner->settings, setting);
}

void naming_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc containers = {
		"podprof_metadata_containers", METRIC_GAUGE,
		"Containers by what Kubernetes has told of their names.", NULL};
	static const struct metric_family_desc waits = {
		"podprof_metadata_waits", METRIC_COUNTER,
		"Containers whose names were waited for, by how that has ended.", NULL};
	const struct naming *naming = ctx;

	metadata_collect(naming->metadata, sink);
	metric_by_name(sink, &waits, "outcome", naming->n_waited, waited_names, WAITED_MAX);
	metric_family(sink, &containers);
	for (int i = 0; i < METADATA_OUTCOME_MAX; i++)
		metric_u64(sink, naming->n_containers[i],
			   &(struct metric_label){"outcome", metadata_outcome_name(i)}, 1);
}
