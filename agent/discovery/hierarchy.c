// SPDX-License-Identifier: Apache-2.0
/*
 * A node mounts its cgroups in one of three ways. Version 2 has a single hierarchy, mounted on
 * /sys/fs/cgroup. Version 1 has a hierarchy for each controller (or group of controllers), mounted
 * on directories of that name below it. "Hybrid" is version 1 with version 2 beside it on
 * /sys/fs/cgroup/unified; containers are then in the version 1 hierarchies, and often nowhere in
 * the other. statfs(2) tells the type of each mount.
 *
 * podprof follows the unified hierarchy, if any, and one of version 1. One is enough, because
 * runtimes make a container's directory in all of them.
 *
 * An agent in a container may have its own cgroup namespace, and its /sys/fs/cgroup then shows only
 * its own part. The node's first process sees the whole hierarchy, so podprof tries its view first.
 */
#include "discovery/hierarchy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/cleanup.h"
#include "base/strview.h"
#include "discovery/cgroup.h"

/* Directories and levels of the search for a container, when choosing a controller. A hierarchy
 * without a result counts as empty. The only cost is a worse preference. */
#define HIERARCHY_SEARCH_DIRS  4096
#define HIERARCHY_SEARCH_DEPTH 12

static const char *const controller_names[CONTROLLER_MAX] = {
	[CONTROLLER_NONE] = "none",	  [CONTROLLER_MEMORY] = "memory",
	[CONTROLLER_CPU] = "cpu",	  [CONTROLLER_CPUACCT] = "cpuacct",
	[CONTROLLER_PIDS] = "pids",	  [CONTROLLER_CPUSET] = "cpuset",
	[CONTROLLER_BLKIO] = "blkio",	  [CONTROLLER_DEVICES] = "devices",
	[CONTROLLER_FREEZER] = "freezer", [CONTROLLER_PERF_EVENT] = "perf_event",
	[CONTROLLER_NET_CLS] = "net_cls", [CONTROLLER_NET_PRIO] = "net_prio",
	[CONTROLLER_HUGETLB] = "hugetlb",
};

const char *controller_name(enum controller controller)
{
	return controller < CONTROLLER_MAX ? controller_names[controller] : "none";
}

const char *hierarchy_why(int r)
{
	if (r <= 0)
		return strerror(-r);
	return r == HIERARCHY_NO_SUCH_DIR ? "no such directory"
					  : "no cgroup file system is mounted there";
}

/* ---- directories ---- */

int hierarchy_stat(int fd, const char *name, struct hierarchy_child *ret)
{
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return root_outcome(errno);
	if (!S_ISDIR(st.st_mode))
		return ROOT_NOT_FILE;
	*ret = (struct hierarchy_child){
		.name = name,
		.id = st.st_ino,
		/* "." and the name in the parent; a file system without counts says 1 */
		.leaf = st.st_nlink == 2,
		.n_children = st.st_nlink >= 2 ? st.st_nlink - 2 : UINT64_MAX,
	};
	return 0;
}

static int dir_open(int at, const char *name, int *ret)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return root_outcome(errno);
	*ret = fd;
	return 0;
}

int hierarchy_list(int fd, DIR **ret)
{
	int copy = -1, r = dir_open(fd, ".", &copy);

	if (r)
		return r;
	*ret = fdopendir(copy);
	if (*ret)
		return 0;
	close(copy);
	return -ENOMEM;
}

int hierarchy_next(DIR *dir, struct hierarchy_child *ret)
{
	struct dirent *entry;
	int r;

	/* only errno tells the end of readdir() from a failure */
	while (errno = 0, entry = readdir(dir)) {
		if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
			continue;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		r = hierarchy_stat(dirfd(dir), entry->d_name, ret);
		if (r <= 0)
			return r;
		/* no directory, or just removed */
	}
	return errno ? root_outcome(errno) : HIERARCHY_END;
}

int hierarchy_each(int fd, hierarchy_child_fn fn, void *ctx)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	struct hierarchy_child child;
	int r = hierarchy_list(fd, &dir);

	while (!r) {
		r = hierarchy_next(dir, &child);
		if (!r)
			r = fn(ctx, &child);
		else if (r == HIERARCHY_END)
			return 0;
	}
	return r;
}

/* ---- is a container in there ---- */

struct search {
	int fd;
	unsigned int depth;
	unsigned int *n_left;
};

enum { SEARCH_FOUND = ROOT_OUTCOME_MAX, SEARCH_ENOUGH };

static int search_child(void *ctx, const struct hierarchy_child *child)
{
	const struct search *up = ctx;
	struct search here = {.fd = -1, .depth = up->depth + 1, .n_left = up->n_left};
	struct cgroup_id id;
	int r;

	if ((*up->n_left)-- == 0)
		return SEARCH_ENOUGH;
	cgroup_parse_path(strview_of(child->name), &id);
	if (cgroup_in_container(id.kind))
		return SEARCH_FOUND;
	if (child->leaf || here.depth == HIERARCHY_SEARCH_DEPTH)
		return 0;
	if (dir_open(up->fd, child->name, &here.fd))
		return 0;
	r = hierarchy_each(here.fd, search_child, &here);
	close(here.fd);
	return r >= SEARCH_FOUND ? r : 0;
}

static bool has_container(int fd)
{
	unsigned int n_left = HIERARCHY_SEARCH_DIRS;
	struct search top = {.fd = fd, .n_left = &n_left};

	return hierarchy_each(fd, search_child, &top) == SEARCH_FOUND;
}

