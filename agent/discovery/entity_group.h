/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_ENTITY_GROUP_H
#define PODPROF_DISCOVERY_ENTITY_GROUP_H

/* A group is the containers of one pod, or all containers inside one container. Its ceiling keeps a
 * single pod or container from filling the entity table. */

#include "discovery/cgroup.h"

/* Containers of one group: usual groups have 10, a node in a container (kind) 500. A larger group
 * is refused with ENTITY_GROUP_FULL. Reached:
 * `podprof_entity_lookups_total{outcome="unknown_limit"}`. */
#define ENTITY_GROUP_MAX 1024

struct entity_group;

enum entity_group_outcome {
	ENTITY_GROUP_OK = 0,
	ENTITY_GROUP_FULL,
};

/* Adds one container to the group of @id. *@groups is NULL at first and whenever no group is left;
 * *@ret is NULL for a container of no group. 0, ENTITY_GROUP_FULL, -ENOMEM. */
int entity_group_join(struct entity_group **groups, const struct cgroup_id *id,
		      struct entity_group **ret);
/* NULL is allowed. */
void entity_group_leave(struct entity_group **groups, struct entity_group *group);

#endif
