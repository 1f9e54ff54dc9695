// SPDX-License-Identifier: Apache-2.0
/*
 * The processes of containers come from cgroup.procs, directory by directory; the processes of the
 * host are the rest of /proc. A process may be in two hierarchies, or move during the listing. So a
 * listing has a number, and lists each process once, with the first entity found. The process cache
 * keeps the results for the next listing. One listing of /proc with inodes tells the living
 * processes, at a third of the cost of reading each stat.
 *
 * The second hierarchy nearly always has the same processes, and pods' own directories have none.
 * Reading them all costs as much as the first hierarchy, for nothing. So the listing instead reads
 * /proc/PID/cgroup of each process not found yet, while few remain: a node's daemons.
 *
 * A cgroup.procs has pids of the reader's namespace, and 0 for a process outside. If /proc is of
 * another PID namespace (the node's, mounted into a pod without hostPID), the same pids mean other
 * processes there. Then the listing reads the cgroup file of every process in /proc.
 */
#include "discovery/process_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/vec.h"
#include "discovery/cgroupfs.h"
#include "discovery/entity_resolver.h"
#include "discovery/process_cache.h"
#include "discovery/cgroup_line.h"

/* Processes remembered from one listing of /proc, 16 bytes each. Reached: the rest is read one by
 * one. */
#define PROCESS_LIST_ROLL_MAX	131072
/* Processes, half of them kernel threads, whose cgroup file can be read in the time of one
 * directory's cgroup.procs. */
#define PROCESS_LIST_ASKED_EACH 2

static const char *const listed_names[LISTED_MAX] = {
	[LISTED_OK] = "ok",
	[LISTED_GONE] = "gone",
	[LISTED_OTHER_NAMESPACE] = "other_pid_namespace",
	[LISTED_UNREADABLE] = "unreadable",
};

/* A process in the listing of /proc. */
struct roll {
	uint32_t pid;
	bool listed;
	bool bare; /* without a program */
	uint64_t inode;
};

/* State of one listing. */
struct run {
	struct process_list *l;
	struct cgroupdir *dir; /* being read; of a container or pod */
	bool host_processes;
	struct roll *roll; /* ascending */
	size_t n_roll;
	size_t roll_cap;
	bool roll_whole;     /* holds the whole listing of /proc */
	enum hierarchy main; /* the hierarchy that is read first */
	uint64_t now_ns;     /* monotonic */
	process_list_fn fn;
	void *ctx;
	int result; /* of @fn, if other than 0 */
};

enum { PROCESS_LIST_STOP = ROOT_OUTCOME_MAX };

/**
 * struct found - a process to be listed
 * @inode:   pid_inode(), to recognise the process in the next listing
 * @roll:    its entry there, or NULL
 * @process: its cache entry, or NULL
 */
struct found {
	struct pid_id id;
	uint64_t inode;
	struct roll *roll;
	struct cached_process *process;
};

/* ---------------------------------------------------------------- who lives */

static int roll_add(void *ctx, pid_t pid, uint64_t inode)
{
	struct run *run = ctx;

	if (run->n_roll && (uint32_t)pid <= run->roll[run->n_roll - 1].pid)
		return 0;
	if (vec_grow(&run->roll, &run->roll_cap, run->n_roll + 1, sizeof(*run->roll),
		     PROCESS_LIST_ROLL_MAX))
		return 1;
	run->roll[run->n_roll++] = (struct roll){.pid = (uint32_t)pid, .inode = inode};
	return 0;
}

static struct roll *roll_find(const struct run *run, pid_t pid)
{
	size_t low = 0, high = run->n_roll;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (run->roll[mid].pid < (uint32_t)pid)
			low = mid + 1;
		else
			high = mid;
	}
	return low < run->n_roll && run->roll[low].pid == (uint32_t)pid ? &run->roll[low] : NULL;
}

/* True if the process is already listed, or has no program. */
static bool is_out(const struct run *run, pid_t pid)
{
	const struct roll *roll = roll_find(run, pid);

	return roll && (roll->listed || roll->bare);
}

/* ---------------------------------------------------------------- one process */

