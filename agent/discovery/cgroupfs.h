/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_CGROUPFS_H
#define PODPROF_DISCOVERY_CGROUPFS_H

/* An up-to-date table of the node's cgroup directories, to map a sample's cgroup id to a directory.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strview.h"
#include "discovery/cgroupdir.h"

struct cgroup_line;
struct cgroupfs;
struct loop;
struct metric_sink;
struct root;

/**
 * struct cgroupfs_opts
 * @path:     as for hierarchy_find()
 * @proc:     the node's /proc; borrowed
 * @loop:     to follow changes; NULL: the table changes only on request
 * @grace_ns: how long a removed directory stays in the table
 * @events:   borrowed, with @ctx; each function may be NULL
 */
struct cgroupfs_opts {
	const char *path;
	const struct root *proc;
	struct loop *loop;
	uint64_t grace_ns;
	const struct cgroupdir_events *events;
	void *ctx;
};

/* Finds the hierarchies; the table is empty until the first cgroupfs_walk(). *@ret: owned. 0,
 * HIERARCHY_NO_SUCH_DIR, HIERARCHY_NO_CGROUPFS, -errno. */
int cgroupfs_new(const struct cgroupfs_opts *opts, struct cgroupfs **ret);
/* Calls forgotten() for every directory. */
void cgroupfs_free(struct cgroupfs *fs);

bool cgroupfs_has(const struct cgroupfs *fs, enum hierarchy hierarchy);
/* As hierarchy_is_copy(). */
bool cgroupfs_is_copy(const struct cgroupfs *fs);
enum controller cgroupfs_controller(const struct cgroupfs *fs);
/* The hierarchy of a line of /proc/PID/cgroup; false if podprof does not follow this hierarchy. */
bool cgroupfs_of_line(const struct cgroupfs *fs, const struct cgroup_line *line,
		      enum hierarchy *ret);
/* True if the agent sees the hierarchy from its real root, where the kernel's own paths begin. */
bool cgroupfs_from_root(struct cgroupfs *fs, enum hierarchy hierarchy);

/* The reason for a walk over all directories; label of a metric. */
enum cgroupfs_walk_reason {
	CGROUPFS_WALK_START,
	CGROUPFS_WALK_TIMER,
	CGROUPFS_WALK_OVERFLOW, /* inotify has lost events */
	CGROUPFS_WALK_MISS,	/* a sample has an id outside the table */
	CGROUPFS_WALK_MAX,
};

/* Scans all directories. 0 or -ENOMEM; unreadable directories are counted and kept. */
int cgroupfs_walk(struct cgroupfs *fs, enum cgroupfs_walk_reason reason);
/* Walks with a rate limit. False, without a walk, if the last walk was less than a second ago, or
 * less than a hundred times the walk's CPU time. */
bool cgroupfs_walk_for_miss(struct cgroupfs *fs);

/* Applies pending inotify events. Repeated calls cost next to nothing. */
void cgroupfs_catch_up(struct cgroupfs *fs);

/* The largest id of a directory so far; 0: there was none. */
uint64_t cgroupfs_newest(const struct cgroupfs *fs, enum hierarchy hierarchy);

/* NULL: not in the table. Also finds removed directories in their grace period. */
struct cgroupdir *cgroupfs_find(struct cgroupfs *fs, enum hierarchy hierarchy, uint64_t id);
/* Looks up one path, as in /proc/PID/cgroup. The directory and its ancestors enter the table as far
 * as there is room; cgroupfs_find() shows the result. Returns the current id of the path; 0 if
 * there is no such directory. */
uint64_t cgroupfs_learn(struct cgroupfs *fs, enum hierarchy hierarchy, struct strview path);

/* Iterates over all directories, removed ones too, oldest first: @dir is NULL to start; NULL at the
 * end. */
struct cgroupdir *cgroupfs_next(struct cgroupfs *fs, const struct cgroupdir *dir);

/* As cgroupdir_cursor_init() and so on. */
void cgroupfs_cursor_init(struct cgroupfs *fs, struct cgroupdir_cursor *cursor);
void cgroupfs_cursor_deinit(struct cgroupfs *fs, struct cgroupdir_cursor *cursor);

/* Calls @fn for each process in the directory's own cgroup.procs. A process outside our pid
 * namespace is 0. Returns 0, ROOT_GONE, ROOT_DENIED, ROOT_TOO_LARGE, -errno, or the result of @fn
 * that ended the iteration. -EOPNOTSUPP: a threaded cgroup, whose processes an ancestor lists. */
int cgroupfs_procs(struct cgroupfs *fs, const struct cgroupdir *dir,
		   int (*fn)(void *ctx, pid_t pid), void *ctx);

/* A metric_collect_fn; @ctx is the table. */
void cgroupfs_collect(void *ctx, struct metric_sink *sink);

#endif
