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
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/vec.h"
#include "discovery/cgroup_line.h"
#include "discovery/cgroupfs.h"
#include "discovery/entity_resolver.h"
#include "discovery/process_cache.h"

/* Processes remembered from one listing of /proc, 16 bytes each. Reached: the rest is read one by
 * one. */
#define PROCESS_LIST_ROLL_MAX	131072
/* Processes, half of them kernel threads, whose cgroup file can be read in the time of one
 * directory's cgroup.procs. */
#define PROCESS_LIST_ASKED_EACH 2
/* Listings from one read of the name of a process outside of containers to the next, while it has
 * the same program: the name decides about its entity, and is a file more to be read. */
#define PROCESS_LIST_NAME_EACH	8
/* Entries of /proc, or directories to be planned, of one step: a microsecond each. */
#define PROCESS_LIST_STEP	64

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

/* Order of directories: first containers inside containers, because in the other hierarchy their
 * processes may be in the outer container; then containers of the main hierarchy; then of the
 * other; then pods. */
enum turn { TURN_INNER, TURN_MAIN, TURN_OTHER, TURN_PODS, TURN_MAX };

/* A directory to be read. A directory may leave the table between two slices, so this is its key.
 */
struct planned {
	enum turn turn;
	enum hierarchy hierarchy;
	uint64_t id;
};

/* Steps of a listing: each goes through a list. */
enum step {
	STEP_ROLL,   /* all processes of /proc */
	STEP_PLAN,   /* the directories of the table */
	STEP_DIRS,   /* planned directories of the main hierarchy */
	STEP_ASK,    /* the rest of the roll by their cgroup files, if there are few */
	STEP_OTHERS, /* else the other directories */
	STEP_HOST,   /* the rest of the roll: processes outside of containers */
	STEP_ANY,    /* instead of all others: the roll by cgroup files, in another PID namespace */
	STEP_END,
};

/**
 * struct process_listing - state of one listing
 * @number:  of this listing; another may begin before its end
 * @proc:    /proc, while it is listed
 * @cursor:  the next directory to be planned
 * @dir:     being read; of a container or pod. Valid during a slice
 * @planned: directories by turn, in the order of the table; @at_dir: the next
 * @pids:    of the directory before @at_dir; @at_pid: the next
 * @read_ns: boot clock before the reading of @pids
 * @at_roll: the next of @roll in the current step
 */
struct process_listing {
	struct process_list *l;
	uint32_t number;
	enum step step;
	DIR *proc;
	struct cgroupdir_cursor cursor;
	struct planned *planned;
	size_t n_planned, planned_cap, at_dir;
	pid_t *pids;
	size_t n_pids, pids_cap, at_pid;
	uint64_t read_ns;
	size_t at_roll;
	struct cgroupdir *dir;
	bool host_processes;
	struct roll *roll; /* ascending */
	size_t n_roll;
	size_t roll_cap;
	bool roll_whole;     /* holds the whole listing of /proc */
	bool has_unified;    /* the unified hierarchy has containers */
	enum hierarchy main; /* the hierarchy that is read first: the unified one if it has
				containers, else version 1 */
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
 * @program: as in struct cached_process
 */
struct found {
	struct pid_id id;
	uint64_t inode;
	struct roll *roll;
	struct cached_process *process;
	uint64_t program;
};

/* ---------------------------------------------------------------- who lives */

static int roll_add(struct process_listing *run, pid_t pid, uint64_t inode)
{
	if (run->n_roll && (uint32_t)pid <= run->roll[run->n_roll - 1].pid)
		return 0;
	if (vec_grow(&run->roll, &run->roll_cap, run->n_roll + 1, sizeof(*run->roll),
		     PROCESS_LIST_ROLL_MAX))
		return 1;
	run->roll[run->n_roll++] = (struct roll){.pid = (uint32_t)pid, .inode = inode};
	return 0;
}

static struct roll *roll_find(const struct process_listing *run, pid_t pid)
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
static bool is_out(const struct process_listing *run, pid_t pid)
{
	const struct roll *roll = roll_find(run, pid);

	return roll && (roll->listed || roll->bare);
}

/* ---------------------------------------------------------------- one process */

/* Lists a process. @comm: the name of a host process, whose entity depends on it; else NULL. */
static int list_process(struct process_listing *run, const struct found *found,
			struct entity *entity, const char *comm)
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
		process->list_number = run->number;
		process->inode = found->inode;
		process->program = found->program;
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
static bool identify(struct process_listing *run, pid_t pid, struct found *ret)
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
		return process->list_number != run->number;
	}
	if (ret->roll) /* this listing of /proc is a while old */
		ret->inode = pid_inode(l->resolver->proc, pid);
	r = pid_read(l->resolver->proc, pid, &ret->id);
	if (!r && run->n_pids && pid_ns_of_ticks(ret->id.start_ticks) > run->read_ns)
		r = PID_GONE; /* the pid has changed hands since the directory was read */
	if (r) {
		l->n_listed[r == PID_GONE ? LISTED_GONE : LISTED_UNREADABLE]++;
		return false;
	}
	process = process_cache_find(l->processes, &ret->id);
	return !process || process->list_number != run->number;
}

