/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_ENTITY_GROUP_H
#define PODPROF_DISCOVERY_ENTITY_GROUP_H

/* The containers of one pod, or inside one container, are a group, which has a ceiling: so one of
 * them cannot take all the places there are for entities. */

#include "discovery/cgroup.h"

/* Containers of one group: people use 10, and a node in a container (kind) has 500. One more is
 * ENTITY_GROUP_FULL. Reached: `podprof_entity_lookups_total{outcome="unknown_limit"}`. */
#define ENTITY_GROUP_MAX 1024

struct entity_group;

enum entity_group_outcome {
	ENTITY_GROUP_OK = 0,
	ENTITY_GROUP_FULL,
};

/* One more in the group of @id. *@groups is NULL to start, and so it is when all have left; *@ret
 * is NULL for a container of no group. 0, ENTITY_GROUP_FULL, -ENOMEM. */
int entity_group_join(struct entity_group **groups, const struct cgroup_id *id,
		      struct entity_group **ret);
/* NULL is fine. */
void entity_group_leave(struct entity_group **groups, struct entity_group *group);

#endif
