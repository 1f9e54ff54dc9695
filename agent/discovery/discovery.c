// SPDX-License-Identifier: Apache-2.0
/*
 * A sample carries the cgroup id that its task had when it was taken. That is better than to ask
 * /proc later: the process may have left, and short ones always have. So nearly every sample is one
 * look into the table of directories. What is left:
 *
 *   - The id is not in the table. The directory is newer than the last event, or behind a ceiling,
 *     or it came and went between two looks. If the process lives, /proc/PID/cgroup has the path;
 *     if not, everything is looked at again, once a second at most.
 *   - The directory is in no container. The owner is then the systemd unit, which the unified tree
 *     or name=systemd know (the second is in no tree that is followed, so /proc is asked, once for
 *     each process), or all processes of that name.
 *
 * On nodes with both versions a task has a cgroup in each, and either may be the one that knows the
 * container.
 */
#include "discovery/discovery.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "discovery/cgroupfs.h"
#include "discovery/target.h"

/* /proc/PID/cgroup: 14 lines with paths of up to 4 KiB. A longer one counts as unreadable. */
#define PROC_CGROUP_BYTES_MAX (64u << 10)
/* How often processes that nobody asked for are dropped. */
#define DISCOVERY_SWEEP_NS    (30 * NSEC_PER_SEC)

enum lookup {
	LOOKUP_TABLE,	/* a container, by id */
	LOOKUP_CACHED,	/* by process, as the last time */
	LOOKUP_LEARNED, /* by id, after /proc told the path */
	LOOKUP_PROC,	/* a container, by the path in /proc alone */
	LOOKUP_WALKED,	/* by id, after all cgroups were looked at */
	LOOKUP_HOST,	/* in no container, owner found */
	LOOKUP_FILTERED,
	LOOKUP_UNKNOWN_GONE,	   /* id not in the table, and the process has left */
	LOOKUP_UNKNOWN_UNREADABLE, /* ... and /proc/PID/cgroup cannot be read */
	LOOKUP_UNKNOWN_LIMIT,	   /* too many owners, too many processes, or no memory */
	LOOKUP_MAX,
};

static const char *const lookup_names[LOOKUP_MAX] = {
	[LOOKUP_TABLE] = "table",
	[LOOKUP_CACHED] = "cached",
	[LOOKUP_LEARNED] = "learned",
	[LOOKUP_PROC] = "proc",
	[LOOKUP_WALKED] = "walked",
	[LOOKUP_HOST] = "host",
	[LOOKUP_FILTERED] = "filtered",
	[LOOKUP_UNKNOWN_GONE] = "unknown_gone",
	[LOOKUP_UNKNOWN_UNREADABLE] = "unknown_unreadable",
	[LOOKUP_UNKNOWN_LIMIT] = "unknown_limit",
};

/* Why a process that a cgroup lists was left out. */
enum listed {
	LISTED_OK,
	LISTED_GONE,
	LISTED_OTHER_NAMESPACE, /* shown as 0: the agent needs the node's pid namespace */
	LISTED_UNREADABLE,	/* its stat, or the cgroup.procs it would be in */
	LISTED_MAX,
};

static const char *const listed_names[LISTED_MAX] = {
	[LISTED_OK] = "ok",
	[LISTED_GONE] = "gone",
	[LISTED_OTHER_NAMESPACE] = "other_namespace",
	[LISTED_UNREADABLE] = "unreadable",
};

struct discovery {
	const struct root *proc;
	bool host_processes;
	uint64_t grace_ns;
	struct cgroupfs *fs;
	struct owner_table *owners;
	struct target_table *targets;
	struct loop_source *sweep;
	uint32_t listing;
	uint64_t n_lookups[LOOKUP_MAX];
	uint64_t n_listed[LISTED_MAX];
};

/* One question to discovery_owner(). */
struct query {
	uint64_t cgroup[HIERARCHY_MAX];
	const struct pid_id *pid;
	const char *comm;
};

/* ---- directories and their owners ---- */

static void dir_added(void *ctx, struct cgroupdir *dir, const struct cgroup_id *id)
{
	struct discovery *d = ctx;
	struct owner *owner;

	/* a container without an owner is tried again when a sample asks */
	if (!id->kind || owner_container(d->owners, id, &owner))
		return;
	owner->n_live++;
	dir->data = owner;
}

