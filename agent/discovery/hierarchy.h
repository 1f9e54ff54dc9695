/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_HIERARCHY_H
#define PODPROF_DISCOVERY_HIERARCHY_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/root.h"

/* Finds the node's cgroup hierarchies, and reads their directories. */

/* The two hierarchies that podprof follows. A cgroup's id is unique only within its hierarchy. */
enum hierarchy {
	HIERARCHY_V2,
	HIERARCHY_V1, /* of one controller, see below */
	HIERARCHY_MAX,
};

/* Version 1 controllers whose hierarchy can be followed, in order of preference: first the
 * controllers for which every runtime makes a directory. Named hierarchies (name=systemd) are not
 * in the list: they have no number in the kernel, and a BPF program needs a number to get a task's
 * cgroup. */
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

/* "memory", ...; "none": the names of the mounts and of /proc/PID/cgroup. */
const char *controller_name(enum controller controller);

enum hierarchy_outcome {
	HIERARCHY_OK = 0,
	HIERARCHY_NO_SUCH_DIR, /* neither the path nor any usual path can be opened */
	HIERARCHY_NO_CGROUPFS, /* the directory exists without a cgroup file system */
	HIERARCHY_OUTCOME_MAX,
};

/* A result of hierarchy_find() in words: "no such directory"; for -errno the system's words. */
const char *hierarchy_why(int r);

/**
 * struct hierarchy_set - the open hierarchies
 * @roots:      by enum hierarchy; fd -1 for a missing hierarchy
 * @controller: the controller of roots[HIERARCHY_V1]
 *
 * Owns the descriptors.
 */
struct hierarchy_set {
	struct root roots[HIERARCHY_MAX];
	enum controller controller;
};

/**
 * hierarchy_find() - open the node's hierarchies
 * @path: the mount point: a cgroup file system, or a directory of several. A directory without any
 *        is used as a copy of one, and the names of its subdirectories tell the hierarchies. NULL:
 *        /sys/fs/cgroup as the node's first process sees it (@proc is the node's /proc), else as
 *        the agent sees it.
 *
 * Of several version 1 hierarchies, the first by preference with a container wins, else the first
 * by preference.
 *
 * Return: 0; HIERARCHY_NO_SUCH_DIR; HIERARCHY_NO_CGROUPFS; -errno.
 */
int hierarchy_find(const char *path, const struct root *proc, struct hierarchy_set *ret);
/* Whether the directories are a copy, outside of any cgroup file system: the ids in samples are of
 * none of them. */
bool hierarchy_is_copy(const struct hierarchy_set *set);
void hierarchy_deinit(struct hierarchy_set *set);

/**
 * struct hierarchy_child - a subdirectory
 * @id:         inode number; in a cgroup file system this is the kernel's cgroup id (kernfs, Linux
 *              5.5)
 * @leaf:       the link count shows no subdirectories
 * @n_children: number of subdirectories, from the link count; UINT64_MAX if the file system does
 *              not count
 */
struct hierarchy_child {
	const char *name;
	uint64_t id;
	bool leaf;
	uint64_t n_children;
};

typedef int (*hierarchy_child_fn)(void *ctx, const struct hierarchy_child *child);

/* Reads the subdirectory @name of the directory @fd. @ret borrows @name. 0, ROOT_GONE,
 * ROOT_NOT_FILE (no directory), -errno. */
int hierarchy_stat(int fd, const char *name, struct hierarchy_child *ret);
/* Calls @fn for each subdirectory until a result other than 0, and returns this result. 0,
 * ROOT_GONE, ROOT_DENIED, -errno. */
int hierarchy_each(int fd, hierarchy_child_fn fn, void *ctx);

/* The same one by one. *@ret: owned, for closedir(). 0, ROOT_GONE, ROOT_DENIED, -errno. */
int hierarchy_list(int fd, DIR **ret);
/* The next subdirectory; its name is valid until the next call. 0, HIERARCHY_END after the last,
 * ROOT_GONE, ROOT_DENIED, -errno. */
#define HIERARCHY_END ROOT_OUTCOME_MAX
int hierarchy_next(DIR *dir, struct hierarchy_child *ret);

#endif
