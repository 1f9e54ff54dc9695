// SPDX-License-Identifier: Apache-2.0
/*
 * The table of cgroup directories reports each container's directory, and the directory then holds
 * the container's entity. A pod gets an entity only when a process is found in its own directory;
 * in nearly all pods this never happens. A process outside containers belongs to its systemd unit,
 * from the unified hierarchy or name=systemd. podprof does not follow the latter, so the path comes
 * from /proc. A process outside units belongs to the entity of its name.
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

	/* on failure the next sample tries again */
	if (!id->kind || entity_container(resolver->entities, id, &entity))
		return;
	entity->n_live++;
	dir->data = entity;
}

static void dir_added(void *ctx, struct cgroupdir *dir, const struct cgroup_id *id)
{
	struct entity_resolver *resolver = ctx;

	if (cgroup_in_container(id->kind))
		give_entity(resolver, dir, id);
	entity_table_changed(resolver->entities);
}

static void dir_removed(void *ctx, struct cgroupdir *dir)
{
	const struct entity_resolver *resolver = ctx;
	struct entity *entity = dir->data;

	if (entity)
		entity->n_live--;
	entity_table_changed(resolver->entities);
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

/* The unit of a host process: from /proc, else from the directories of its sample. */
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
