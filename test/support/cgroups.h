/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_CGROUPS_H
#define PODPROF_TEST_SUPPORT_CGROUPS_H

/* Real cgroups: the same path in each cgroup tree followed by discovery, below a directory of the
 * test. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "discovery/hierarchy.h"

struct cgroups {
	struct hierarchy_set trees;
	char top[48];
};

/* @id: by enum hierarchy, as samples carry them; 0 where the node has no such tree */
struct cgroup {
	char path[1024];
	uint64_t id[HIERARCHY_MAX];
};

/* 64 hexadecimal digits, for a container: other numbers in each process, since several tests may
 * run on one machine. Returns @ret. */
const char *cgroups_container_id(unsigned int number, char ret[65]);

/* Fails the test without cgroups. */
void cgroups_open(struct cgroups *c, const struct root *proc);
/* Removes the rest of the test's directory, with the processes in it. */
void cgroups_close(struct cgroups *c);

/* Also for children: false, with errno, on failure. */
bool cgroups_try_make(const struct cgroups *c, struct cgroup *ret, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool cgroups_try_enter(const struct cgroups *c, const struct cgroup *cgroup, pid_t pid);
/* Also for children: removes only the directory, not its parents. */
bool cgroups_try_remove(const struct cgroups *c, const struct cgroup *cgroup);

/* Fail the test on failure. Removing a directory also removes its empty parents. */
void cgroups_make(const struct cgroups *c, struct cgroup *ret, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void cgroups_enter(const struct cgroups *c, const struct cgroup *cgroup, pid_t pid);
void cgroups_remove(const struct cgroups *c, const struct cgroup *cgroup);

#endif
