/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_CGROUPDIR_H
#define PODPROF_DISCOVERY_CGROUPDIR_H

/* Cgroup directories that are known, and those that were: the table behind cgroupfs.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "discovery/cgroup.h"
#include "discovery/hierarchy.h"

struct watch;

/* Hash key: no padding. */
struct cgroupdir_key {
	uint64_t id;
	uint64_t hierarchy; /* enum hierarchy */
};

/**
 * struct cgroupdir - one directory
 * @data:    of the owner of the table's events, who sets it in added()
 * @kind:    what its path says it is, or is below
 * @gone_ns: monotonic; 0 while it exists. A directory that is gone stays in the table for a while
 *           for the samples that were taken before, without a path.
 * @leaf:    nothing is below it, by what was seen last
 * @n_children: by that, too; UINT64_MAX where the file system does not count
 *
 * @scan, @watch and @unwatched belong to cgroupfs.c, the rest to the table.
 */
struct cgroupdir {
	struct cgroupdir_key key;
	void *data;
	enum cgroup_kind kind;
	uint64_t gone_ns;
	uint64_t n_children;
	bool leaf;
	bool inside; /* below a container's directory */

	uint32_t scan; /* the last scan of its parent that saw it */
	struct watch *watch;
	bool unwatched; /* it ought to be watched, and cannot */

	struct cgroupdir *parent, *children;
	struct cgroupdir *prev, *next; /* siblings; when gone, others that are */
	struct cgroupdir *top;	       /* the outermost container's directory it is in, or NULL */
	uint32_t n_below;	       /* directories below a top */
	uint32_t depth;
	uint32_t path_len;
	UT_hash_handle hh;
	char name[];
};

/* What happens to directories. added() comes before anything below the directory is looked at;
 * removed() when it is gone, after those below it; forgotten() when it leaves the table. None may
 * call back. */
struct cgroupdir_events {
	void (*added)(void *ctx, struct cgroupdir *dir, const struct cgroup_id *id);
	void (*removed)(void *ctx, struct cgroupdir *dir);
	void (*forgotten)(void *ctx, struct cgroupdir *dir);
};

/**
 * struct cgroupdir_table - directories by hierarchy and id
 * @roots:    the trees' own directories, NULL for what has not been seen
 * @gone, @gone_inside: those that have gone, oldest first: containers' and the node's, and what
 *            containers had made
 * @n_inside: directories that are below a container's
 * @grace_ns: how long they stay; the oldest goes early when the table is full
 *
 * Set @events, @ctx and @grace_ns, leave the rest zero.
 */
struct cgroupdir_table {
	struct cgroupdir *dirs;
	struct cgroupdir *roots[HIERARCHY_MAX];
	struct cgroupdir *gone;
	struct cgroupdir *gone_inside;
	size_t n_inside;
	struct cgroupdir_events events;
	void *ctx;
	uint64_t grace_ns;
};

enum cgroupdir_outcome {
	CGROUPDIR_OK = 0,
	CGROUPDIR_TOO_MANY,
	CGROUPDIR_TOO_MANY_IN_CONTAINER,
	CGROUPDIR_TOO_DEEP, /* or its path too long */
	CGROUPDIR_NO_TREE,  /* it is above itself: a mount, or a move at this moment */
	CGROUPDIR_OUTCOME_MAX,
};

/* "too_many", ...: label values of a metric. */
const char *cgroupdir_outcome_name(int outcome);

/* Forgets all directories; not removed() before. */
void cgroupdir_deinit(struct cgroupdir_table *t);

/* Also finds directories that are gone. NULL if there is none. */
struct cgroupdir *cgroupdir_find(struct cgroupdir_table *t, enum hierarchy hierarchy, uint64_t id);
/* The entry of a subdirectory that was just seen in @parent (NULL: the tree's own directory); made
 * if it is new or another. 0, an outcome, -ENOMEM. */
int cgroupdir_see(struct cgroupdir_table *t, enum hierarchy hierarchy, struct cgroupdir *parent,
		  const struct hierarchy_child *child, struct cgroupdir **ret);
/* It is the same as before, and this is what it has in it now. */
void cgroupdir_saw(struct cgroupdir *dir, const struct hierarchy_child *now);
/* The directory has gone, and so has everything below it. */
void cgroupdir_remove(struct cgroupdir_table *t, struct cgroupdir *dir);
/* Forget those that went longer ago than the grace time. */
void cgroupdir_expire(struct cgroupdir_table *t);

/* All, oldest first: @dir is NULL to start; NULL at the end. */
struct cgroupdir *cgroupdir_next(const struct cgroupdir_table *t, const struct cgroupdir *dir);

/* The kernel's own limit for paths in /proc/PID/cgroup. Reached:
 * `podprof_cgroup_refused_total{reason="too_deep"}`. */
#define CGROUPDIR_PATH_MAX 4096

struct cgroupdir_path {
	char s[CGROUPDIR_PATH_MAX];
};

/* The directory's path, "/" for the tree's own. Empty if it is gone. */
void cgroupdir_path(const struct cgroupdir *dir, struct cgroupdir_path *ret);

#endif
