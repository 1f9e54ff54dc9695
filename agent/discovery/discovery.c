// SPDX-License-Identifier: Apache-2.0
/*
 * A sample carries the cgroup id of its task at the time of the sample. This id is more reliable
 * than a later look into /proc, because short processes have always ended by then. So nearly every
 * sample needs a single lookup in the table of directories. Two cases remain:
 *
 *   - The id is not in the table. The directory is newer than the last event, beyond a ceiling, or
 *     was made and removed between two looks. The lookup reads pending events first. Next comes the
 *     kernel's record of recent mkdirs, which has the path from the root of the hierarchy. This
 *     path counts only if the agent sees the hierarchy from its root, so that both views of a
 *     container give the same entity. If the record lacks the id and the process lives,
 *     /proc/PID/cgroup has a path. The path counts if its directory has the sample's id: the
 *     process may have moved into another container since. As the last resort, all directories are
 *     scanned, once a second at most, and less often if a walk takes long.
 *
 *     If the agent has its own cgroup namespace (usual for containers on version 2), paths in /proc
 *     begin with "/../.." and name no comparable directory. Such a path counts for a container that
 *     is not in the table at all.
 *
 *   - The directory is outside containers. The entity is the systemd unit, from the unified
 *     hierarchy or name=systemd, or else all processes of the same name. podprof does not follow
 *     name=systemd, so the unit needs /proc, once for each process.
 *
 * On a node with both versions, a task has a cgroup in each, and either may have the container.
 */
#include "discovery/discovery.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "discovery/cgroup_line.h"
#include "discovery/cgroupfs.h"
#include "discovery/entity_resolver.h"
#include "discovery/process_cache.h"
#include "discovery/process_list.h"
#include "discovery/unit.h"

/* Period of the sweep that drops unused processes. */
#define DISCOVERY_SWEEP_NS (30 * NSEC_PER_SEC)
/* A process without a sample or listing for so long is unused, as its mappings (address_space.c).
 * The next sample reads two files of /proc; if no process of the entity is left, it makes the
 * entity again, with names and an update of the kernel's filter. */
#define DISCOVERY_IDLE_NS  (100 * NSEC_PER_SEC)

enum lookup {
	LOOKUP_TABLE,	/* a container, by id */
	LOOKUP_CACHED,	/* same process and cgroups as before */
	LOOKUP_EVENT,	/* by id, after reading pending inotify events */
	LOOKUP_MADE,	/* a container, by the path of its mkdir event */
	LOOKUP_LEARNED, /* by id, after reading the path in /proc */
	LOOKUP_PROC,	/* a container, by the path in /proc alone */
	LOOKUP_WALKED,	/* by id, after a walk */
	LOOKUP_HOST,	/* outside containers, entity found */
	LOOKUP_FILTERED,
	LOOKUP_UNKNOWN_GONE,	   /* id not in the table, and the process has ended */
	LOOKUP_UNKNOWN_MOVED,	   /* ... and the process is in another cgroup now */
	LOOKUP_UNKNOWN_UNREADABLE, /* ... and /proc/PID/cgroup cannot be read */
	LOOKUP_UNKNOWN_LIMIT,	   /* too many entities, too many processes, or no memory */
	LOOKUP_MAX,
};

static const char *const lookup_names[LOOKUP_MAX] = {
	[LOOKUP_TABLE] = "table",
	[LOOKUP_CACHED] = "cached",
	[LOOKUP_EVENT] = "inotify_event",
	[LOOKUP_MADE] = "mkdir_event",
	[LOOKUP_LEARNED] = "proc_id",
	[LOOKUP_PROC] = "proc_path",
	[LOOKUP_WALKED] = "walk",
	[LOOKUP_HOST] = "host",
	[LOOKUP_FILTERED] = "filtered",
	[LOOKUP_UNKNOWN_GONE] = "unknown_exited",
	[LOOKUP_UNKNOWN_MOVED] = "unknown_moved",
	[LOOKUP_UNKNOWN_UNREADABLE] = "unknown_unreadable",
	[LOOKUP_UNKNOWN_LIMIT] = "unknown_limit",
};

struct discovery {
	struct entity_resolver resolver;
	bool host_processes;
	uint64_t grace_ns;
	struct process_cache *processes;
	struct process_list process_list;
	struct loop_source *sweep;
	discovery_made_fn made;
	void *made_ctx;
	uint64_t n_lookups[LOOKUP_MAX];
};

