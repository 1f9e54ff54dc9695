// SPDX-License-Identifier: Apache-2.0
/*
 * An entry holds the last listing's data of a directory: id, name and parent. Paths are built from
 * the names on demand, because most are never needed.
 *
 * The removal of a directory also removes all directories below. The entry then stays for the grace
 * period, without a path. A cgroup file system never reuses ids (they grow). After a reuse
 * elsewhere, or after a rename, a new entry replaces the old entry.
 */
#include "discovery/cgroupdir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/nsec.h"

/* Directories below containers' directories: containers make any number, so half of the table is
 * reserved for the node's own. Beyond: CGROUPDIR_TOO_MANY_IN_CONTAINER. Reached:
 * `podprof_cgroup_refused_total{reason="too_many_in_container"}`. */
#define CGROUPDIR_INSIDE_MAX (CGROUPDIR_MAX / 2)
/* Directories below one outermost container: a whole node of 110 pods in a container (kind) has
 * about 1,000. Beyond: CGROUPDIR_TOO_MANY_IN_CONTAINER. Reached:
 * `podprof_cgroup_refused_total{reason="too_many_in_container"}`. */
#define CGROUPDIR_BELOW_MAX  4096
/* Components of a path. A pod in a node in a container is 8 deep. Beyond: CGROUPDIR_TOO_DEEP.
 * Reached: `podprof_cgroup_refused_total{reason="too_deep"}`. */
#define CGROUPDIR_DEPTH_MAX  24

const char *cgroupdir_outcome_name(int outcome)
{
	static const char *const names[CGROUPDIR_OUTCOME_MAX] = {
		[CGROUPDIR_OK] = "ok",
		[CGROUPDIR_TOO_MANY] = "too_many",
		[CGROUPDIR_TOO_MANY_IN_CONTAINER] = "too_many_in_container",
		[CGROUPDIR_TOO_DEEP] = "too_deep",
		[CGROUPDIR_NO_TREE] = "no_tree",
	};

	return outcome >= 0 && outcome < CGROUPDIR_OUTCOME_MAX ? names[outcome] : "error";
}

void cgroupdir_path(const struct cgroupdir *dir, struct cgroupdir_path *ret)
{
	char *p = ret->s + sizeof(ret->s) - 1;
	size_t n;

	*p = '\0';
	for (; dir && dir->parent; dir = dir->parent) {
		n = strlen(dir->name);
		if ((size_t)(p - ret->s) < n + 1) {
			ret->s[0] = '\0';
			return;
		}
		p -= n;
		memcpy(p, dir->name, n);
		*--p = '/';
	}
	if (!dir || dir->gone_ns)
		*p = '\0';
	else if (!*p)
		*--p = '/';
	memmove(ret->s, p, strlen(p) + 1);
}

/* The list of removed directories for @dir. */
static struct cgroupdir **gone_list(struct cgroupdir_table *t, const struct cgroupdir *dir)
{
	return dir->inside ? &t->gone_inside : &t->gone;
}

static void dir_forget(struct cgroupdir_table *t, struct cgroupdir *dir)
{
	for (struct cgroupdir_cursor *c = t->cursors; c; c = c->other)
		if (c->next == dir)
			c->next = dir->hh.next;
	/* the list is not empty, because @dir is in it */
	if (dir->gone_ns)
		DL_DELETE(*gone_list(t, dir), dir); // NOLINT(clang-analyzer-core.NullDereference)
	else if (dir->parent)
		HASH_DELETE(hh_name, t->names, dir);
	HASH_DELETE(hh, t->dirs, dir);
	if (t->events.forgotten)
		t->events.forgotten(t->ctx, dir);
	free(dir);
}