/* True if the process with this pid is new to the listing. A process may be in two hierarchies, or
 * move during the listing. */
static bool list_identify(struct process_listing *run, pid_t pid, struct found *ret)
{
	*ret = (struct found){.roll = roll_find(run, pid)};
	return !(ret->roll && ret->roll->listed) && identify(run, pid, ret);
}

static int list_container_pid(void *ctx, pid_t pid)
{
	struct process_listing *run = ctx;
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

static enum turn turn_of(const struct process_listing *run, struct cgroupdir *dir)
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

static int plan_dir(struct process_listing *run, struct cgroupdir *dir)
{
	const enum turn turn = turn_of(run, dir);

	if (turn == TURN_MAX)
		return 0;
	run->has_unified |= dir->key.hierarchy == HIERARCHY_V2 && cgroup_in_container(dir->kind);
	if (vec_grow(&run->planned, &run->planned_cap, run->n_planned + 1, sizeof(*run->planned),
		     PROCESS_LIST_ROLL_MAX))
		return -ENOMEM;
	run->planned[run->n_planned++] = (struct planned){turn, dir->key.hierarchy, dir->key.id};
	return 0;
}

/* By turn, else in the order of the table. The directories were planned as if the unified hierarchy
 * had containers. */
static int sort_plan(struct process_listing *run)
{
	size_t at[TURN_MAX + 1] = {0};
	struct planned *sorted = calloc(run->n_planned + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	if (!run->has_unified)
		run->main = HIERARCHY_V1;
	for (size_t i = 0; i < run->n_planned; i++) {
		struct planned *planned = &run->planned[i];

		if (planned->turn == TURN_OTHER && planned->hierarchy == run->main)
			planned->turn = TURN_MAIN;
		at[planned->turn + 1]++;
	}
	for (enum turn turn = TURN_INNER; turn < TURN_MAX; turn++)
		at[turn + 1] += at[turn];
	for (size_t i = 0; i < run->n_planned; i++)
		sorted[at[run->planned[i].turn]++] = run->planned[i];
	free(run->planned);
	run->planned = sorted;
	return 0;
}

static int keep_pid(void *ctx, pid_t pid)
{
	struct process_listing *run = ctx;

	int r = vec_grow(&run->pids, &run->pids_cap, run->n_pids + 1, sizeof(*run->pids),
			 PROCESS_LIST_ROLL_MAX);

	if (!r)
		run->pids[run->n_pids++] = pid;
	return r > 0 ? PROCESS_LIST_STOP : r;
}

/* The next planned directory and its processes. A directory that has left the table meanwhile has
 * none. */
static int read_dir(struct process_listing *run)
{
	const struct planned *planned = &run->planned[run->at_dir++];
	struct cgroupfs *fs = run->l->resolver->fs;
	int r;

	run->n_pids = run->at_pid = 0;
	run->dir = cgroupfs_find(fs, planned->hierarchy, planned->id);
	if (!run->dir || turn_of(run, run->dir) == TURN_MAX)
		return 0;
	run->read_ns = nsec_boot();
	r = cgroupfs_procs(fs, run->dir, keep_pid, run);
	if (r == -ENOMEM)
		return r;
	/* the processes of a threaded cgroup are in an ancestor's list */
	if (r && r != ROOT_GONE && r != -EOPNOTSUPP && r != PROCESS_LIST_STOP)
		run->l->n_listed[LISTED_UNREADABLE]++;
	return 0;
}

static bool dirs_left(const struct process_listing *run, enum turn end)
{
	return run->at_pid < run->n_pids ||
	       (run->at_dir < run->n_planned && run->planned[run->at_dir].turn < end);
}

/* One process, or one directory. */
static int next_of_dirs(struct process_listing *run)
{
	if (run->at_pid < run->n_pids)
		return list_container_pid(run, run->pids[run->at_pid++]);
	return read_dir(run);
}

/* Whether the process has a program, unlike kernel threads; *@ret: the hash of its path, 0 if it is
 * not readable. The link, not the file: its file system may hang. */
static bool read_program(const struct root *proc, pid_t pid, uint64_t *ret)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(8192);
	char path[32];
	int r;

	snprintf(path, sizeof(path), "%d/exe", (int)pid);
	r = root_read_link(proc, path, &b);
	*ret = r ? 0 : hash_bytes(b.data, b.len);
	return r != ROOT_GONE;
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
static struct cgroupdir *dir_of_number(const struct process_listing *run, pid_t pid)
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
static int ask(struct process_listing *run, struct roll *roll)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PID_CGROUP_BYTES_MAX);
	const pid_t pid = (pid_t)roll->pid;
	struct cgroupdir *dir = NULL;
	struct entity *entity;
	struct found found;
	uint64_t program;

	roll->bare = !read_program(run->l->resolver->proc, pid, &program);
	if (roll->bare || !dir_of_number(run, pid) || !list_identify(run, pid, &found))
		return 0;
	if (!pid_read_cgroup(run->l->resolver->proc, &found.id, &b) && b.data)
		dir = dir_told(run->l->resolver->fs, strview_of_bytes(b.data, b.len));
	entity = dir ? entity_resolver_of_dir(run->l->resolver, dir) : NULL;
	return entity ? list_process(run, &found, entity, NULL) : 0;
}

