// SPDX-License-Identifier: Apache-2.0
/*
 * A container is known by its cgroup directory: the table of directories tells of each, and its
 * owner hangs on it from then on. A pod has one only from when something is found in a directory of
 * its own: in nearly all pods nothing ever is. What is in no container belongs to the systemd unit
 * that the unified tree or name=systemd know (the second is in no tree that is followed, so /proc
 * is asked), or to all processes of its name.
 */
#include "discovery/ownership.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "discovery/cgroupfs.h"

/* ---- directories ---- */

static void give_owner(struct ownership *own, struct cgroupdir *dir, const struct cgroup_id *id)
{
	struct owner *owner;

	/* without one it is tried again when a sample asks */
	if (!id->kind || owner_container(own->owners, id, &owner))
		return;
	owner->n_live++;
	dir->data = owner;
}

static void dir_added(void *ctx, struct cgroupdir *dir, const struct cgroup_id *id)
{
	if (cgroup_in_container(id->kind))
		give_owner(ctx, dir, id);
}

static void dir_removed(void *ctx, struct cgroupdir *dir)
{
	struct owner *owner = dir->data;

	(void)ctx;
	if (owner)
		owner->n_live--;
}

static void dir_forgotten(void *ctx, struct cgroupdir *dir)
{
	(void)ctx;
	owner_unref(dir->data);
}

const struct cgroupdir_events ownership_events = {
	.added = dir_added,
	.removed = dir_removed,
	.forgotten = dir_forgotten,
};

struct owner *ownership_of_dir(struct ownership *own, struct cgroupdir *dir)
{
	struct cgroupdir_path path;
	struct cgroup_id id;

	if (!dir->data && dir->kind && !dir->gone_ns) {
		cgroupdir_path(dir, &path);
		cgroup_parse_path(strview_of(path.s), &id);
		give_owner(own, dir, &id);
	}
	return dir->data;
}

struct owner *ownership_known(struct ownership *own, struct cgroupdir *dir)
{
	return cgroup_in_container(dir->kind) ? ownership_of_dir(own, dir) : dir->data;
}

struct owner *ownership_unit_of_dir(struct ownership *own, const struct cgroupdir *dir)
{
	struct cgroupdir_path path;
	struct unit unit;

	cgroupdir_path(dir, &path);
	return unit_of_path(strview_of(path.s), &unit) ? owner_known_unit(own->owners, &unit)
						       : NULL;
}

/* ---- processes of the host ---- */

/* The unit of a process of the host: from /proc, else from the directories its sample names. */
static bool find_unit(struct ownership *own, const struct pid_id *pid,
		      const uint64_t cgroup[HIERARCHY_MAX], struct buf *b,
		      struct cgroupdir_path *path, struct unit *ret)
{
	struct cgroupdir *dir;

	if (!pid_read_cgroup(own->proc, pid, b) && b->data)
		return unit_of_proc(strview_of_bytes(b->data, b->len), ret);
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		dir = cgroupfs_find(own->fs, h, cgroup[h]);
		if (!dir)
			continue;
		cgroupdir_path(dir, path);
		if (unit_of_path(strview_of(path->s), ret))
			return true;
	}
	return false;
}

int ownership_of_host(struct ownership *own, const struct pid_id *pid, const char *comm,
		      const uint64_t cgroup[HIERARCHY_MAX], struct owner **ret)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PID_CGROUP_BYTES_MAX);
	struct cgroupdir_path path;
	struct unit unit;

	if (find_unit(own, pid, cgroup, &b, &path, &unit))
		return owner_unit(own->owners, &unit, ret);
	return owner_process(own->owners, comm, ret);
}