/* The arguments of discovery_entity(). */
struct query {
	uint64_t cgroup[HIERARCHY_MAX];
	const struct pid_id *pid;
	const char *comm;
};

/* ---- by cgroup id ---- */

/* Of a task's two cgroups, the richer one wins; of equals, the inner container. Docker in a
 * container has only the version 1 hierarchies, and its containers stay in the outer container's
 * cgroup in the unified hierarchy. */
static bool is_better(const struct cgroup_id *id, const struct cgroup_id *than)
{
	int by = cgroup_richness(id) - cgroup_richness(than);

	return by > 0 || (by == 0 && cgroup_is_inside(id, than));
}

/**
 * by_table() - look up a task's cgroups in the table
 * @ret_known: all cgroups of the task are in the table
 *
 * Return: the entity of the container or pod, or NULL.
 */
static struct entity *by_table(struct discovery *d, const struct query *q, bool *ret_known)
{
	struct entity *best = NULL, *entity;
	struct cgroupdir *dir;
	bool any = false, missing = false;

	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		if (!cgroupfs_has(d->resolver.fs, h) || !q->cgroup[h])
			continue;
		dir = cgroupfs_find(d->resolver.fs, h, q->cgroup[h]);
		entity = dir ? entity_resolver_of_dir(&d->resolver, dir) : NULL;
		any = true;
		missing |= !dir;
		if (entity && (!best || is_better(&entity->id, &best->id)))
			best = entity;
	}
	*ret_known = any && !missing;
	return best;
}

/* ---- by /proc ---- */

/* Relation of /proc/PID/cgroup to the cgroup of the sample. */
enum told {
	TOLD_THIS,   /* the process is still in this cgroup */
	TOLD_HIDDEN, /* unknown: the path begins above our view ("/../..") */
	TOLD_CUT,    /* unknown: the kernel cuts the path off */
	TOLD_OTHER,  /* the process has moved, or the cgroup has gone */
};

/* Adds the paths to the table, and compares them with the sample's ids. */
static enum told learn(struct discovery *d, const struct query *q, struct strview proc_cgroup)
{
	enum told told = TOLD_THIS, said;
	struct cgroup_line line;
	enum hierarchy h;

	while (cgroup_line_next(&proc_cgroup, &line)) {
		if (!cgroupfs_of_line(d->resolver.fs, &line, &h) || !q->cgroup[h])
			continue;
		if (strview_starts(&line.path, "/.."))
			said = TOLD_HIDDEN;
		else if (strview_len(&line.path) >= CGROUPDIR_PATH_MAX - 1)
			said = TOLD_CUT;
		else
			said = cgroupfs_learn(d->resolver.fs, h, line.path) == q->cgroup[h]
				       ? TOLD_THIS
				       : TOLD_OTHER;
		told = said > told ? said : told;
	}
	return told;
}

/* ---- by process ---- */

/* The cached answer for the same process, name and cgroups; NULL for none. */
static struct cached_process *by_process(struct discovery *d, const struct query *q)
{
	struct cached_process *process = process_cache_find(d->processes, q->pid);

	if (!process || memcmp(process->cgroup, q->cgroup, sizeof(q->cgroup)) != 0 ||
	    strncmp(process->comm, q->comm, PID_COMM_MAX) != 0)
		return NULL;
	process->used_ns = nsec_monotonic();
	return process;
}

static struct entity *cached(struct discovery *d, const struct cached_process *process)
{
	d->n_lookups[process->entity ? LOOKUP_CACHED : LOOKUP_FILTERED]++;
	return process->entity;
}

/* Caches the answer with the process. Takes the caller's reference to @entity; the cache then holds
 * its own. NULL: filtered out. */
static struct entity *keep(struct discovery *d, const struct query *q, struct entity *entity,
			   enum lookup outcome)
{
	struct cached_process *process;
	int r = process_cache_set(d->processes, q->pid, entity, &process);

	entity_unref(entity);
	if (r) {
		d->n_lookups[LOOKUP_UNKNOWN_LIMIT]++;
		return entity_unknown(d->resolver.entities);
	}
	memcpy(process->cgroup, q->cgroup, sizeof(q->cgroup));
	memset(process->comm, 0, sizeof(process->comm));
	memcpy(process->comm, q->comm, strnlen(q->comm, PID_COMM_MAX - 1));
	d->n_lookups[outcome]++;
	return entity;
}

