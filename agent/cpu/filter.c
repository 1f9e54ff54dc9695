// SPDX-License-Identifier: Apache-2.0
/*
 * An entity that is not profiled is to cost nothing, so its directories are in the kernel's table,
 * which the programs look into before they walk a stack. All of its directories: a container may
 * make any number of its own, and a task's is the innermost. A directory that has just been made is
 * in the table a second later; what is sampled until then is dropped when it is folded.
 *
 * In the table are, too, where the host's own processes are not profiled, all directories that are
 * in no container: a node has some hundred of them, and the processes that make it run.
 *
 * On nodes with both versions of cgroups a container may be in the unified tree alone, and its
 * tasks in a directory of the host's in the other. So where directories of the host are in the
 * table, those of containers in the unified tree are, too, which is looked at first: as taken. If
 * there is no room for all of them, none of the host's gets in.
 *
 * A unit of the host has its directories. A program in no unit has none: its samples are walked and
 * then dropped.
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
	bool both; /* containers are told, too, that are as usual */
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

static void set(struct pass *pass, unsigned int rate_hz, enum hierarchy hierarchy, uint64_t id)
{
	int r = cgroup_sampling_set(pass->cgroup_sampling, hierarchy, id, rate_hz, pass->rate_hz);

	pass->full |= r == CGROUP_SAMPLING_FULL;
	if (r < 0)
		pass->result = r;
}

static void set_container(void *ctx, struct entity *entity, enum hierarchy hierarchy, uint64_t id)
{
	struct pass *pass = ctx;
	const unsigned int rate_hz =
		entity ? cpu_filter_rate(entity, pass->rate_hz) : pass->rate_hz;

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

/* The kinds of entities that are not sampled in full: usually none, and then there is nothing to
 * look for. */
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
	r = cgroup_sampling_end(cgroup_sampling);
	return pass.result ? pass.result : r;
}
