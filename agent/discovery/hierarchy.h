/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_HIERARCHY_H
#define PODPROF_DISCOVERY_HIERARCHY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/root.h"

/* Which cgroup trees this node has, and how to read a directory of one. */

/* The two trees that are followed. A cgroup's id is unique in one of them only. */
enum hierarchy {
	HIERARCHY_V2,
	HIERARCHY_V1, /* one controller's, see below */
	HIERARCHY_MAX,
};

/* Controllers of version 1 whose hierarchy can be followed, in order of preference: first those
 * that every runtime puts every container in. Named hierarchies (name=systemd) are none: the kernel
 * has no number for them by which a BPF program could ask for a task's cgroup. */
enum controller {
	CONTROLLER_NONE,
	CONTROLLER_MEMORY,
	CONTROLLER_CPU,
	CONTROLLER_CPUACCT,
	CONTROLLER_PIDS,
	CONTROLLER_CPUSET,
	CONTROLLER_BLKIO,
	CONTROLLER_DEVICES,
	CONTROLLER_FREEZER,
	CONTROLLER_PERF_EVENT,
	CONTROLLER_NET_CLS,
	CONTROLLER_NET_PRIO,
	CONTROLLER_HUGETLB,
	CONTROLLER_MAX,
};

/* "memory", ...; "none". As in the names of the mounts and in /proc/PID/cgroup. */
const char *controller_name(enum controller controller);

enum hierarchy_outcome {
	HIERARCHY_OK = 0,
	HIERARCHY_NO_SUCH_DIR, /* the path, or none of the usual ones, can be opened */
	HIERARCHY_NO_CGROUPFS, /* it can, and no cgroup file system is there */
	HIERARCHY_OUTCOME_MAX,
};

const char *hierarchy_outcome_name(int outcome);

/**
 * struct hierarchy_set - the trees, open
 * @roots:      by enum hierarchy; fd -1 where the node has none
 * @controller: whose hierarchy roots[HIERARCHY_V1] is
 *
 * Owns the descriptors.
 */
struct hierarchy_set {
	struct root roots[HIERARCHY_MAX];
	enum controller controller;
};

/**
 * hierarchy_find() - open the node's trees
 * @path: where they are mounted: a cgroup file system, or a directory that has them in it. A
 *        directory without any is taken for a copy of one, which the names in it tell apart. NULL:
 *        as the first process sees /sys/fs/cgroup (@proc is the node's /proc), else as we see it.
 *
 * Of several version 1 hierarchies the first, by preference, that has containers in it now, else
 * the first.
 *
 * Return: 0; HIERARCHY_NO_SUCH_DIR; HIERARCHY_NO_CGROUPFS; -errno.
 */
int hierarchy_find(const char *path, const struct root *proc, struct hierarchy_set *ret);
void hierarchy_deinit(struct hierarchy_set *set);

/**
 * struct hierarchy_child - a subdirectory
 * @id:   inode number; in a cgroup file system the kernel's id of the cgroup (kernfs, Linux 5.5)
 * @leaf: it has no subdirectories: their number is in the link count
 * @n_children: this number; UINT64_MAX where the file system does not count
 */
struct hierarchy_child {
	const char *name;
	uint64_t id;
	bool leaf;
	uint64_t n_children;
};

typedef int (*hierarchy_child_fn)(void *ctx, const struct hierarchy_child *child);

/* The subdirectory @name of the directory @fd. 0, ROOT_GONE, ROOT_NOT_FILE (no directory), -errno.
 */
int hierarchy_stat(int fd, const char *name, struct hierarchy_child *ret);
/* Calls @fn for each subdirectory until it returns something else than 0, which is then returned.
 * 0, ROOT_GONE, ROOT_DENIED, -errno. */
int hierarchy_each(int fd, hierarchy_child_fn fn, void *ctx);

#endif