void cgroupdir_remove(struct cgroupdir_table *t, struct cgroupdir *dir)
{
	struct cgroupdir *child, *next;

	DL_FOREACH_SAFE(dir->children, child, next)
		cgroupdir_remove(t, child);
	if (dir->parent) {
		DL_DELETE(dir->parent->children, dir);
		HASH_DELETE(hh_name, t->names, dir);
	} else {
		t->roots[dir->key.hierarchy] = NULL;
	}
	if (dir->inside) {
		dir->top->n_below--;
		t->n_inside--;
	}
	dir->top = NULL;
	dir->parent = NULL;
	dir->gone_ns = nsec_monotonic();
	DL_APPEND(*gone_list(t, dir), dir);
	if (t->events.removed)
		t->events.removed(t->ctx, dir);
	if (!t->grace_ns)
		dir_forget(t, dir);
}

void cgroupdir_expire(struct cgroupdir_table *t)
{
	uint64_t now = nsec_monotonic();

	while (t->gone && now - t->gone->gone_ns >= t->grace_ns)
		dir_forget(t, t->gone);
	while (t->gone_inside && now - t->gone_inside->gone_ns >= t->grace_ns)
		dir_forget(t, t->gone_inside);
}

void cgroupdir_deinit(struct cgroupdir_table *t)
{
	struct cgroupdir *dir, *next;

	HASH_ITER(hh, t->dirs, dir, next)
		dir_forget(t, dir);
}

struct cgroupdir *cgroupdir_next(const struct cgroupdir_table *t, const struct cgroupdir *dir)
{
	return dir ? dir->hh.next : t->dirs;
}

void cgroupdir_cursor_init(struct cgroupdir_table *t, struct cgroupdir_cursor *cursor)
{
	cursor->next = t->dirs;
	LL_PREPEND2(t->cursors, cursor, other);
}

void cgroupdir_cursor_deinit(struct cgroupdir_table *t, struct cgroupdir_cursor *cursor)
{
	if (t->cursors)
		LL_DELETE2(t->cursors, cursor, other);
	*cursor = (struct cgroupdir_cursor){.next = NULL};
}

struct cgroupdir *cgroupdir_cursor_next(struct cgroupdir_cursor *cursor)
{
	struct cgroupdir *dir = cursor->next;

	if (dir)
		cursor->next = dir->hh.next;
	return dir;
}

struct cgroupdir *cgroupdir_find(struct cgroupdir_table *t, enum hierarchy hierarchy, uint64_t id)
{
	struct cgroupdir_key key = {.id = id, .hierarchy = hierarchy};
	struct cgroupdir *dir;

	HASH_FIND(hh, t->dirs, &key, sizeof(key), dir);
	return dir;
}

static struct cgroupdir_name_key name_key(const struct cgroupdir *parent, const char *name)
{
	return (struct cgroupdir_name_key){parent->key, hash_bytes(name, strlen(name))};
}

struct cgroupdir *cgroupdir_child(struct cgroupdir_table *t, const struct cgroupdir *parent,
				  const char *name)
{
	const struct cgroupdir_name_key key = name_key(parent, name);
	struct cgroupdir *dir;

	HASH_FIND(hh_name, t->names, &key, sizeof(key), dir);
	return dir && strcmp(dir->name, name) == 0 ? dir : NULL;
}

/* Length of the path of @parent's subdirectory @name. */
static size_t path_len(const struct cgroupdir *parent, const char *name)
{
	return parent ? parent->path_len + 1 + strlen(name) : 0;
}

/* 0 if there is room for another directory below @parent, else an outcome. */
static int dir_allowed(struct cgroupdir_table *t, const struct cgroupdir *parent, const char *name)
{
	/* a full table evicts removed directories early, containers' first, so a loop of mkdir and
	 * rmdir displaces no existing directory */
	if (HASH_COUNT(t->dirs) >= CGROUPDIR_MAX && (t->gone_inside || t->gone))
		dir_forget(t, t->gone_inside ? t->gone_inside : t->gone);
	if (HASH_COUNT(t->dirs) >= CGROUPDIR_MAX)
		return CGROUPDIR_TOO_MANY;
	if (!parent)
		return 0;
	if (parent->depth >= CGROUPDIR_DEPTH_MAX || path_len(parent, name) >= CGROUPDIR_PATH_MAX)
		return CGROUPDIR_TOO_DEEP;
	if (parent->top &&
	    (parent->top->n_below >= CGROUPDIR_BELOW_MAX || t->n_inside >= CGROUPDIR_INSIDE_MAX))
		return CGROUPDIR_TOO_MANY_IN_CONTAINER;
	return 0;
}