static struct entity *unknown(struct discovery *d, enum lookup outcome)
{
	d->n_lookups[outcome]++;
	return entity_unknown(d->resolver.entities);
}

/* The entity of a container known only by its path. */
static struct entity *container_entity(struct discovery *d, const struct query *q,
				       const struct cgroup_id *id, enum lookup outcome)
{
	struct entity *entity;

	if (entity_container(d->resolver.entities, id, &entity))
		return unknown(d, LOOKUP_UNKNOWN_LIMIT);
	return keep(d, q, entity, outcome);
}

static struct entity *host_entity(struct discovery *d, const struct query *q)
{
	struct cached_process *process;
	struct entity *entity;

	if (!d->host_processes) {
		d->n_lookups[LOOKUP_FILTERED]++;
		return NULL;
	}
	process = by_process(d, q);
	if (process)
		return cached(d, process);
	if (entity_resolver_of_host(&d->resolver, q->pid, q->comm, q->cgroup, &entity))
		return unknown(d, LOOKUP_UNKNOWN_LIMIT);
	return keep(d, q, entity, LOOKUP_HOST);
}

/* ---- an id that is not in the table ---- */

/* Bytes of a container's path with its NUL; the kubelet's have 200. */
#define MADE_PATH_BYTES 1024

/* As by_table(), for directories that discovery never saw. */
static bool by_making(struct discovery *d, const struct query *q, struct cgroup_id *ret,
		      bool *ret_known)
{
	char path[MADE_PATH_BYTES];
	struct cgroup_id id;

	*ret = (struct cgroup_id){.kind = CGROUP_KIND_NONE};
	*ret_known = true;
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		if (!cgroupfs_has(d->resolver.fs, h) || !q->cgroup[h] ||
		    cgroupfs_find(d->resolver.fs, h, q->cgroup[h]))
			continue;
		/* the path of the directory's mkdir event, if there is a record */
		if (!d->made || !cgroupfs_from_root(d->resolver.fs, h) ||
		    !d->made(d->made_ctx, h, q->cgroup[h], path, sizeof(path))) {
			*ret_known = false;
			continue;
		}
		cgroup_parse_path(strview_of(path), &id);
		if (id.kind && is_better(&id, ret))
			*ret = id;
	}
	return ret->kind;
}

/* A walk may still find the directory. */
static struct entity *by_walk(struct discovery *d, const struct query *q, bool *ret_known)
{
	struct entity *entity;

	if (!cgroupfs_walk_for_miss(d->resolver.fs))
		return NULL;
	entity = by_table(d, q, ret_known);
	if (entity)
		d->n_lookups[LOOKUP_WALKED]++;
	return entity;
}

/* For a living process with its /proc/PID/cgroup. */
static struct entity *look_at_proc(struct discovery *d, const struct query *q, struct strview text)
{
	enum told told = learn(d, q, text);
	struct entity *entity;
	struct cgroup_id id;
	bool known;

	entity = by_table(d, q, &known);
	if (entity) {
		d->n_lookups[LOOKUP_LEARNED]++;
		return entity;
	}
	if (!known && told != TOLD_THIS)
		entity = by_walk(d, q, &known);
	if (entity)
		return entity;
	/* an unknown directory is beyond a ceiling, was left by the process, or is hidden */
	cgroup_parse_proc(text, &id);
	/* True if the sample may belong to the process's present container. Only a container itself
	 * makes directories so deep, and its processes would hide from it there. */
	if (!known &&
	    !(told == TOLD_THIS || (told == TOLD_CUT && id.kind) ||
	      (told == TOLD_HIDDEN && !(id.kind && entity_lives(d->resolver.entities, &id)))))
		return unknown(d, LOOKUP_UNKNOWN_MOVED);
	if (!known && !id.kind && !d->host_processes)
		return keep(d, q, NULL, LOOKUP_FILTERED);
	if (known || !id.kind)
		return host_entity(d, q);
	return container_entity(d, q, &id, LOOKUP_PROC);
}

