/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_OWNERSHIP_H
#define PODPROF_DISCOVERY_OWNERSHIP_H

/* Whose a cgroup directory is, and whose a process that is in no container. */

#include <stdint.h>

#include "discovery/cgroupdir.h"
#include "discovery/hierarchy.h"
#include "discovery/owner.h"
#include "discovery/pid.h"

struct cgroupfs;
struct root;

/* What it is told by; all borrowed. */
struct ownership {
	const struct root *proc;
	struct cgroupfs *fs;
	struct owner_table *owners;
};

/* Gives each container's directory its owner, in @data. The context is the struct ownership. */
extern const struct cgroupdir_events ownership_events;

/* Whose what runs in it is. Borrowed from the directory; NULL if it is in no container or pod. One
 * that found no room when the directory came is tried again. */
struct owner *ownership_of_dir(struct ownership *own, struct cgroupdir *dir);
/* The same, but NULL for a pod's own directory in which nothing was found to run yet. */
struct owner *ownership_known(struct ownership *own, struct cgroupdir *dir);

/* Of a directory in no container: its unit's owner, if there is one by now. Borrowed. */
struct owner *ownership_unit_of_dir(struct ownership *own, const struct cgroupdir *dir);

/* The owner of a process in no container; the reference is the caller's. @cgroup: by enum
 * hierarchy, for where /proc does not tell any more; 0 where there is none. 0, OWNER_TOO_MANY,
 * -ENOMEM. */
int ownership_of_host(struct ownership *own, const struct pid_id *pid, const char *comm,
		      const uint64_t cgroup[HIERARCHY_MAX], struct owner **ret);

#endif
