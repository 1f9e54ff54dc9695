// SPDX-License-Identifier: Apache-2.0
#include "discovery/entity_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* The name begins with a letter for the kind of id, because a pod's and a container's could be
 * equal. */
struct entity_group {
	size_t n;
	UT_hash_handle hh;
	char name[CGROUP_ID_MAX + 1];
};

/* "" for a container without a group. A container whose pod is found later stays without. */
static void group_name(const struct cgroup_id *id, char ret[CGROUP_ID_MAX + 1])
{
	if (id->outer_id[0])
		snprintf(ret, CGROUP_ID_MAX + 1, "o%s", id->outer_id);
	else if (id->pod_uid[0])
		snprintf(ret, CGROUP_ID_MAX + 1, "p%s", id->pod_uid);
	else
		ret[0] = '\0';
}

static int group_new(struct entity_group **groups, const char *name, struct entity_group **ret)
{
	struct entity_group *group = calloc(1, sizeof(*group));
	bool hash_oom = false;

	if (!group)
		return -ENOMEM;
	memcpy(group->name, name, sizeof(group->name));
	HASH_ADD(hh, *groups, name[0], strlen(group->name), group);
	if (hash_oom) {
		free(group);
		return -ENOMEM;
	}
	*ret = group;
	return 0;
}

int entity_group_join(struct entity_group **groups, const struct cgroup_id *id,
		      struct entity_group **ret)
{
	char name[CGROUP_ID_MAX + 1] = {0};
	struct entity_group *group = NULL;

	group_name(id, name);
	if (name[0]) {
		HASH_FIND(hh, *groups, name, strlen(name), group);
		if (group && group->n >= ENTITY_GROUP_MAX)
			return ENTITY_GROUP_FULL;
		if (!group && group_new(groups, name, &group))
			return -ENOMEM;
		group->n++;
	}
	*ret = group;
	return 0;
}

void entity_group_leave(struct entity_group **groups, struct entity_group *group)
{
	if (!group || --group->n)
		return;
	HASH_DELETE(hh, *groups, group);
	free(group);
}