/* True if reading each process's cgroup file is exact, and cheaper than the remaining directories.
 */
static bool may_ask(const struct process_listing *run)
{
	struct cgroupfs *fs = run->l->resolver->fs;
	size_t n_asked = 0;

	if (!run->roll_whole || !run->l->true_paths)
		return false;
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++)
		if (cgroupfs_has(fs, h) && !cgroupfs_from_root(fs, h))
			return false;
	for (size_t i = 0; i < run->n_roll; i++)
		n_asked += !run->roll[i].listed;
	return n_asked <= (run->n_planned - run->at_dir) * PROCESS_LIST_ASKED_EACH;
}

/* ---------------------------------------------------------------- the host's */

/* Whether a listing found the process with this program, and its name need not be read again. */
static bool has_known_name(const struct process_listing *run, const struct found *found)
{
	const struct cached_process *process = found->process;

	return process && process->entity && process->program &&
	       process->program == found->program &&
	       (run->number + (uint32_t)found->id.pid) % PROCESS_LIST_NAME_EACH != 0;
}

static int list_host_process(struct process_listing *run, const struct found *found)
{
	char comm[PID_COMM_MAX];
	struct entity *entity;
	struct cached_process *process;
	int r;

	if (has_known_name(run, found))
		return list_process(run, found, found->process->entity, NULL);
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
	struct process_listing *run = ctx;
	struct found found;
	uint64_t program;

	if (is_out(run, pid) || !read_program(run->l->resolver->proc, pid, &program) ||
	    !list_identify(run, pid, &found))
		return 0;
	found.program = program;
	return list_host_process(run, &found);
}

/* The entity of the container or pod in the process's own cgroup file. *@ret: an owned reference;
 * NULL for the host's, or an unreadable file. */
static int entity_by_proc(struct process_listing *run, const struct pid_id *pid,
			  struct entity **ret)
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
	struct process_listing *run = ctx;
	struct entity *entity;
	struct found found;
	uint64_t program;
	int r;

	if (!read_program(run->l->resolver->proc, pid, &program) ||
	    !list_identify(run, pid, &found))
		return 0;
	r = entity_by_proc(run, &found.id, &entity);
	if (r)
		return r;
	if (!entity) {
		found.program = program;
		return run->host_processes ? list_host_process(run, &found) : 0;
	}
	r = list_process(run, &found, entity, NULL);
	entity_unref(entity);
	return r;
}

/* ---------------------------------------------------------------- slices */

static void next_step(struct process_listing *run, enum step step)
{
	run->step = step;
	closedirp(&run->proc);
	run->proc = NULL;
	run->at_roll = 0;
	run->n_pids = run->at_pid = 0;
}

/* The next process of /proc. 0; above 0: none is left, or /proc is unreadable; -errno. */
static int next_of_proc(struct process_listing *run, pid_t *ret_pid, uint64_t *ret_inode)
{
	int r = run->proc ? 0 : pid_list_open(run->l->resolver->proc, &run->proc);

	return r ? r : pid_list_next(run->proc, ret_pid, ret_inode);
}

/* Some of the processes of /proc. Those beyond the ceiling are listed later, from /proc again. */
static void fill_roll(struct process_listing *run)
{
	uint64_t inode;
	pid_t pid;
	int r = 0;

	for (int i = 0; i < PROCESS_LIST_STEP && !r; i++) {
		r = next_of_proc(run, &pid, &inode);
		if (r)
			run->roll_whole = run->proc && r == PID_GONE;
		else
			r = roll_add(run, pid, inode);
	}
	if (!r)
		return;
	next_step(run, run->l->foreign ? STEP_ANY : STEP_PLAN);
	if (run->step == STEP_PLAN)
		cgroupfs_cursor_init(run->l->resolver->fs, &run->cursor);
}