static struct entity *look(struct discovery *d, const struct query *q)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PID_CGROUP_BYTES_MAX);
	struct cached_process *process = by_process(d, q);
	struct entity *entity;
	struct cgroup_id id;
	bool known;
	int r;

	if (process)
		return cached(d, process);
	cgroupfs_catch_up(d->resolver.fs);
	entity = by_table(d, q, &known);
	if (entity) {
		d->n_lookups[LOOKUP_EVENT]++;
		return entity;
	}
	if (!known && by_making(d, q, &id, &known))
		return container_entity(d, q, &id, LOOKUP_MADE);
	if (known)
		return host_entity(d, q);
	r = pid_read_cgroup(d->resolver.proc, q->pid, &b);
	if (!r && b.data)
		return look_at_proc(d, q, strview_of_bytes(b.data, b.len));
	/* an ended process, or an unreadable process */
	entity = by_walk(d, q, &known);
	if (entity)
		return entity;
	if (known)
		return host_entity(d, q);
	return unknown(d, r == PID_GONE ? LOOKUP_UNKNOWN_GONE : LOOKUP_UNKNOWN_UNREADABLE);
}

void discovery_ask(struct discovery *d, discovery_made_fn made, void *ctx)
{
	d->made = made;
	d->made_ctx = ctx;
}

struct entity *discovery_entity(struct discovery *d, uint64_t cgroup_id, uint64_t cgroup_v1_id,
				const struct pid_id *pid, const char *comm)
{
	struct query q = {
		.cgroup = {[HIERARCHY_V2] = cgroup_id, [HIERARCHY_V1] = cgroup_v1_id},
		.pid = pid,
		.comm = comm,
	};
	struct entity *entity;
	bool known;

	entity = by_table(d, &q, &known);
	if (entity)
		d->n_lookups[LOOKUP_TABLE]++;
	else
		entity = known ? host_entity(d, &q) : look(d, &q);
	return entity;
}

/* ---- lists ---- */

struct entity *discovery_next_entity(struct discovery *d, const struct entity *entity)
{
	return entity_next(d->resolver.entities, entity);
}

void discovery_listen(struct discovery *d, entity_fn fn, void *ctx)
{
	entity_table_listen(d->resolver.entities, fn, ctx);
}

void discovery_watch(struct discovery *d, entity_change_fn fn, void *ctx)
{
	entity_table_watch(d->resolver.entities, fn, ctx);
}

enum discovery_find discovery_find_container(struct discovery *d, const char *id, char *ret_id)
{
	const struct entity *entity = NULL, *found = NULL;
	const char *colon = strstr(id, "://"), *begin = colon ? colon + 3 : id;

	/* kubectl prints ids with the runtime in front: "containerd://..." */
	while ((entity = discovery_next_entity(d, entity))) {
		if (entity->kind != ENTITY_CONTAINER || !entity_alive(entity) ||
		    strncmp(entity->id.container_id, begin, strlen(begin)) != 0)
			continue;
		if (found && strcmp(found->id.container_id, entity->id.container_id) != 0)
			return DISCOVERY_AMBIGUOUS;
		found = entity;
	}
	if (!found || !*begin)
		return DISCOVERY_NO_SUCH;
	memcpy(ret_id, found->id.container_id, sizeof(found->id.container_id));
	return DISCOVERY_FOUND;
}

bool discovery_in_container(const struct entity *entity, const char *id)
{
	return entity && entity_has_dirs(entity->kind) &&
	       (strcmp(entity->id.container_id, id) == 0 || strcmp(entity->id.outer_id, id) == 0);
}

enum { RUNS = ROOT_OUTCOME_MAX };

static int found_process(void *ctx, pid_t pid)
{
	(void)ctx;
	(void)pid;
	return RUNS;
}

bool discovery_container_runs(struct discovery *d, const char *id)
{
	struct cgroupdir *dir = NULL;

	while ((dir = cgroupfs_next(d->resolver.fs, dir))) {
		struct entity *entity =
			dir->gone_ns ? NULL : entity_resolver_known(&d->resolver, dir);
		int r;

		if (!discovery_in_container(entity, id))
			continue;
		r = cgroupfs_procs(d->resolver.fs, dir, found_process, NULL);
		/* the processes of a threaded cgroup are in an ancestor's list */
		if (r && r != ROOT_GONE && r != -EOPNOTSUPP)
			return true; /* or an unreadable directory, which may have processes */
	}
	return false;
}