/* Lists a process. @comm: the name of a host process, whose entity depends on it; else NULL. */
static int list_process(struct run *run, const struct found *found, struct entity *entity,
			const char *comm)
{
	struct cached_process *process = found->process;
	int r = 0;

	if (!process || process->entity != entity)
		r = process_cache_set(run->l->processes, &found->id, entity, &process);
	else
		process->used_ns = run->now_ns;
	if (r < 0)
		return r;
	if (!r) {
		process->list_number = run->l->number;
		process->inode = found->inode;
	}
	if (found->roll)
		found->roll->listed = true;
	if (!r && comm)
		memcpy(process->comm, comm, PID_COMM_MAX);
	run->l->n_listed[LISTED_OK]++;
	run->result = run->fn(run->ctx, &found->id, entity);
	return run->result ? PROCESS_LIST_STOP : 0;
}

/* Finds the process with this pid. False if the process is unreadable or already listed. */
static bool identify(struct run *run, pid_t pid, struct found *ret)
{
	struct cached_process *process = process_cache_of_pid(run->l->processes, (uint64_t)pid);
	struct process_list *l = run->l;
	int r;

	/* inode before stat: if the pid changes hands between, the inode must not be the second
	 * process's */
	ret->inode = ret->roll ? ret->roll->inode : pid_inode(l->resolver->proc, pid);
	if (process && ret->inode && process->inode == ret->inode) {
		ret->id = process->id;
		ret->process = process;
		return process->list_number != l->number;
	}
	if (ret->roll) /* this listing of /proc is a while old */
		ret->inode = pid_inode(l->resolver->proc, pid);
	r = pid_read(l->resolver->proc, pid, &ret->id);
	if (r) {
		l->n_listed[r == PID_GONE ? LISTED_GONE : LISTED_UNREADABLE]++;
		return false;
	}
	process = process_cache_find(l->processes, &ret->id);
	return !process || process->list_number != l->number;
}

/* True if the process with this pid is new to the listing. A process may be in two hierarchies, or
 * move during the listing. */
static bool list_identify(struct run *run, pid_t pid, struct found *ret)
{
	*ret = (struct found){.roll = roll_find(run, pid)};
	return !(ret->roll && ret->roll->listed) && identify(run, pid, ret);
}

static int list_container_pid(void *ctx, pid_t pid)
{
	struct run *run = ctx;
	struct entity *entity;
	struct found found;

	if (pid == 0) {
		run->l->n_listed[LISTED_OTHER_NAMESPACE]++;
		return 0;
	}
	if (!list_identify(run, pid, &found))
		return 0;
	entity = entity_resolver_of_dir(run->l->resolver, run->dir);
	return entity ? list_process(run, &found, entity, NULL) : 0;
}

/* Order of directories: first containers inside containers, because in the other hierarchy their
 * processes may be in the outer container; then containers of the main hierarchy; then of the
 * other; then pods. */
enum turn { TURN_INNER, TURN_MAIN, TURN_OTHER, TURN_PODS, TURN_MAX };

static enum turn turn_of(const struct run *run, struct cgroupdir *dir)
{
	const struct entity *entity;

	if (dir->gone_ns || !dir->kind)
		return TURN_MAX;
	entity = entity_resolver_known(run->l->resolver, dir);
	if (entity && entity->id.outer_id[0])
		return TURN_INNER;
	if (!cgroup_in_container(dir->kind))
		return TURN_PODS;
	return dir->key.hierarchy == run->main ? TURN_MAIN : TURN_OTHER;
}

static int list_dirs(struct run *run, enum turn turn)
{
	int r;

	while ((run->dir = cgroupfs_next(run->l->resolver->fs, run->dir))) {
		if (turn_of(run, run->dir) != turn)
			continue;
		r = cgroupfs_procs(run->l->resolver->fs, run->dir, list_container_pid, run);
		if (r == PROCESS_LIST_STOP || r == -ENOMEM)
			return r;
		/* the processes of a threaded cgroup are in an ancestor's list */
		if (r && r != ROOT_GONE && r != -EOPNOTSUPP)
			run->l->n_listed[LISTED_UNREADABLE]++;
	}
	return 0;
}

/* Kernel threads have no program. */
static bool has_program(const struct root *proc, pid_t pid)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(8192);
	char path[32];

	snprintf(path, sizeof(path), "%d/exe", (int)pid);
	return root_read_link(proc, path, &b) != ROOT_GONE;
}