/* Some of the directories. */
static int plan_some(struct process_listing *run)
{
	struct cgroupdir *dir;
	int r = 0;

	for (int i = 0; i < PROCESS_LIST_STEP && !r; i++) {
		dir = cgroupdir_cursor_next(&run->cursor);
		if (!dir) {
			cgroupfs_cursor_deinit(run->l->resolver->fs, &run->cursor);
			next_step(run, STEP_DIRS);
			return sort_plan(run);
		}
		r = plan_dir(run, dir);
	}
	return r;
}

/* One process of the roll. An incomplete roll means a new listing of /proc instead. */
static int next_of_roll(struct process_listing *run, int (*fn)(void *ctx, pid_t pid))
{
	uint64_t inode;
	pid_t pid;
	int r;

	if (run->roll_whole && run->at_roll < run->n_roll)
		return fn(run, (pid_t)run->roll[run->at_roll++].pid);
	r = run->roll_whole ? PID_GONE : next_of_proc(run, &pid, &inode);
	if (!r)
		return fn(run, pid);
	next_step(run, STEP_END);
	return r < 0 ? r : 0;
}

static int next_to_ask(struct process_listing *run)
{
	struct roll *roll = run->at_roll < run->n_roll ? &run->roll[run->at_roll++] : NULL;

	if (!roll)
		next_step(run, STEP_HOST);
	return roll && !roll->listed ? ask(run, roll) : 0;
}

/* The smallest part of a listing. */
static int listing_next(struct process_listing *run)
{
	switch (run->step) {
	case STEP_ROLL:
		fill_roll(run);
		return 0;
	case STEP_PLAN:
		return plan_some(run);
	case STEP_DIRS:
		if (dirs_left(run, TURN_OTHER))
			return next_of_dirs(run);
		next_step(run, may_ask(run) ? STEP_ASK : STEP_OTHERS);
		return 0;
	case STEP_ASK:
		return next_to_ask(run);
	case STEP_OTHERS:
		if (dirs_left(run, TURN_MAX))
			return next_of_dirs(run);
		next_step(run, STEP_HOST);
		return 0;
	case STEP_HOST:
		if (run->host_processes)
			return next_of_roll(run, list_host_pid);
		next_step(run, STEP_END);
		return 0;
	case STEP_ANY:
		return next_of_roll(run, list_any_pid);
	case STEP_END:
		break;
	}
	return 0;
}

/* The directory being read may have left the table since the last slice. */
static void find_dir_again(struct process_listing *run)
{
	const struct planned *planned;

	if (run->at_pid == run->n_pids)
		return;
	planned = &run->planned[run->at_dir - 1];
	run->dir = cgroupfs_find(run->l->resolver->fs, planned->hierarchy, planned->id);
	if (!run->dir || turn_of(run, run->dir) == TURN_MAX)
		run->n_pids = run->at_pid = 0;
}

DEFINE_CLEANUP(struct process_listing *, process_listing_freep, process_listing_free);

int process_listing_new(struct process_list *l, bool host_processes, process_list_fn fn, void *ctx,
			struct process_listing **ret)
{
	_cleanup_(process_listing_freep) struct process_listing *run = calloc(1, sizeof(*run));

	if (!run)
		return -ENOMEM;
	run->l = l;
	run->number = ++l->number;
	run->host_processes = host_processes;
	run->fn = fn;
	run->ctx = ctx;
	run->now_ns = nsec_monotonic();
	run->main = HIERARCHY_V2;
	run->step = STEP_ROLL;
	*ret = take_ptr(run);
	return 0;
}

void process_listing_free(struct process_listing *run)
{
	if (!run)
		return;
	cgroupfs_cursor_deinit(run->l->resolver->fs, &run->cursor);
	closedirp(&run->proc);
	free(run->roll);
	free(run->planned);
	free(run->pids);
	free(run);
}

int process_listing_step(struct process_listing *run)
{
	int r;

	find_dir_again(run);
	r = listing_next(run);
	if (!r && run->step != STEP_END)
		return PROCESS_LISTING_MORE;
	if (run->result)
		return run->result;
	return r < 0 ? r : 0;
}

int process_list_run(struct process_list *l, bool host_processes, process_list_fn fn, void *ctx)
{
	_cleanup_(process_listing_freep) struct process_listing *run = NULL;
	int r = process_listing_new(l, host_processes, fn, ctx, &run);

	while (!r && (r = process_listing_step(run)) == PROCESS_LISTING_MORE)
		r = 0;
	return r;
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