static void visit_cgroup(struct discovery *d, struct cgroupdir *dir, discovery_cgroup_fn fn,
			 void *ctx)
{
	struct entity *entity = dir->gone_ns ? NULL : entity_resolver_known(&d->resolver, dir);

	if (entity || (!dir->gone_ns && dir->kind == CGROUP_KIND_POD))
		fn(ctx, entity, dir->key.hierarchy, dir->key.id);
}

static void visit_host_cgroup(struct discovery *d, struct cgroupdir *dir, discovery_cgroup_fn fn,
			      void *ctx)
{
	const enum hierarchy tree =
		cgroupfs_has(d->resolver.fs, HIERARCHY_V1) ? HIERARCHY_V1 : HIERARCHY_V2;

	if (dir->key.hierarchy == tree && !dir->gone_ns && !dir->kind)
		fn(ctx, d->host_processes ? entity_resolver_unit_of_dir(&d->resolver, dir) : NULL,
		   tree, dir->key.id);
}

void discovery_for_each_cgroup(struct discovery *d, discovery_cgroup_fn fn, void *ctx)
{
	struct cgroupdir *dir = NULL;

	while ((dir = cgroupfs_next(d->resolver.fs, dir)))
		visit_cgroup(d, dir, fn, ctx);
}

struct cgroup_listing {
	struct discovery *discovery;
	struct cgroupdir_cursor cursor;
	bool of_host;
	discovery_cgroup_fn fn;
	void *ctx;
};

int discovery_list_cgroups(struct discovery *d, bool of_host, discovery_cgroup_fn fn, void *ctx,
			   struct cgroup_listing **ret)
{
	struct cgroup_listing *listing = calloc(1, sizeof(*listing));

	if (!listing)
		return -ENOMEM;
	*listing =
		(struct cgroup_listing){.discovery = d, .of_host = of_host, .fn = fn, .ctx = ctx};
	cgroupfs_cursor_init(d->resolver.fs, &listing->cursor);
	*ret = listing;
	return 0;
}

bool cgroup_listing_step(struct cgroup_listing *listing)
{
	struct cgroupdir *dir = cgroupdir_cursor_next(&listing->cursor);

	if (dir && listing->of_host)
		visit_host_cgroup(listing->discovery, dir, listing->fn, listing->ctx);
	else if (dir)
		visit_cgroup(listing->discovery, dir, listing->fn, listing->ctx);
	return dir;
}

void cgroup_listing_free(struct cgroup_listing *listing)
{
	if (!listing)
		return;
	cgroupfs_cursor_deinit(listing->discovery->resolver.fs, &listing->cursor);
	free(listing);
}

uint64_t discovery_newest_cgroup(const struct discovery *d)
{
	return cgroupfs_newest(d->resolver.fs, HIERARCHY_V2);
}

bool discovery_has_host_processes(const struct discovery *d)
{
	return d->host_processes;
}

int discovery_for_each_process(struct discovery *d, discovery_process_fn fn, void *ctx)
{
	return process_list_run(&d->process_list, d->host_processes, fn, ctx);
}

int discovery_list_processes(struct discovery *d, discovery_process_fn fn, void *ctx,
			     struct process_listing **ret)
{
	return process_listing_new(&d->process_list, d->host_processes, fn, ctx, ret);
}

/* The outermost directory of a container or of a unit around @dir; NULL: neither. A user makes any
 * unit below the user's own systemd, which is a unit. */
static const struct cgroupdir *owner_dir(const struct cgroupdir *dir)
{
	const struct cgroupdir *unit = NULL;

	if (dir->top)
		return dir->top;
	for (; dir; dir = dir->parent)
		if (unit_has_processes(strview_of(dir->name)))
			unit = dir;
	return unit;
}

/* NULL: no container and no unit. @ret_unknown: an id without a known directory, or 0. */
static const struct cgroupdir *find_owner(const struct discovery *d, const uint64_t *ids,
					  uint64_t *ret_unknown)
{
	const struct cgroupdir *best = NULL;

	*ret_unknown = 0;
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		const struct cgroupdir *dir, *owner;

		if (!ids[h] || !cgroupfs_has(d->resolver.fs, h))
			continue;
		dir = cgroupfs_find(d->resolver.fs, h, ids[h]);
		owner = dir ? owner_dir(dir) : NULL;
		if (!dir)
			*ret_unknown = ids[h];
		if (owner && (!best || (owner->top && !best->top)))
			best = owner;
	}
	return best;
}