/* ---------------------------------------------------------------- who was not found */

/* The directory from a /proc/PID/cgroup: the container's, else the pod's, else NULL. */
static struct cgroupdir *dir_told(struct cgroupfs *fs, struct strview proc_cgroup)
{
	struct cgroupdir *best = NULL, *dir;
	struct cgroup_line line;
	struct cgroup_id id;
	enum hierarchy h;

	while (cgroup_line_next(&proc_cgroup, &line)) {
		if (!cgroupfs_of_line(fs, &line, &h))
			continue;
		cgroup_parse_path(line.path, &id);
		if (!id.kind)
			continue;
		dir = cgroupfs_find(fs, h, cgroupfs_learn(fs, h, line.path));
		if (dir && (!best || !cgroup_in_container(best->kind)))
			best = dir;
	}
	return best;
}

/* The directory of the process with this pid. */
static struct cgroupdir *dir_of_number(const struct run *run, pid_t pid)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PID_CGROUP_BYTES_MAX);
	char path[32];

	snprintf(path, sizeof(path), "%d/cgroup", (int)pid);
	if (root_read(run->l->resolver->proc, path, &b) || !b.data)
		return NULL;
	return dir_told(run->l->resolver->fs, strview_of_bytes(b.data, b.len));
}

/* Lists the process if it is in a container. Nearly all processes are outside, and then no other
 * file is read. */
static int ask(struct run *run, struct roll *roll)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PID_CGROUP_BYTES_MAX);
	const pid_t pid = (pid_t)roll->pid;
	struct cgroupdir *dir = NULL;
	struct entity *entity;
	struct found found;

	roll->bare = !has_program(run->l->resolver->proc, pid);
	if (roll->bare || !dir_of_number(run, pid) || !list_identify(run, pid, &found))
		return 0;
	if (!pid_read_cgroup(run->l->resolver->proc, &found.id, &b) && b.data)
		dir = dir_told(run->l->resolver->fs, strview_of_bytes(b.data, b.len));
	entity = dir ? entity_resolver_of_dir(run->l->resolver, dir) : NULL;
	return entity ? list_process(run, &found, entity, NULL) : 0;
}

/* True if reading each process's cgroup file is exact, and cheaper than the remaining directories.
 */
static bool may_ask(const struct run *run)
{
	struct cgroupfs *fs = run->l->resolver->fs;
	struct cgroupdir *dir = NULL;
	size_t n_asked = 0, n_dirs = 0;

	if (!run->roll_whole || !run->l->true_paths)
		return false;
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++)
		if (cgroupfs_has(fs, h) && !cgroupfs_from_root(fs, h))
			return false;
	for (size_t i = 0; i < run->n_roll; i++)
		n_asked += !run->roll[i].listed;
	while ((dir = cgroupfs_next(fs, dir)))
		n_dirs += turn_of(run, dir) == TURN_OTHER || turn_of(run, dir) == TURN_PODS;
	return n_asked <= n_dirs * PROCESS_LIST_ASKED_EACH;
}

/* The unified hierarchy if it has containers, else version 1. */
static enum hierarchy main_tree(const struct run *run)
{
	struct cgroupdir *dir = NULL;

	while ((dir = cgroupfs_next(run->l->resolver->fs, dir)))
		if (dir->key.hierarchy == HIERARCHY_V2 && !dir->gone_ns &&
		    cgroup_in_container(dir->kind))
			return HIERARCHY_V2;
	return HIERARCHY_V1;
}

static int list_containers(struct run *run)
{
	int r;

	run->main = main_tree(run);
	r = list_dirs(run, TURN_INNER);
	if (!r)
		r = list_dirs(run, TURN_MAIN);
	if (r)
		return r;
	if (may_ask(run)) {
		for (size_t i = 0; !r && i < run->n_roll; i++)
			if (!run->roll[i].listed)
				r = ask(run, &run->roll[i]);
		return r;
	}
	r = list_dirs(run, TURN_OTHER);
	return r ? r : list_dirs(run, TURN_PODS);
}

/* ---------------------------------------------------------------- the host's */

