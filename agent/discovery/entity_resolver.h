/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_ENTITY_RESOLVER_H
#define PODPROF_DISCOVERY_ENTITY_RESOLVER_H

/* Whose a cgroup directory is, and whose a process that is in no container. */

#include <stdint.h>

#include "discovery/cgroupdir.h"
#include "discovery/entity.h"
#include "discovery/hierarchy.h"
#include "discovery/pid.h"

struct cgroupfs;
struct root;

/* What it is told by; all borrowed. */
struct entity_resolver {
	const struct root *proc;
	struct cgroupfs *fs;
	struct entity_table *entities;
};

/* Gives each container's directory its entity, in @data. The context is the struct
 * entity_resolver. */
extern const struct cgroupdir_events entity_resolver_events;

/* Whose what runs in it is. Borrowed from the directory; NULL if it is in no container or pod. One
 * that found no room when the directory came is tried again. */
struct entity *entity_resolver_of_dir(struct entity_resolver *resolver, struct cgroupdir *dir);
/* The same, but NULL for a pod's own directory in which nothing was found to run yet. */
struct entity *entity_resolver_known(struct entity_resolver *resolver, struct cgroupdir *dir);

/* Of a directory in no container: its unit's entity, if there is one by now. Borrowed. */
struct entity *entity_resolver_unit_of_dir(struct entity_resolver *resolver,
					   const struct cgroupdir *dir);

/* The entity of a process in no container; the reference is the caller's. @cgroup: by enum
 * hierarchy, for where /proc does not tell any more; 0 where there is none. 0, ENTITY_TOO_MANY,
 * -ENOMEM. */
int entity_resolver_of_host(struct entity_resolver *resolver, const struct pid_id *pid,
			    const char *comm, const uint64_t cgroup[HIERARCHY_MAX],
			    struct entity **ret);

#endif
