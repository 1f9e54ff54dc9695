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
 */
#include "cpu/filter.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/strview.h"
#include "discovery/discovery.h"
#include "discovery/entity.h"
#include "profile/cgroup_sampling.h"

struct pass {
	struct cgroup_sampling *cgroup_sampling;
	unsigned int rate_hz;
	bool host; /* host processes are profiled */
	bool both; /* enter containers with full sampling, too */
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

static void note(struct pass *pass, int r)
{
	pass->full |= r == CGROUP_SAMPLING_FULL;
	if (r < 0)
		pass->result = r;
}

static void set(struct pass *pass, unsigned int rate_hz, enum hierarchy hierarchy, uint64_t id)
{
	note(pass,
	     cgroup_sampling_set(pass->cgroup_sampling, hierarchy, id, rate_hz, pass->rate_hz));
}

static void set_container(void *ctx, struct entity *entity, enum hierarchy hierarchy, uint64_t id)
{
	struct pass *pass = ctx;
	const unsigned int rate_hz =
		entity ? cpu_filter_rate(entity, pass->rate_hz) : pass->rate_hz;

	const struct entity *outer =
		entity && hierarchy == HIERARCHY_V1 ? entity_outer(entity) : NULL;

	if (outer && cpu_filter_rate(outer, pass->rate_hz) != rate_hz)
		note(pass,
		     cgroup_sampling_set_inner(pass->cgroup_sampling, id, rate_hz, pass->rate_hz));
	if (rate_hz < pass->rate_hz || (pass->both && hierarchy == HIERARCHY_V2))
		set(pass, rate_hz, hierarchy, id);
}

static void set_host(void *ctx, struct entity *entity, enum hierarchy hierarchy, uint64_t id)
{
	struct pass *pass = ctx;
	unsigned int rate_hz = 0;

	if (pass->host)
		rate_hz = entity ? cpu_filter_rate(entity, pass->rate_hz) : pass->rate_hz;
	if (rate_hz < pass->rate_hz)
		set(pass, rate_hz, hierarchy, id);
}

/* The kinds of entities with reduced sampling. Usually there are none, and the directories need not
 * be visited. */
static void find_kinds(struct discovery *discovery, unsigned int rate_hz, bool ret[ENTITY_KIND_MAX])
{
	const struct entity *entity = NULL;

	while ((entity = discovery_next_entity(discovery, entity)))
		ret[entity->kind] |= cpu_filter_rate(entity, rate_hz) < rate_hz;
}

int cpu_filter_apply(struct discovery *discovery, unsigned int rate_hz,
		     struct cgroup_sampling *cgroup_sampling)
{
	struct pass pass = {.cgroup_sampling = cgroup_sampling,
			    .rate_hz = rate_hz,
			    .host = discovery_has_host_processes(discovery)};
	bool kinds[ENTITY_KIND_MAX] = {false}, of_host;
	int r;

	find_kinds(discovery, rate_hz, kinds);
	of_host = kinds[ENTITY_UNIT] || !pass.host;
	pass.both = of_host && discovery_v1_controller(discovery) != CONTROLLER_NONE;
	cgroup_sampling_begin(cgroup_sampling);
	if (kinds[ENTITY_CONTAINER] || kinds[ENTITY_POD] || pass.both)
		discovery_for_each_cgroup(discovery, set_container, &pass);
	if (of_host && !pass.full)
		discovery_for_each_host_cgroup(discovery, set_host, &pass);
	cgroup_sampling_know(cgroup_sampling,
			     pass.both && !pass.full ? discovery_newest_cgroup(discovery) : 0);
	r = cgroup_sampling_end(cgroup_sampling);
	return pass.result ? pass.result : r;
}
