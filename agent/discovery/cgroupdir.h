/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_CGROUPDIR_H
#define PODPROF_DISCOVERY_CGROUPDIR_H

/* The table of known cgroup directories, behind cgroupfs.h. Removed directories stay for a grace
 * period. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "discovery/cgroup.h"
#include "discovery/hierarchy.h"

/* Directories in the table, of all hierarchies. 500 pods of three containers with a subdirectory
 * each have 3,500 in each hierarchy. At 400 bytes each this is 13 MiB. Beyond: CGROUPDIR_TOO_MANY.
 * Reached: `podprof_cgroup_refused_total{reason="too_many"}`. */
#define CGROUPDIR_MAX 32768

struct watch;

/* Hash key: no padding. */
struct cgroupdir_key {
	uint64_t id;
	uint64_t hierarchy; /* enum hierarchy */
};

/* Of a directory below another one. Hash key: no padding. @name: a hash that nobody can predict. */
struct cgroupdir_name_key {
	struct cgroupdir_key parent;
	uint64_t name;
};

/**
 * struct cgroupdir - one directory
 * @data:       belongs to the receiver of the table's events, who sets it in added()
 * @kind:       from the path: of this directory or of the directory around it
 * @gone_ns:    monotonic; 0 while the directory exists. A removed directory stays in the table
 *              without a path for the grace period, for earlier samples.
 * @leaf:       the directory has no subdirectories, as last seen
 * @n_children: number of subdirectories, as last seen; UINT64_MAX if the file system does not count
 *
 * @scan, @watch and @unwatched belong to cgroupfs.c, the other fields to the table.
 */
struct cgroupdir {
	struct cgroupdir_key key;
	struct cgroupdir_name_key by_name;
	void *data;
	enum cgroup_kind kind;
	uint64_t gone_ns;
	uint64_t n_children;
	bool leaf;
	bool inside; /* below a container's directory */

	uint32_t scan; /* number of the last listing when it was seen */
	struct watch *watch;
	bool unwatched; /* a watch is wanted but not available */

	struct cgroupdir *parent, *children;
	struct cgroupdir *prev,
		*next;	       /* siblings; for a removed directory, other removed directories */
	struct cgroupdir *top; /* directory of the outermost container around it, or NULL */
	uint32_t n_below;      /* number of directories below a top */
	uint32_t depth;
	uint32_t path_len;
	UT_hash_handle hh;
	UT_hash_handle hh_name;
	char name[];
};

/* Events of directories. added() precedes any look below the directory. removed() follows the
 * removal of the directory and of all directories below. forgotten() follows when the entry leaves
 * the table. No callback may call back into the table. */
struct cgroupdir_events {
	void (*added)(void *ctx, struct cgroupdir *dir, const struct cgroup_id *id);
	void (*removed)(void *ctx, struct cgroupdir *dir);
	void (*forgotten)(void *ctx, struct cgroupdir *dir);
};

/**
 * struct cgroupdir_cursor - a place in the iteration that stays valid while the table changes
 * @next:  the directory that cgroupdir_cursor_next() returns; NULL: none is left
 * @other: another cursor of the table
 */
struct cgroupdir_cursor {
	struct cgroupdir *next;
	struct cgroupdir_cursor *other;
};

/**
 * struct cgroupdir_table - directories by hierarchy and id
 * @names:       the existing ones by name
 * @roots:       root directory of each hierarchy; NULL if not seen
 * @gone:        removed directories of containers and the node, oldest first
 * @gone_inside: removed directories below containers' directories, oldest first
 * @n_inside:    number of directories below containers' directories
 * @cursors:     the cursors in use
 * @grace_ns:    grace period of removed directories; a full table evicts the oldest early
 *
 * Set @events, @ctx and @grace_ns; leave the rest zero.
 */
struct cgroupdir_table {
	struct cgroupdir *dirs;
	struct cgroupdir *names;
	struct cgroupdir *roots[HIERARCHY_MAX];
	struct cgroupdir *gone;
	struct cgroupdir *gone_inside;
	size_t n_inside;
	struct cgroupdir_cursor *cursors;
	struct cgroupdir_events events;
	void *ctx;
	uint64_t grace_ns;
};

enum cgroupdir_outcome {
	CGROUPDIR_OK = 0,
	CGROUPDIR_TOO_MANY,
	CGROUPDIR_TOO_MANY_IN_CONTAINER,
	CGROUPDIR_TOO_DEEP, /* or the path is too long */
	CGROUPDIR_NO_TREE,  /* the directory is above itself: a mount, or a concurrent move */
	CGROUPDIR_OUTCOME_MAX,
};

/* "too_many", ...: label values of a metric. */
const char *cgroupdir_outcome_name(int outcome);

/* Forgets all directories, without removed() first. */
void cgroupdir_deinit(struct cgroupdir_table *t);

/* Also finds removed directories in their grace period. NULL: not in the table. */
struct cgroupdir *cgroupdir_find(struct cgroupdir_table *t, enum hierarchy hierarchy, uint64_t id);
/* The subdirectory @name of @parent; NULL: not in the table. */
struct cgroupdir *cgroupdir_child(struct cgroupdir_table *t, const struct cgroupdir *parent,
				  const char *name);
/* Returns the entry of a subdirectory just seen in @parent (NULL: the root of the hierarchy). A
 * new, renamed or replaced directory gets a new entry, and the earlier directory of its name is
 * removed. 0, an outcome, -ENOMEM. */
int cgroupdir_see(struct cgroupdir_table *t, enum hierarchy hierarchy, struct cgroupdir *parent,
		  const struct hierarchy_child *child, struct cgroupdir **ret);
/* Updates an unchanged directory's link count. */
void cgroupdir_saw(struct cgroupdir *dir, const struct hierarchy_child *now);
/* Marks the directory and all directories below as removed. */
void cgroupdir_remove(struct cgroupdir_table *t, struct cgroupdir *dir);
/* Forgets directories whose grace period has ended. */
void cgroupdir_expire(struct cgroupdir_table *t);

/* Iterates over all directories, oldest first: @dir is NULL to start; NULL at the end. */
struct cgroupdir *cgroupdir_next(const struct cgroupdir_table *t, const struct cgroupdir *dir);

/* The same in slices: directories may enter and leave the table between two calls. A new directory
 * comes last. The caller owns @cursor until cgroupdir_cursor_deinit(), which is idempotent, also
 * for a cursor of zeros. */
void cgroupdir_cursor_init(struct cgroupdir_table *t, struct cgroupdir_cursor *cursor);
void cgroupdir_cursor_deinit(struct cgroupdir_table *t, struct cgroupdir_cursor *cursor);
struct cgroupdir *cgroupdir_cursor_next(struct cgroupdir_cursor *cursor);

/* Bytes of a path with the NUL: the kernel's own limit for paths in /proc/PID/cgroup. Reached:
 * `podprof_cgroup_refused_total{reason="too_deep"}`. */
#define CGROUPDIR_PATH_MAX 4096

struct cgroupdir_path {
	char s[CGROUPDIR_PATH_MAX];
};

/* The directory's path, "/" for the root. Empty if the directory is removed. */
void cgroupdir_path(const struct cgroupdir *dir, struct cgroupdir_path *ret);

#endif
