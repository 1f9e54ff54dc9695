/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_CGROUPFS_H
#define PODPROF_DISCOVERY_CGROUPFS_H

/* The table of the node's cgroup directories, kept true: from a cgroup id, as samples carry it, to
 * the directory. */

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
 * @loop:     to follow changes on; NULL for a table that changes only when asked to
 * @grace_ns: how long a directory stays after it is gone
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

/* Finds the trees; the table is empty until the first cgroupfs_walk(). 0, HIERARCHY_NO_SUCH_DIR,
 * HIERARCHY_NO_CGROUPFS, -errno. */
int cgroupfs_new(const struct cgroupfs_opts *opts, struct cgroupfs **ret);
/* Calls forgotten() for every directory. */
void cgroupfs_free(struct cgroupfs *fs);

bool cgroupfs_has(const struct cgroupfs *fs, enum hierarchy hierarchy);
enum controller cgroupfs_controller(const struct cgroupfs *fs);
/* Which tree a line of /proc/PID/cgroup is about; false if it is none that is followed. */
bool cgroupfs_of_line(const struct cgroupfs *fs, const struct cgroup_line *line,
		      enum hierarchy *ret);
/* Whether a tree is seen from its own root, as paths that the kernel tells begin there. */
bool cgroupfs_from_root(struct cgroupfs *fs, enum hierarchy hierarchy);

/* Why a walk over everything is made; label of a metric. */
enum cgroupfs_walk_reason {
	CGROUPFS_WALK_START,
	CGROUPFS_WALK_TIMER,
	CGROUPFS_WALK_OVERFLOW, /* inotify has lost events */
	CGROUPFS_WALK_MISS,	/* somebody has an id that the table lacks */
	CGROUPFS_WALK_MAX,
};

/* Look at everything. 0 or -ENOMEM; directories that cannot be read are counted and kept. */
int cgroupfs_walk(struct cgroupfs *fs, enum cgroupfs_walk_reason reason);
/* The same, unless there was one less than a second ago, or than a hundred times what that took:
 * then false. */
bool cgroupfs_walk_for_miss(struct cgroupfs *fs);

/* Take in what inotify has told up to now; costs next to nothing when called again and again. */
void cgroupfs_catch_up(struct cgroupfs *fs);

/* NULL if there is none. Also finds directories that are gone, for their grace time. */
struct cgroupdir *cgroupfs_find(struct cgroupfs *fs, enum hierarchy hierarchy, uint64_t id);
/* Look for one path, as in /proc/PID/cgroup, and put it and those above it into the table as far as
 * there is room: that shows in cgroupfs_find(). Returns the id that the path has now; 0 if there is
 * no such directory. */
uint64_t cgroupfs_learn(struct cgroupfs *fs, enum hierarchy hierarchy, struct strview path);

/* All directories, those that are gone too, oldest first: @dir is NULL to start; NULL at the end.
 */
struct cgroupdir *cgroupfs_next(struct cgroupfs *fs, const struct cgroupdir *dir);

/* The processes in a directory itself, as its cgroup.procs names them: 0 stands for one that our
 * pid namespace does not have. 0, ROOT_GONE, ROOT_DENIED, ROOT_TOO_LARGE, -errno (-EOPNOTSUPP: a
 * threaded cgroup, whose processes an ancestor lists), or what @fn returned to stop. */
int cgroupfs_procs(struct cgroupfs *fs, const struct cgroupdir *dir,
		   int (*fn)(void *ctx, pid_t pid), void *ctx);

/* A metric_collect_fn; @ctx is the table. */
void cgroupfs_collect(void *ctx, struct metric_sink *sink);

#endif