void cgroupdir_saw(struct cgroupdir *dir, const struct hierarchy_child *now)
{
	dir->leaf = now->leaf;
	dir->n_children = now->n_children;
}

static int dir_new(struct cgroupdir_key key, const struct hierarchy_child *child,
		   struct cgroupdir **ret)
{
	size_t n = strlen(child->name) + 1;
	struct cgroupdir *dir = calloc(1, sizeof(*dir) + n);

	if (!dir)
		return -ENOMEM;
	memcpy(dir->name, child->name, n);
	dir->key = key;
	cgroupdir_saw(dir, child);
	*ret = dir;
	return 0;
}

static void dir_link(struct cgroupdir_table *t, struct cgroupdir *dir, struct cgroupdir *parent)
{
	struct cgroupdir_path path;
	struct cgroup_id id;

	dir->parent = parent;
	dir->path_len = (uint32_t)path_len(parent, dir->name);
	if (parent) {
		DL_APPEND(parent->children, dir);
		dir->depth = parent->depth + 1;
		dir->top = parent->top;
		parent->leaf = false;
	} else {
		t->roots[dir->key.hierarchy] = dir;
	}
	cgroupdir_path(dir, &path);
	cgroup_parse_path(strview_of(path.s), &id);
	dir->kind = id.kind;
	dir->inside = dir->top != NULL;
	if (dir->inside) {
		dir->top->n_below++;
		t->n_inside++;
	} else if (cgroup_in_container(dir->kind)) {
		dir->top = dir;
	}
	if (t->events.added)
		t->events.added(t->ctx, dir, &id);
}

static int dir_add(struct cgroupdir_table *t, enum hierarchy hierarchy, struct cgroupdir *parent,
		   const struct hierarchy_child *child, struct cgroupdir **ret)
{
	struct cgroupdir_key key = {.id = child->id, .hierarchy = hierarchy};
	struct cgroupdir *dir;
	bool hash_oom = false;
	int r = dir_allowed(t, parent, child->name);

	if (r)
		return r;
	if (dir_new(key, child, &dir))
		return -ENOMEM;
	if (parent) {
		dir->by_name = name_key(parent, dir->name);
		HASH_ADD(hh_name, t->names, by_name, sizeof(dir->by_name), dir);
		if (hash_oom) {
			free(dir);
			return -ENOMEM;
		}
	}
	HASH_ADD(hh, t->dirs, key, sizeof(dir->key), dir);
	if (hash_oom) {
		if (parent)
			HASH_DELETE(hh_name, t->names, dir);
		free(dir);
		return -ENOMEM;
	}
	dir_link(t, dir, parent);
	*ret = dir;
	return 0;
}

static bool is_above(const struct cgroupdir *dir, const struct cgroupdir *below)
{
	while (below && below != dir)
		below = below->parent;
	return below != NULL;
}

int cgroupdir_see(struct cgroupdir_table *t, enum hierarchy hierarchy, struct cgroupdir *parent,
		  const struct hierarchy_child *child, struct cgroupdir **ret)
{
	struct cgroupdir *dir = cgroupdir_find(t, hierarchy, child->id);

	if (dir && !dir->gone_ns && dir->parent == parent && strcmp(dir->name, child->name) == 0) {
		cgroupdir_saw(dir, child);
		*ret = dir;
		return 0;
	}
	if (dir && is_above(dir, parent))
		return CGROUPDIR_NO_TREE;
	/* the directory was renamed, or its id was reused */
	if (dir && !dir->gone_ns)
		cgroupdir_remove(t, dir);
	dir = cgroupdir_find(t, hierarchy, child->id);
	if (dir)
		dir_forget(t, dir);
	dir = parent ? cgroupdir_child(t, parent, child->name) : NULL;
	if (dir)
		cgroupdir_remove(t, dir);
	return dir_add(t, hierarchy, parent, child, ret);
}
