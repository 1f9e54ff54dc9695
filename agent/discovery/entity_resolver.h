/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_ENTITY_RESOLVER_H
#define PODPROF_DISCOVERY_ENTITY_RESOLVER_H

/* Finds the entity of a cgroup directory, and of a process outside containers. */

#include <stdint.h>

#include "discovery/cgroupdir.h"
#include "discovery/entity.h"
#include "discovery/hierarchy.h"
#include "discovery/pid.h"

struct cgroupfs;
struct root;

/* The sources of the answers; all borrowed. */
struct entity_resolver {
	const struct root *proc;
	struct cgroupfs *fs;
	struct entity_table *entities;
};

/* Events that set the entity of each container's directory in @data. Their context is the struct
 * entity_resolver. */
extern const struct cgroupdir_events entity_resolver_events;

/* The entity of the processes in a directory. Borrowed from the directory; NULL outside containers
 * and pods. A directory that found no room in the table is tried again. */
struct entity *entity_resolver_of_dir(struct entity_resolver *resolver, struct cgroupdir *dir);
/* The same, but NULL for a pod's own directory without known processes. */
struct entity *entity_resolver_known(struct entity_resolver *resolver, struct cgroupdir *dir);

/* For a directory outside containers: the existing entity of its unit, or NULL. Borrowed. */
struct entity *entity_resolver_unit_of_dir(struct entity_resolver *resolver,
					   const struct cgroupdir *dir);

/* The entity of a process outside containers. @cgroup: ids by enum hierarchy, a fallback for an
 * ended process; 0 for none. *@ret: an owned reference. 0, ENTITY_TOO_MANY, -ENOMEM. */
int entity_resolver_of_host(struct entity_resolver *resolver, const struct pid_id *pid,
			    const char *comm, const uint64_t cgroup[HIERARCHY_MAX],
			    struct entity **ret);

#endif
