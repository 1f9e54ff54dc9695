// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "discovery/cgroup.h"
#include "discovery/unit.h"

/* For any text the strings end. A container has an id, a pod has a UID, and nothing else has
 * either. */
static void check(const struct cgroup_id *id)
{
	if (strnlen(id->container_id, CGROUP_ID_MAX) == CGROUP_ID_MAX ||
	    strnlen(id->outer_id, CGROUP_ID_MAX) == CGROUP_ID_MAX ||
	    strnlen(id->pod_uid, CGROUP_UID_MAX) == CGROUP_UID_MAX)
		abort();
	if (cgroup_in_container(id->kind) != (id->container_id[0] != '\0'))
		abort();
	if (id->kind == CGROUP_KIND_POD && id->pod_uid[0] == '\0')
		abort();
	for (const char *p = id->container_id; *p; p++)
		if (*p <= ' ' || *p > '~')
			abort();
}

static bool is_inside(struct strview part, struct strview t)
{
	return part.p >= t.p && part.end <= t.end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strview t = strview_of_bytes((const char *)data, size);
	struct unit unit;
	struct cgroup_id id;

	cgroup_parse(t, &id);
	check(&id);
	cgroup_parse_path(t, &id);
	check(&id);
	cgroup_parse_proc(t, &id);
	check(&id);
	if (unit_of_proc(t, &unit) && (strview_empty(&unit.name) || !is_inside(unit.name, t) ||
				       (!strview_empty(&unit.slice) && !is_inside(unit.slice, t))))
		abort();
	return 0;
}
