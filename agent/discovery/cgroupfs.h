/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_CGROUPFS_H
#define PODPROF_DISCOVERY_CGROUPFS_H

/* The table of the node's cgroup directories, kept true: from a cgroup id, as samples carry it, to
 * the directory. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/text.h"
#include "discovery/cgroup.h"
#include "discovery/hierarchy.h"

struct cgroupfs;
struct loop;
struct metric_sink;
struct root;
struct watch;

/* Hash key: no padding. */
struct cgroupfs_key {
	uint64_t id;
	uint64_t hierarchy; /* enum hierarchy */
};

/**
 * struct cgroupfs_dir - one directory
 * @data:    of the owner of the table's events, who sets it in added()
 * @kind:    what its path says it is, or is below
 * @gone_ns: monotonic; 0 while it exists. A directory that is gone stays in the table for a while
 *           for the samples that were taken before, without a path.
 *
 * The other fields are the table's own.
 */
struct cgroupfs_dir {
	struct cgroupfs_key key;
	void *data;
	enum cgroup_kind kind;
	uint64_t gone_ns;

	struct cgroupfs_dir *parent, *children, *prev, *next;
	struct cgroupfs_dir *top; /* the outermost container's directory it is in, or NULL */
	uint32_t n_below;	  /* directories below a top */
	uint32_t depth;
	uint32_t path_len;
	uint32_t scan; /* the last scan of its parent that saw it */
	struct watch *watch;
	bool leaf;
	bool unwatched; /* it ought to be watched, and cannot */
	UT_hash_handle hh;
	char name[];
};

/* What happens to directories. added() comes before anything below the directory is looked at;
 * removed() when it is gone; forgotten() when it leaves the table, or comes back as another. */
struct cgroupfs_events {
	void (*added)(void *ctx, struct cgroupfs_dir *dir, const struct cgroup_id *id);
	void (*removed)(void *ctx, struct cgroupfs_dir *dir);
	void (*forgotten)(void *ctx, struct cgroupfs_dir *dir);
};

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
	const struct cgroupfs_events *events;
	void *ctx;
};

/* Finds the trees; the table is empty until the first cgroupfs_walk(). 0, HIERARCHY_NO_SUCH_DIR,
 * HIERARCHY_NO_CGROUPFS, -errno. */
int cgroupfs_new(const struct cgroupfs_opts *opts, struct cgroupfs **ret);
/* Calls forgotten() for every directory. */
void cgroupfs_free(struct cgroupfs *fs);

bool cgroupfs_has(const struct cgroupfs *fs, enum hierarchy hierarchy);
enum controller cgroupfs_controller(const struct cgroupfs *fs);

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
/* The same, unless there was one less than a second ago: then false. */
bool cgroupfs_walk_for_miss(struct cgroupfs *fs);

/* NULL if there is none. Also finds directories that are gone, for their grace time. */
struct cgroupfs_dir *cgroupfs_find(struct cgroupfs *fs, enum hierarchy hierarchy, uint64_t id);
/* Look for one path, as in /proc/PID/cgroup, and put it and those above it into the table. Whether
 * it worked shows in cgroupfs_find(). */
void cgroupfs_learn(struct cgroupfs *fs, enum hierarchy hierarchy, struct text path);

/* The directory's path, "/" for the tree's own. Empty if it is gone. */
struct cgroupfs_path {
	char s[4096];
};
void cgroupfs_path(const struct cgroupfs_dir *dir, struct cgroupfs_path *ret);

/* All directories, those that are gone too, oldest first: @dir is NULL to start; NULL at the end.
 */
struct cgroupfs_dir *cgroupfs_next(struct cgroupfs *fs, const struct cgroupfs_dir *dir);

/* The processes in a directory itself, as its cgroup.procs names them: 0 stands for one that our
 * pid namespace does not have. 0, ROOT_GONE, ROOT_DENIED, ROOT_TOO_LARGE, -errno (-EOPNOTSUPP: a
 * threaded cgroup, whose processes an ancestor lists), or what @fn returned to stop. */
int cgroupfs_procs(struct cgroupfs *fs, const struct cgroupfs_dir *dir,
		   int (*fn)(void *ctx, pid_t pid), void *ctx);

/* A metric_collect_fn; @ctx is the table. */
void cgroupfs_collect(void *ctx, struct metric_sink *sink);

#endif