/* ---- what is mounted ---- */

/* A set under construction: the best version 1 hierarchy so far and its quality. */
struct finding {
	int fd; /* the directory being searched */
	bool by_name;
	struct hierarchy_set *set;
	bool v1_in_use;
};

/* The preferred controller of a mount's name, "cpu,cpuacct". */
static enum controller controller_of(const char *name)
{
	struct strview t = strview_of(name), word;
	enum controller best = CONTROLLER_NONE;

	while (strview_until(&t, ',', &word))
		for (enum controller c = CONTROLLER_MEMORY; c < CONTROLLER_MAX; c++)
			if (strview_is(&word, controller_names[c]) && (!best || c < best))
				best = c;
	return best;
}

static void take_v2(struct hierarchy_set *set, int *fd)
{
	if (set->roots[HIERARCHY_V2].fd < 0)
		set->roots[HIERARCHY_V2].fd = take_fd(*fd);
}

static void take_v1(struct finding *f, enum controller controller, int *fd)
{
	struct root *v1 = &f->set->roots[HIERARCHY_V1];
	bool in_use;

	if (!controller || (f->v1_in_use && f->set->controller < controller))
		return;
	in_use = has_container(*fd);
	if (f->set->controller &&
	    (in_use != f->v1_in_use ? f->v1_in_use : f->set->controller < controller))
		return;
	root_deinit(v1);
	v1->fd = take_fd(*fd);
	f->set->controller = controller;
	f->v1_in_use = in_use;
}

/* One directory below /sys/fs/cgroup. */
static int find_child(void *ctx, const struct hierarchy_child *child)
{
	_cleanup_(close_fdp) int fd = -1;
	struct finding *f = ctx;
	struct statfs fs;

	if (dir_open(f->fd, child->name, &fd) || fstatfs(fd, &fs) < 0)
		return 0;
	if (fs.f_type == CGROUP2_SUPER_MAGIC || (f->by_name && strcmp(child->name, "unified") == 0))
		take_v2(f->set, &fd);
	else if (fs.f_type == CGROUP_SUPER_MAGIC || f->by_name)
		take_v1(f, controller_of(child->name), &fd);
	return 0;
}

static bool set_empty(const struct hierarchy_set *set)
{
	return set->roots[HIERARCHY_V2].fd < 0 && set->roots[HIERARCHY_V1].fd < 0;
}

/* Finds the hierarchies at @fd, and takes @fd if @fd is a root itself. @copy: accept a copy, with
 * nothing mounted. */
static int find_at(int *fd, const char *name, bool copy, struct hierarchy_set *set)
{
	struct finding f = {.fd = *fd, .set = set};
	struct statfs fs;
	int r;

	if (fstatfs(*fd, &fs) < 0)
		return -errno;
	if (fs.f_type == CGROUP2_SUPER_MAGIC) {
		take_v2(set, fd);
		return 0;
	}
	if (fs.f_type == CGROUP_SUPER_MAGIC) {
		/* The name tells the controller. For any other name the preferred controller is as
		 * good as any: its ids are then missing in this hierarchy, and the lookup falls
		 * back to /proc. */
		set->controller = controller_of(name);
		if (!set->controller)
			set->controller = CONTROLLER_MEMORY;
		set->roots[HIERARCHY_V1].fd = take_fd(*fd);
		return 0;
	}
	r = hierarchy_each(*fd, find_child, &f);
	if (r < 0 || !set_empty(set))
		return r < 0 ? r : 0;
	if (!copy)
		return HIERARCHY_NO_CGROUPFS;
	f.by_name = true;
	r = hierarchy_each(*fd, find_child, &f);
	if (set_empty(set))
		take_v2(set, fd);
	return r < 0 ? r : 0;
}

static int find_path(int at, const char *path, bool copy, struct hierarchy_set *ret)
{
	struct hierarchy_set set = {.roots = {ROOT_INIT, ROOT_INIT}};
	_cleanup_(close_fdp) int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *slash = strrchr(path, '/');
	int r;

	if (fd < 0)
		return root_outcome(errno) < 0 ? -errno : HIERARCHY_NO_SUCH_DIR;
	r = find_at(&fd, slash ? slash + 1 : path, copy, &set);
	if (r) {
		hierarchy_deinit(&set);
		return r;
	}
	*ret = set;
	return 0;
}

int hierarchy_find(const char *path, const struct root *proc, struct hierarchy_set *ret)
{
	int r;

	if (path)
		return find_path(AT_FDCWD, path, true, ret);
	r = find_path(proc->fd, "1/root/sys/fs/cgroup", false, ret);
	if (r)
		r = find_path(AT_FDCWD, "/sys/fs/cgroup", false, ret);
	return r;
}

bool hierarchy_is_copy(const struct hierarchy_set *set)
{
	struct statfs fs;

	for (int i = 0; i < HIERARCHY_MAX; i++)
		if (set->roots[i].fd >= 0 && !fstatfs(set->roots[i].fd, &fs) &&
		    fs.f_type != CGROUP2_SUPER_MAGIC && fs.f_type != CGROUP_SUPER_MAGIC)
			return true;
	return false;
}

void hierarchy_deinit(struct hierarchy_set *set)
{
	for (int i = 0; i < HIERARCHY_MAX; i++)
		root_deinit(&set->roots[i]);
}