static void dir_removed(void *ctx, struct cgroupdir *dir)
{
	struct owner *owner = dir->data;

	(void)ctx;
	if (!owner)
		return;
	owner->n_live--;
	owner->last_seen_ns = nsec_wall();
}

static void dir_forgotten(void *ctx, struct cgroupdir *dir)
{
	(void)ctx;
	owner_unref(dir->data);
}

static const struct cgroupdir_events dir_events = {
	.added = dir_added,
	.removed = dir_removed,
	.forgotten = dir_forgotten,
};

static struct owner *dir_owner(struct discovery *d, struct cgroupdir *dir)
{
	struct cgroupdir_path path;
	struct cgroup_id id;

	if (!dir->data && dir->kind && !dir->gone_ns) {
		cgroupdir_path(dir, &path);
		cgroup_parse_path(text_of(path.s), &id);
		dir_added(d, dir, &id);
	}
	return dir->data;
}

/* ---- by cgroup id ---- */

/**
 * by_table() - what the table says of a task
 * @ret_known: all the cgroups the task has are in the table
 *
 * Return: the container's owner, or NULL.
 */
static struct owner *by_table(struct discovery *d, const struct query *q, bool *ret_known)
{
	struct owner *best = NULL, *owner;
	struct cgroupdir *dir;
	bool any = false, missing = false;

	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		if (!cgroupfs_has(d->fs, h) || !q->cgroup[h])
			continue;
		dir = cgroupfs_find(d->fs, h, q->cgroup[h]);
		owner = dir ? dir_owner(d, dir) : NULL;
		any = true;
		missing |= !dir;
		if (owner && (!best || (owner->id.pod_uid[0] && !best->id.pod_uid[0])))
			best = owner;
	}
	*ret_known = any && !missing;
	return best;
}

/* ---- by /proc ---- */

/* Appends /proc/PID/cgroup of exactly this process. 0, PID_GONE, PID_DENIED, PID_ODD, -errno. */
static int read_proc_cgroup(const struct discovery *d, const struct pid_id *pid, struct buf *b)
{
	char path[32];
	int r;

	snprintf(path, sizeof(path), "%llu/cgroup", (unsigned long long)pid->pid);
	r = root_read(d->proc, path, b);
	if (r)
		return r == ROOT_GONE ? PID_GONE : r == ROOT_DENIED ? PID_DENIED : PID_ODD;
	/* only now: what was read is this process's if it still has its number */
	return pid_check(d->proc, pid);
}

static bool has_controller(struct text controllers, enum controller controller)
{
	struct text word;

	while (text_until(&controllers, ',', &word))
		if (text_is(&word, controller_name(controller)))
			return true;
	return false;
}

static void learn(struct discovery *d, struct text proc_cgroup)
{
	enum controller v1 = cgroupfs_controller(d->fs);
	struct cgroup_line line;

	while (cgroup_line_next(&proc_cgroup, &line)) {
		if (line.unified)
			cgroupfs_learn(d->fs, HIERARCHY_V2, line.path);
		else if (v1 && has_controller(line.controllers, v1))
			cgroupfs_learn(d->fs, HIERARCHY_V1, line.path);
	}
}

/* ---- by process ---- */

/* The same answer as the last time, if the question is the same. */
static struct target *by_target(struct discovery *d, const struct query *q)
{
	struct target *target = target_find(d->targets, q->pid);

	if (!target || memcmp(target->cgroup, q->cgroup, sizeof(q->cgroup)) != 0 ||
	    strncmp(target->comm, q->comm, PID_COMM_MAX) != 0)
		return NULL;
	target->used_ns = nsec_monotonic();
	return target;
}

static struct owner *cached(struct discovery *d, const struct target *target)
{
	d->n_lookups[target->owner ? LOOKUP_CACHED : LOOKUP_FILTERED]++;
	return target->owner;
}

/* Keep the answer with the process, which then holds the reference to @owner. NULL: filtered. */
static struct owner *keep(struct discovery *d, const struct query *q, struct owner *owner,
			  enum lookup outcome)
{
	struct target *target;
	int r = target_set(d->targets, q->pid, owner, &target);