/* With both versions, the containers may all be in one directory of the one. So of a new container
 * only the unknown id is its own. */
uint64_t discovery_owner(struct discovery *d, uint64_t cgroup_id, uint64_t cgroup_v1_id)
{
	const uint64_t ids[HIERARCHY_MAX] = {
		[HIERARCHY_V1] = cgroup_v1_id, [HIERARCHY_V2] = cgroup_id};
	const struct cgroupdir *owner = NULL;
	uint64_t unknown = 0;

	if (d)
		owner = find_owner(d, ids, &unknown);
	if (unknown) {
		cgroupfs_catch_up(d->resolver.fs);
		owner = find_owner(d, ids, &unknown);
	}
	if (owner && (owner->top || !unknown))
		return owner->key.id;
	if (unknown)
		return unknown;
	return cgroup_v1_id ? cgroup_v1_id : cgroup_id;
}

/* ---- the whole ---- */

static void on_sweep(void *ctx)
{
	struct discovery *d = ctx;

	process_cache_expire(d->processes,
			     d->grace_ns > DISCOVERY_IDLE_NS ? d->grace_ns : DISCOVERY_IDLE_NS);
}

/* True for a procfs of another PID namespace. A /proc that is not a procfs is a copy; its pids
 * match its cgroups. */
static bool is_foreign(const struct root *proc)
{
	struct statfs fs;

	return !pid_is_ours(proc) && !fstatfs(proc->fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

static int discovery_init(struct discovery *d, const struct discovery_opts *opts)
{
	struct cgroupfs_opts fs_opts = {
		.path = opts->cgroupfs_root,
		.proc = opts->proc,
		.loop = opts->loop,
		.grace_ns = opts->grace_ns,
		.events = &entity_resolver_events,
		.ctx = &d->resolver,
	};
	int r;

	r = entity_table_new(opts->node_name, &d->resolver.entities);
	if (!r)
		r = process_cache_new(&d->processes);
	if (!r)
		r = cgroupfs_new(&fs_opts, &d->resolver.fs);
	d->process_list = (struct process_list){
		.resolver = &d->resolver,
		.processes = d->processes,
		.foreign = is_foreign(opts->proc),
		.true_paths = pid_sees_all_cgroups(opts->proc),
	};
	if (!r)
		r = cgroupfs_walk(d->resolver.fs, CGROUPFS_WALK_START);
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
	d->resolver.proc = opts->proc;
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
	cgroupfs_free(d->resolver.fs);
	process_cache_free(d->processes);
	entity_table_free(d->resolver.entities);
	free(d);
}

bool discovery_is_copy(const struct discovery *d)
{
	return cgroupfs_is_copy(d->resolver.fs);
}

enum controller discovery_v1_controller(const struct discovery *d)
{
	return cgroupfs_controller(d->resolver.fs);
}

/* ---- metrics ---- */

static void collect_entities(struct discovery *d, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {
		"podprof_entities", METRIC_GAUGE,
		"Entities of samples. A gone container stays for late samples.", NULL};
	uint64_t n[2][ENTITY_KIND_MAX] = {0};
	const struct entity *entity = NULL;

	while ((entity = entity_next(d->resolver.entities, entity)))
		n[entity_alive(entity)][entity->kind]++;
	metric_family(sink, &family);
	for (enum entity_kind kind = 0; kind < ENTITY_KIND_MAX; kind++)
		for (int alive = 0; alive < 2; alive++)
			metric_u64(
				sink, n[alive][kind],
				(const struct metric_label[]){{"kind", entity_kind_name(kind)},
							      {"state", alive ? "alive" : "gone"}},
				2);
}

void discovery_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc lookups = {
		"podprof_entity_lookups", METRIC_COUNTER,
		"Distinct stacks by the way their entity was found.", NULL};
	struct discovery *d = ctx;

	collect_entities(d, sink);
	process_list_collect(&d->process_list, sink);
	metric_by_name(sink, &lookups, "outcome", d->n_lookups, lookup_names, LOOKUP_MAX);
	cgroupfs_collect(d->resolver.fs, sink);
}