static int list_host_process(struct run *run, const struct found *found)
{
	char comm[PID_COMM_MAX];
	struct entity *entity;
	struct cached_process *process;
	int r;

	if (pid_read_comm(run->l->resolver->proc, &found->id, comm))
		return 0;
	process = process_cache_find(run->l->processes, &found->id);
	if (process && process->entity && strcmp(process->comm, comm) == 0)
		return list_process(run, found, process->entity, comm);
	r = entity_resolver_of_host(run->l->resolver, &found->id, comm,
				    (uint64_t[HIERARCHY_MAX]){0}, &entity);
	if (r)
		return r < 0 ? r : 0;
	r = list_process(run, found, entity, comm);
	entity_unref(entity);
	return r;
}

static int list_host_pid(void *ctx, pid_t pid)
{
	struct run *run = ctx;
	struct found found;

	if (is_out(run, pid) || !has_program(run->l->resolver->proc, pid) ||
	    !list_identify(run, pid, &found))
		return 0;
	return list_host_process(run, &found);
}

/* The entity of the container or pod in the process's own cgroup file. *@ret: an owned reference;
 * NULL for the host's, or an unreadable file. */
static int entity_by_proc(struct run *run, const struct pid_id *pid, struct entity **ret)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PID_CGROUP_BYTES_MAX);
	struct cgroup_id id = {0};
	int r;

	*ret = NULL;
	if (pid_read_cgroup(run->l->resolver->proc, pid, &b) || !b.data)
		return 0;
	cgroup_parse_proc(strview_of_bytes(b.data, b.len), &id);
	r = id.kind ? entity_container(run->l->resolver->entities, &id, ret) : 0;
	return r < 0 ? r : 0;
}

static int list_any_pid(void *ctx, pid_t pid)
{
	struct run *run = ctx;
	struct entity *entity;
	struct found found;
	int r;

	if (!has_program(run->l->resolver->proc, pid) || !list_identify(run, pid, &found))
		return 0;
	r = entity_by_proc(run, &found.id, &entity);
	if (r)
		return r;
	if (!entity)
		return run->host_processes ? list_host_process(run, &found) : 0;
	r = list_process(run, &found, entity, NULL);
	entity_unref(entity);
	return r;
}

/* Calls @fn for each process in /proc: from the roll, or from a new listing if the roll is
 * incomplete. */
static int list_each(struct run *run, int (*fn)(void *ctx, pid_t pid))
{
	int r = 0;

	if (!run->roll_whole)
		return pid_for_each(run->l->resolver->proc, fn, run);
	for (size_t i = 0; !r && i < run->n_roll; i++)
		r = fn(run, (pid_t)run->roll[i].pid);
	return r;
}

int process_list_run(struct process_list *l, bool host_processes, process_list_fn fn, void *ctx)
{
	struct run run = {.l = l,
			  .host_processes = host_processes,
			  .fn = fn,
			  .ctx = ctx,
			  .now_ns = nsec_monotonic()};
	int r;

	l->number++;
	run.roll_whole = pid_for_each_inode(l->resolver->proc, roll_add, &run) == 0;
	r = l->foreign ? list_each(&run, list_any_pid) : list_containers(&run);
	if (!r && host_processes && !l->foreign)
		r = list_each(&run, list_host_pid);
	free(run.roll);
	if (run.result)
		return run.result;
	return r < 0 ? r : 0;
}

/* ---- metrics ---- */

static void collect_targets(const struct process_list *l, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {
		"podprof_targets", METRIC_GAUGE,
		"Processes with a cached entity: in the last listing, or looked up since.", NULL};
	static const char *const names[] = {"other", "listed"};
	uint64_t n[2] = {0};
	const struct cached_process *process = NULL;

	while ((process = process_cache_next(l->processes, process)))
		n[l->number && process->list_number == l->number]++;
	metric_by_name(sink, &family, "state", n, names, array_size(n));
}

void process_list_collect(const struct process_list *l, struct metric_sink *sink)
{
	static const struct metric_family_desc listed = {"podprof_processes_listed", METRIC_COUNTER,
							 "Processes found in listings, by outcome.",
							 NULL};

	collect_targets(l, sink);
	metric_by_name(sink, &listed, "outcome", l->n_listed, listed_names, LISTED_MAX);
}