	owner_unref(owner);
	if (r) {
		d->n_lookups[LOOKUP_UNKNOWN_LIMIT]++;
		return owner_unknown(d->owners);
	}
	memcpy(target->cgroup, q->cgroup, sizeof(q->cgroup));
	memset(target->comm, 0, sizeof(target->comm));
	memcpy(target->comm, q->comm, strnlen(q->comm, PID_COMM_MAX - 1));
	d->n_lookups[outcome]++;
	return owner;
}

static struct owner *unknown(struct discovery *d, enum lookup outcome)
{
	d->n_lookups[outcome]++;
	return owner_unknown(d->owners);
}

/* The unit of a process of the host: from /proc, else from the directories its sample names. */
static bool find_unit(struct discovery *d, const struct query *q, struct buf *b,
		      struct cgroupdir_path *path, struct text *ret)
{
	struct cgroupdir *dir;

	if (!read_proc_cgroup(d, q->pid, b) && b->data)
		return cgroup_unit_proc(text_of_bytes(b->data, b->len), ret);
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		dir = cgroupfs_find(d->fs, h, q->cgroup[h]);
		if (!dir)
			continue;
		cgroupdir_path(dir, path);
		if (cgroup_unit(text_of(path->s), ret))
			return true;
	}
	return false;
}

static int host_owner_new(struct discovery *d, const struct query *q, struct owner **ret)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PROC_CGROUP_BYTES_MAX);
	struct cgroupdir_path path;
	struct text unit;

	if (find_unit(d, q, &b, &path, &unit))
		return owner_unit(d->owners, unit, ret);
	return owner_process(d->owners, q->comm, ret);
}

static struct owner *host_owner(struct discovery *d, const struct query *q)
{
	struct target *target;
	struct owner *owner;

	if (!d->host_processes) {
		d->n_lookups[LOOKUP_FILTERED]++;
		return NULL;
	}
	target = by_target(d, q);
	if (target)
		return cached(d, target);
	if (host_owner_new(d, q, &owner))
		return unknown(d, LOOKUP_UNKNOWN_LIMIT);
	return keep(d, q, owner, LOOKUP_HOST);
}

/* ---- an id that is not in the table ---- */

/* The process lives, and this is its /proc/PID/cgroup. */
static struct owner *look_at_proc(struct discovery *d, const struct query *q, struct text text)
{
	struct owner *owner;
	struct cgroup_id id;
	bool known;

	learn(d, text);
	owner = by_table(d, q, &known);
	if (owner) {
		d->n_lookups[LOOKUP_LEARNED]++;
		return owner;
	}
	/* behind a ceiling, or moved since; or seen from a cgroup namespace of our own */
	cgroup_parse_proc(text, &id);
	if (!known && !id.kind && !d->host_processes)
		return keep(d, q, NULL, LOOKUP_FILTERED);
	if (known || !id.kind)
		return host_owner(d, q);
	if (owner_container(d->owners, &id, &owner))
		return unknown(d, LOOKUP_UNKNOWN_LIMIT);
	return keep(d, q, owner, LOOKUP_PROC);
}

/* The process has gone, but its directory may be there. */
static struct owner *look_at_all(struct discovery *d, const struct query *q, int why)
{
	struct owner *owner = NULL;
	bool known = false;

	if (cgroupfs_walk_for_miss(d->fs))
		owner = by_table(d, q, &known);
	if (owner) {
		d->n_lookups[LOOKUP_WALKED]++;
		return owner;
	}
	if (known)
		return host_owner(d, q);
	return unknown(d, why == PID_GONE ? LOOKUP_UNKNOWN_GONE : LOOKUP_UNKNOWN_UNREADABLE);
}

static struct owner *look(struct discovery *d, const struct query *q)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PROC_CGROUP_BYTES_MAX);
	struct target *target = by_target(d, q);
	int r;

	if (target)
		return cached(d, target);
	r = read_proc_cgroup(d, q->pid, &b);
	if (r || !b.data)
		return look_at_all(d, q, r);
	return look_at_proc(d, q, text_of_bytes(b.data, b.len));
}

struct owner *discovery_owner(struct discovery *d, uint64_t cgroup_id, uint64_t cgroup_v1_id,
			      const struct pid_id *pid, const char *comm)
{
	struct query q = {
		.cgroup = {[HIERARCHY_V2] = cgroup_id, [HIERARCHY_V1] = cgroup_v1_id},
		.pid = pid,
		.comm = comm,
	};
	struct owner *owner;
	bool known;

	owner = by_table(d, &q, &known);
	if (owner)
		d->n_lookups[LOOKUP_TABLE]++;
	else
		owner = known ? host_owner(d, &q) : look(d, &q);
	if (owner)
		owner->last_seen_ns = nsec_wall();
	return owner;
}

