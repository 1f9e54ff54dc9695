// SPDX-License-Identifier: Apache-2.0
/*
 * A container is known by its cgroup directory: the table of directories tells of each, and its
 * entity hangs on it from then on. A pod has one only from when something is found in a directory
 * of its own: in nearly all pods nothing ever is. What is in no container belongs to the systemd
 * unit that the unified tree or name=systemd know (the second is in no tree that is followed, so
 * /proc is asked), or to all processes of its name.
 */
#include "discovery/entity_resolver.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "discovery/cgroupfs.h"

/* ---- directories ---- */

static void give_entity(struct entity_resolver *resolver, struct cgroupdir *dir,
			const struct cgroup_id *id)
{
	struct entity *entity;

	/* without one it is tried again when a sample asks */
	if (!id->kind || entity_container(resolver->entities, id, &entity))
		return;
	entity->n_live++;
	dir->data = entity;
}

static void dir_added(void *ctx, struct cgroupdir *dir, const struct cgroup_id *id)
{
	if (cgroup_in_container(id->kind))
		give_entity(ctx, dir, id);
}

static void dir_removed(void *ctx, struct cgroupdir *dir)
{
	struct entity *entity = dir->data;

	(void)ctx;
	if (entity)
		entity->n_live--;
}

static void dir_forgotten(void *ctx, struct cgroupdir *dir)
{
	(void)ctx;
	entity_unref(dir->data);
}

const struct cgroupdir_events entity_resolver_events = {
	.added = dir_added,
	.removed = dir_removed,
	.forgotten = dir_forgotten,
};

struct entity *entity_resolver_of_dir(struct entity_resolver *resolver, struct cgroupdir *dir)
{
	struct cgroupdir_path path;
	struct cgroup_id id;

	if (!dir->data && dir->kind && !dir->gone_ns) {
		cgroupdir_path(dir, &path);
		cgroup_parse_path(strview_of(path.s), &id);
		give_entity(resolver, dir, &id);
	}
	return dir->data;
}

struct entity *entity_resolver_known(struct entity_resolver *resolver, struct cgroupdir *dir)
{
	return cgroup_in_container(dir->kind) ? entity_resolver_of_dir(resolver, dir) : dir->data;
}

struct entity *entity_resolver_unit_of_dir(struct entity_resolver *resolver,
					   const struct cgroupdir *dir)
{
	struct cgroupdir_path path;
	struct unit unit;

	cgroupdir_path(dir, &path);
	return unit_of_path(strview_of(path.s), &unit)
		       ? entity_known_unit(resolver->entities, &unit)
		       : NULL;
}

/* ---- processes of the host ---- */

/* The unit of a process of the host: from /proc, else from the directories its sample names. */
static bool find_unit(struct entity_resolver *resolver, const struct pid_id *pid,
		      const uint64_t cgroup[HIERARCHY_MAX], struct buf *b,
		      struct cgroupdir_path *path, struct unit *ret)
{
	struct cgroupdir *dir;

	if (!pid_read_cgroup(resolver->proc, pid, b) && b->data)
		return unit_of_proc(strview_of_bytes(b->data, b->len), ret);
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		dir = cgroupfs_find(resolver->fs, h, cgroup[h]);
		if (!dir)
			continue;
		cgroupdir_path(dir, path);
		if (unit_of_path(strview_of(path->s), ret))
			return true;
	}
	return false;
}

int entity_resolver_of_host(struct entity_resolver *resolver, const struct pid_id *pid,
			    const char *comm, const uint64_t cgroup[HIERARCHY_MAX],
			    struct entity **ret)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PID_CGROUP_BYTES_MAX);
	struct cgroupdir_path path;
	struct unit unit;

	if (find_unit(resolver, pid, cgroup, &b, &path, &unit))
		return entity_unit(resolver->entities, &unit, ret);
	return entity_process(resolver->entities, comm, ret);
}
