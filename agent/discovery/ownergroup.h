/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_OWNERGROUP_H
#define PODPROF_DISCOVERY_OWNERGROUP_H

/* The containers of one pod, or inside one container, are a group, which has a ceiling: so one of
 * them cannot take all the places there are for owners. */

#include "discovery/cgroup.h"

/* Containers of one group: people use 10, and a node in a container (kind) has 500. One more is
 * OWNER_GROUP_FULL. Reached: `podprof_owner_lookups_total{outcome="unknown_limit"}`. */
#define OWNER_GROUP_MAX 1024

struct owner_group;

enum owner_group_outcome {
	OWNER_GROUP_OK = 0,
	OWNER_GROUP_FULL,
};

/* One more in the group of @id. *@groups is NULL to start, and so it is when all have left; *@ret
 * is NULL for a container of no group. 0, OWNER_GROUP_FULL, -ENOMEM. */
int owner_group_join(struct owner_group **groups, const struct cgroup_id *id,
		     struct owner_group **ret);
/* NULL is fine. */
void owner_group_leave(struct owner_group **groups, struct owner_group *group);

#endif