/* ---- lists ---- */

struct owner *discovery_next_owner(struct discovery *d, const struct owner *owner)
{
	return owner_next(d->owners, owner);
}

void discovery_for_each_cgroup(struct discovery *d, discovery_cgroup_fn fn, void *ctx)
{
	struct cgroupdir *dir = NULL;

	while ((dir = cgroupfs_next(d->fs, dir))) {
		struct owner *owner = dir->gone_ns ? NULL : dir_owner(d, dir);

		if (owner)
			fn(ctx, owner, dir->key.id);
	}
}

struct listing {
	struct discovery *d;
	struct owner *owner; /* of the directory that is read */
	discovery_process_fn fn;
	void *ctx;
	int result; /* of @fn, to stop with */
};

enum { LISTING_STOP = ROOT_OUTCOME_MAX };

/* @comm is that of a host's process, whose owner hangs on it; else NULL. */
static int list_process(struct listing *l, const struct pid_id *pid, struct owner *owner,
			const char *comm)
{
	struct target *target;
	int r;

	r = target_set(l->d->targets, pid, owner, &target);
	if (r < 0)
		return r;
	if (!r)
		target->listing = l->d->listing;
	if (!r && comm)
		memcpy(target->comm, comm, PID_COMM_MAX);
	owner->last_seen_ns = nsec_wall();
	l->d->n_listed[LISTED_OK]++;
	l->result = l->fn(l->ctx, pid, owner);
	return l->result ? LISTING_STOP : 0;
}

/* Whether the process with this number is new to the listing; @ret is its identity. */
static bool list_identify(struct discovery *d, pid_t pid, struct pid_id *ret)
{
	struct target *target;
	int r = pid_read(d->proc, pid, ret);

	if (r) {
		d->n_listed[r == PID_GONE ? LISTED_GONE : LISTED_UNREADABLE]++;
		return false;
	}
	/* it may be in two trees, or have moved while we read */
	target = target_find(d->targets, ret);
	return !target || target->listing != d->listing;
}

static int list_container_pid(void *ctx, pid_t pid)
{
	struct listing *l = ctx;
	struct pid_id id;

	if (pid == 0) {
		l->d->n_listed[LISTED_OTHER_NAMESPACE]++;
		return 0;
	}
	return list_identify(l->d, pid, &id) ? list_process(l, &id, l->owner, NULL) : 0;
}

static int list_containers(struct listing *l)
{
	struct cgroupdir *dir = NULL;
	int r;

	while ((dir = cgroupfs_next(l->d->fs, dir))) {
		l->owner = dir->gone_ns ? NULL : dir_owner(l->d, dir);
		if (!l->owner)
			continue;
		r = cgroupfs_procs(l->d->fs, dir, list_container_pid, l);
		if (r == LISTING_STOP || r == -ENOMEM)
			return r;
		/* of a threaded cgroup an ancestor lists the processes */
		if (r && r != ROOT_GONE && r != -EOPNOTSUPP)
			l->d->n_listed[LISTED_UNREADABLE]++;
	}
	return 0;
}

/* Kernel threads have no program. */
static bool has_program(const struct discovery *d, pid_t pid)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(8192);
	char path[32];

	snprintf(path, sizeof(path), "%d/exe", (int)pid);
	return root_read_link(d->proc, path, &b) != ROOT_GONE;
}

static int list_host_pid(void *ctx, pid_t pid)
{
	char comm[PID_COMM_MAX];
	struct listing *l = ctx;
	struct owner *owner;
	struct target *target;
	struct pid_id id;
	int r;

	if (!has_program(l->d, pid) || !list_identify(l->d, pid, &id) ||
	    pid_read_comm(l->d->proc, &id, comm))
		return 0;
	target = target_find(l->d->targets, &id);
	if (target && target->owner && strcmp(target->comm, comm) == 0)
		return list_process(l, &id, target->owner, comm);
	r = host_owner_new(l->d, &(struct query){.pid = &id, .comm = comm}, &owner);
	if (r)
		return r < 0 ? r : 0;
	r = list_process(l, &id, owner, comm);
	owner_unref(owner);
	return r;
}

