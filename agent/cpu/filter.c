// SPDX-License-Identifier: Apache-2.0
/*
 * Excluded entities are filtered in BPF before the stack walk: the table cgroup_sampling lists
 * their cgroup directories. A task reports its innermost cgroup, and a container may create any
 * number of cgroups, so the table has all directories of an excluded container. A new directory
 * enters the table within a second; until then its samples are walked, and folding drops them.
 *
 * If host processes are not profiled, the table also has all directories outside of containers:
 * some hundred on a node.
 *
 * On a node with both cgroup versions, the task of a container may be in a container's directory of
 * the unified tree and in a host directory of the other tree. The kernel looks up the unified tree
 * first. So if host directories are in the table, containers' directories of the unified tree are
 * too, with full sampling, and those of new containers count as such before they are in the table.
 * If the table has no room for all of these, no host directory is entered.
 *
 * An inner container on such a node may be in the outer container's directory of the unified tree.
 * If their rates differ, the inner container's directory of the other tree comes first.
 *
 * A host process outside of all units has no own directory: the samples are walked, and
 * folding drops them.
 *
 * A node may have thousands of directories, and each entry is a system call. So an update goes
 * through the entities, then through the directories, in slices of the event loop.
 */
#include "cpu/filter.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/strview.h"
#include "discovery/discovery.h"
#include "discovery/entity.h"
#include "profile/cgroup_sampling.h"

/* Parts of an update. */
enum phase {
	PHASE_NONE,
	PHASE_ENTITIES,	  /* which kinds have reduced sampling */
	PHASE_CONTAINERS, /* directories of containers and pods */
	PHASE_HOST,	  /* the other directories */
	PHASE_END,	  /* the directories that return to full sampling */
};

/**
 * struct cpu_filter
 * @entity: in PHASE_ENTITIES: the last one; owned
 * @kinds:  with reduced sampling. Usually there are none, and the directories need not be visited
 * @dirs:   in the two phases of directories
 * @both:   enter containers with full sampling, too
 * @newest: directory at the begin of the update: all up to it are visited
 * @full:   the map has no room
 */
struct cpu_filter {
	struct discovery *discovery;
	struct cgroup_sampling *cgroup_sampling;
	unsigned int rate_hz;
	enum phase phase;
	struct entity *entity;
	bool kinds[ENTITY_KIND_MAX];
	struct cgroup_listing *dirs;
	bool both;
	uint64_t newest;
	bool full;
	int result;
};

unsigned int cpu_filter_rate(const struct entity *entity, unsigned int rate_hz)
{
	const char *wish = labels_get(&entity->settings, CPU_FILTER_SETTING);
	uint64_t rate;

	if (entity->left_out)
		return 0;
	if (!wish || !strview_only_u64(strview_of(wish), 10, &rate) || rate > rate_hz)
		return rate_hz;
	return (unsigned int)rate;
}

static void note(struct cpu_filter *f, int r)
{
	f->full |= r == CGROUP_SAMPLING_FULL;
	if (r < 0)
		f->result = r;
}

static void set(struct cpu_filter *f, unsigned int rate_hz, enum hierarchy hierarchy, uint64_t id)
{
	note(f, cgroup_sampling_set(f->cgroup_sampling, hierarchy, id, rate_hz, f->rate_hz));
}

static void set_container(void *ctx, struct entity *entity, enum hierarchy hierarchy, uint64_t id)
{
	struct cpu_filter *f = ctx;
	const unsigned int rate_hz = entity ? cpu_filter_rate(entity, f->rate_hz) : f->rate_hz;

	const struct entity *outer =
		entity && hierarchy == HIERARCHY_V1 ? entity_outer(entity) : NULL;

	if (outer && cpu_filter_rate(outer, f->rate_hz) != rate_hz)
		note(f, cgroup_sampling_set_inner(f->cgroup_sampling, id, rate_hz, f->rate_hz));
	if (rate_hz < f->rate_hz || (f->both && hierarchy == HIERARCHY_V2))
		set(f, rate_hz, hierarchy, id);
}

static void set_host(void *ctx, struct entity *entity, enum hierarchy hierarchy, uint64_t id)
{
	struct cpu_filter *f = ctx;
	unsigned int rate_hz = 0;

	if (discovery_has_host_processes(f->discovery))
		rate_hz = entity ? cpu_filter_rate(entity, f->rate_hz) : f->rate_hz;
	if (rate_hz < f->rate_hz)
		set(f, rate_hz, hierarchy, id);
}

/* ---------------------------------------------------------------- an update */

static void begin(struct cpu_filter *f)
{
	for (enum entity_kind kind = 0; kind < ENTITY_KIND_MAX; kind++)
		f->kinds[kind] = false;
	f->newest = discovery_newest_cgroup(f->discovery);
	f->full = false;
	f->result = 0;
	f->phase = PHASE_ENTITIES;
	cgroup_sampling_begin(f->cgroup_sampling);
}

static bool is_of_host(const struct cpu_filter *f)
{
	return f->kinds[ENTITY_UNIT] || !discovery_has_host_processes(f->discovery);
}

/* Without memory the update ends, and all directories keep their share. 0 or -ENOMEM. */
static int list_dirs(struct cpu_filter *f, bool of_host, discovery_cgroup_fn fn)
{
	const int r = discovery_list_cgroups(f->discovery, of_host, fn, f, &f->dirs);

	if (r)
		f->phase = PHASE_NONE;
	return r;
}

static int begin_containers(struct cpu_filter *f)
{
	f->both = is_of_host(f) && discovery_v1_controller(f->discovery) != CONTROLLER_NONE;
	f->phase = PHASE_CONTAINERS;
	if (!f->kinds[ENTITY_CONTAINER] && !f->kinds[ENTITY_POD] && !f->both)
		return 0;
	return list_dirs(f, false, set_container);
}

static int begin_host(struct cpu_filter *f)
{
	f->phase = PHASE_HOST;
	return is_of_host(f) && !f->full ? list_dirs(f, true, set_host) : 0;
}

static void begin_end(struct cpu_filter *f)
{
	f->phase = PHASE_END;
	cgroup_sampling_know(f->cgroup_sampling, f->both && !f->full ? f->newest : 0);
}

/* The next entity. The reference keeps the one before in the list. False at the end. */
static bool next_entity(struct cpu_filter *f)
{
	struct entity *entity = discovery_next_entity(f->discovery, f->entity);

	if (entity) {
		entity_ref(entity);
		f->kinds[entity->kind] |= cpu_filter_rate(entity, f->rate_hz) < f->rate_hz;
	}
	entity_unref(f->entity);
	f->entity = entity;
	return entity;
}

/* False at the end. */
static bool next_dir(struct cpu_filter *f)
{
	if (f->dirs && cgroup_listing_step(f->dirs))
		return true;
	cgroup_listing_free(take_ptr(f->dirs));
	return false;
}

static int end_step(struct cpu_filter *f)
{
	const int r = cgroup_sampling_end_step(f->cgroup_sampling);

	if (r == CGROUP_SAMPLING_MORE)
		return CPU_FILTER_MORE;
	f->phase = PHASE_NONE;
	return f->result ? f->result : r;
}

int cpu_filter_step(struct cpu_filter *f)
{
	int r = 0;

	switch (f->phase) {
	case PHASE_NONE:
		begin(f);
		break;
	case PHASE_ENTITIES:
		if (!next_entity(f))
			r = begin_containers(f);
		break;
	case PHASE_CONTAINERS:
		if (!next_dir(f))
			r = begin_host(f);
		break;
	case PHASE_HOST:
		if (!next_dir(f))
			begin_end(f);
		break;
	case PHASE_END:
		return end_step(f);
	}
	return r ? r : CPU_FILTER_MORE;
}

int cpu_filter_new(struct discovery *discovery, unsigned int rate_hz,
		   struct cgroup_sampling *cgroup_sampling, struct cpu_filter **ret)
{
	struct cpu_filter *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->discovery = discovery;
	f->rate_hz = rate_hz;
	f->cgroup_sampling = cgroup_sampling;
	*ret = f;
	return 0;
}

void cpu_filter_free(struct cpu_filter *f)
{
	if (!f)
		return;
	entity_unref(f->entity);
	cgroup_listing_free(f->dirs);
	free(f);
}