int discovery_for_each_process(struct discovery *d, discovery_process_fn fn, void *ctx)
{
	struct listing l = {.d = d, .fn = fn, .ctx = ctx};
	int r;

	d->listing++;
	r = list_containers(&l);
	if (!r && d->host_processes)
		r = pid_for_each(d->proc, list_host_pid, &l);
	if (l.result)
		return l.result;
	return r < 0 ? r : 0;
}

/* ---- the whole ---- */

static void on_sweep(void *ctx)
{
	struct discovery *d = ctx;

	target_expire(d->targets, d->grace_ns);
}

static int discovery_init(struct discovery *d, const struct discovery_opts *opts)
{
	struct cgroupfs_opts fs_opts = {
		.path = opts->cgroupfs_root,
		.proc = opts->proc,
		.loop = opts->loop,
		.grace_ns = opts->grace_ns,
		.events = &dir_events,
		.ctx = d,
	};
	int r;

	r = owner_table_new(opts->node_name, &d->owners);
	if (!r)
		r = target_table_new(&d->targets);
	if (!r)
		r = cgroupfs_new(&fs_opts, &d->fs);
	if (!r)
		r = cgroupfs_walk(d->fs, CGROUPFS_WALK_START);
	if (r || !opts->loop)
		return r;
	r = loop_add_timer(opts->loop, on_sweep, d, &d->sweep);
	return r < 0 ? r : loop_arm(d->sweep, DISCOVERY_SWEEP_NS, DISCOVERY_SWEEP_NS);
}

DEFINE_CLEANUP(struct discovery *, discovery_freep, discovery_free);

int discovery_new(const struct discovery_opts *opts, struct discovery **ret)
{
	_cleanup_(discovery_freep) struct discovery *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->proc = opts->proc;
	d->host_processes = opts->host_processes;
	d->grace_ns = opts->grace_ns;
	r = discovery_init(d, opts);
	if (r)
		return r;
	*ret = take_ptr(d);
	return 0;
}

void discovery_free(struct discovery *d)
{
	if (!d)
		return;
	loop_remove(d->sweep);
	cgroupfs_free(d->fs);
	target_table_free(d->targets);
	owner_table_free(d->owners);
	free(d);
}

enum controller discovery_v1_controller(const struct discovery *d)
{
	return cgroupfs_controller(d->fs);
}

/* ---- metrics ---- */

static void collect_owners(struct discovery *d, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {
		"podprof_owners", METRIC_GAUGE,
		"What samples can belong to. A container that is gone stays for late samples.",
		NULL};
	uint64_t n[2][OWNER_KIND_MAX] = {0};
	const struct owner *owner = NULL;

	while ((owner = owner_next(d->owners, owner)))
		n[owner_alive(owner)][owner->kind]++;
	metric_family(sink, &family);
	for (enum owner_kind kind = 0; kind < OWNER_KIND_MAX; kind++)
		for (int alive = 0; alive < 2; alive++)
			metric_u64(
				sink, n[alive][kind],
				(const struct metric_label[]){{"kind", owner_kind_name(kind)},
							      {"state", alive ? "alive" : "gone"}},
				2);
}

static void collect_targets(const struct discovery *d, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {
		"podprof_targets", METRIC_GAUGE,
		"Processes whose owner is kept: in the last listing, or asked for since.", NULL};
	static const char *const names[] = {"other", "listed"};
	uint64_t n[2] = {0};
	const struct target *target = NULL;

	while ((target = target_next(d->targets, target)))
		n[d->listing && target->listing == d->listing]++;
	metric_by_name(sink, &family, "state", n, names, array_size(n));
}

void discovery_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc lookups = {
		"podprof_owner_lookups", METRIC_COUNTER,
		"Distinct stacks by how their owner was found.", NULL};
	static const struct metric_family_desc listed = {
		"podprof_processes_listed", METRIC_COUNTER,
		"Processes found in listings, and those left out by reason.", NULL};
	struct discovery *d = ctx;

	collect_owners(d, sink);
	collect_targets(d, sink);
	metric_by_name(sink, &lookups, "outcome", d->n_lookups, lookup_names, LOOKUP_MAX);
	metric_by_name(sink, &listed, "outcome", d->n_listed, listed_names, LISTED_MAX);
	cgroupfs_collect(d->fs, sink);
}
