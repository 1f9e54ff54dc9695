// SPDX-License-Identifier: Apache-2.0
/*
 * The table holds every directory of the hierarchies, up to a ceiling, as last listed. The only
 * source is a scan: list a directory, add new subdirectories with their contents, and remove
 * missing ones. Scans have three triggers:
 *
 *   - inotify on the directory (it reports mkdir and rmdir, in both versions of cgroupfs). An event
 *     only says where to look, for one name or for all. So lost, merged or late events do no harm.
 *     A watch precedes the listing, so no change falls between them.
 *   - a timer, for all directories: every 30 s; every 3 s if a directory could not be watched.
 *   - a sample with an id outside the table.
 *
 * A container's own directory has no watch without subdirectories: new subdirectories belong to the
 * container anyway, and watches are a budget.
 *
 * The link count of a directory in a cgroup file system gives the number of its subdirectories. So
 * leaves, most of all directories, need no listing; a listing reads some dozens of files in each. A
 * walk does not list a directory if exactly the known subdirectories exist. A walk does not even
 * open a directory whose subdirectories are all known leaves, such as a pod's containers.
 *
 * A container chooses the depth, number and pace of the directories below its own. Beyond the
 * ceilings, directories are left out and counted; the lookup of their samples falls back to /proc.
 * The listing of an overfull directory ends early, so removals there are noticed only after the
 * number has fallen.
 */
#include "discovery/cgroupfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "discovery/watcher.h"
#include "discovery/cgroup_line.h"

/* Bytes of a cgroup.procs: 100,000 processes. The processes of a larger file are not listed.
 * Reached: `podprof_cgroup_refused_total{reason="unreadable"}`. */
#define CGROUPFS_PROCS_BYTES_MAX (1u << 20)

#define CGROUPFS_WALK_WATCHED_NS  (30 * NSEC_PER_SEC)
#define CGROUPFS_WALK_BLIND_NS	  (3 * NSEC_PER_SEC)
#define CGROUPFS_WALK_MISS_GAP_NS NSEC_PER_SEC
/* After so many refused subdirectories the listing of a directory ends. */
#define CGROUPFS_LEFT_OUT_ENOUGH  256
/* Walks use at most a hundredth of a CPU: expensive walks are further apart. A container can make
 * any number of directories, and cause samples in removed ones. */
#define CGROUPFS_WALK_SHARE	  100

static const char *const walk_names[CGROUPFS_WALK_MAX] = {
	[CGROUPFS_WALK_START] = "start",
	[CGROUPFS_WALK_TIMER] = "timer",
	[CGROUPFS_WALK_OVERFLOW] = "overflow",
	[CGROUPFS_WALK_MISS] = "miss",
};

struct cgroupfs {
	struct hierarchy_set set;
	struct cgroupdir_table table;
	struct cgroupdir_events events; /* the user's */
	void *ctx;
	uint32_t scan;

	struct watcher *watcher; /* NULL: do without */
	bool watches_out;	 /* no new attempt before the next walk */
	size_t n_unwatched;
	struct loop_source *walk_timer;
	uint64_t walked_ns;
	uint64_t last_walk_ns; /* CPU time */

	uint64_t n_walks[CGROUPFS_WALK_MAX];
	uint64_t n_left_out[CGROUPDIR_OUTCOME_MAX]; /* by enum cgroupdir_outcome */
	uint64_t n_unreadable;
	uint64_t n_unwatchable;
	uint64_t n_scans;
	uint64_t walk_ns;
};

static int open_below(const struct cgroupfs *fs, const struct cgroupdir *dir, int *ret)
{
	struct cgroupdir_path path;
	int fd;

	cgroupdir_path(dir, &path);
	if (!path.s[0])
		return ROOT_GONE;
	/* "/a" becomes "a", relative to the descriptor of the root; "/" becomes "." */
	fd = openat(fs->set.roots[dir->key.hierarchy].fd, path.s[1] ? path.s + 1 : ".",
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return root_outcome(errno);
	*ret = fd;
	return 0;
}

/* ---- watches ---- */

static bool should_watch(const struct cgroupfs *fs, const struct cgroupdir *dir)
{
	return fs->watcher && !dir->watch && !(cgroup_in_container(dir->kind) && dir->leaf);
}

static void set_unwatched(struct cgroupfs *fs, struct cgroupdir *dir, bool unwatched)
{
	if (dir->unwatched == unwatched)
		return;
	dir->unwatched = unwatched;
	if (unwatched) {
		fs->n_unwatched++;
		fs->n_unwatchable++;
	} else {
		fs->n_unwatched--;
	}
}

/* Watches the directory open as @fd, if a watch is wanted and available. */
static void watch_add(struct cgroupfs *fs, struct cgroupdir *dir, int fd)
{
	int r = WATCHER_FULL;

	if (!should_watch(fs, dir))
		return;
	if (!fs->watches_out)
		r = watcher_add(fs->watcher, fd, dir, &dir->watch);
	fs->watches_out |= r == WATCHER_FULL;
	set_unwatched(fs, dir, r != 0);
}

/* ---- the table ---- */

static void on_dir_added(void *ctx, struct cgroupdir *dir, const struct cgroup_id *id)
{
	struct cgroupfs *fs = ctx;

	if (fs->events.added)
		fs->events.added(fs->ctx, dir, id);
}

static void on_dir_removed(void *ctx, struct cgroupdir *dir)
{
	struct cgroupfs *fs = ctx;

	set_unwatched(fs, dir, false);
	if (dir->watch)
		watcher_remove(fs->watcher, dir->watch);
	dir->watch = NULL;
	if (fs->events.removed)
		fs->events.removed(fs->ctx, dir);
}

static void on_dir_forgotten(void *ctx, struct cgroupdir *dir)
{
	struct cgroupfs *fs = ctx;

	if (fs->events.forgotten)
		fs->events.forgotten(fs->ctx, dir);
}

static const struct cgroupdir_events table_events = {
	.added = on_dir_added,
	.removed = on_dir_removed,
	.forgotten = on_dir_forgotten,
};

struct cgroupdir *cgroupfs_find(struct cgroupfs *fs, enum hierarchy hierarchy, uint64_t id)
{
	return cgroupdir_find(&fs->table, hierarchy, id);
}

struct cgroupdir *cgroupfs_next(struct cgroupfs *fs, const struct cgroupdir *dir)
{
	return cgroupdir_next(&fs->table, dir);
}

/* Calls cgroupdir_see() and counts refused directories. */
static int see(struct cgroupfs *fs, enum hierarchy hierarchy, struct cgroupdir *parent,
	       const struct hierarchy_child *child, struct cgroupdir **ret)
{
	int r = cgroupdir_see(&fs->table, hierarchy, parent, child, ret);

	if (r > 0)
		fs->n_left_out[r]++;
	return r;
}

/* ---- scans ---- */

/**
 * struct scan - the scan of one directory
 * @deep:       scan every subdirectory, not only new ones
 * @n_left_out: subdirectories without room in the table
 */
struct scan {
	struct cgroupfs *fs;
	struct cgroupdir *dir;
	uint32_t number;
	int fd;
	bool deep;
	unsigned int n_left_out;
};

enum { SCAN_ENOUGH = ROOT_OUTCOME_MAX };

static int scan_dir(struct cgroupfs *fs, struct cgroupdir *dir, int fd, bool deep);

/* Bytes of a directory's name with the NUL: the kernel's own limit. */
#define NAME_BYTES (NAME_MAX + 1)

/* A leaf on the node may still have removed subdirectories in the table: those need a scan. */
static bool is_leaf(const struct cgroupdir *dir)
{
	return dir->leaf && !dir->children;
}

/* True if the table has exactly the subdirectories of @dir, and all are leaves. @dir is a
 * subdirectory that was just read. Checking by path from the scanned directory avoids opening @dir:
 * most directories of a walk are pods with their containers. */
static bool leaves_known(const struct scan *scan, const struct cgroupdir *dir)
{
	const size_t n = strlen(dir->name);
	char path[2 * NAME_BYTES];
	struct hierarchy_child now;
	struct cgroupdir *child;
	uint64_t n_children = 0;

	DL_COUNT(dir->children, child, n_children);
	if (n >= NAME_BYTES || dir->n_children != n_children)
		return false;
	memcpy(path, dir->name, n);
	path[n] = '/';
	DL_FOREACH(dir->children, child)
	{
		if (!memccpy(path + n + 1, child->name, '\0', NAME_BYTES) ||
		    hierarchy_stat(scan->fd, path, &now) || now.id != child->key.id)
			return false;
		cgroupdir_saw(child, &now);
		if (!is_leaf(child) || should_watch(scan->fs, child))
			return false;
	}
	return true;
}

/* Scans a subdirectory: watch first, then list. */
static int scan_into(struct scan *scan, struct cgroupdir *child)
{
	_cleanup_(close_fdp) int fd = -1;
	struct hierarchy_child now;

	if (!should_watch(scan->fs, child) && (is_leaf(child) || leaves_known(scan, child)))
		return 0;
	fd = openat(scan->fd, child->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		if (root_outcome(errno) != ROOT_GONE)
			scan->fs->n_unreadable++;
		return 0;
	}
	watch_add(scan->fs, child, fd);
	/* a subdirectory may have appeared before the watch */
	if (child->leaf && !hierarchy_stat(fd, ".", &now))
		cgroupdir_saw(child, &now);
	return is_leaf(child) ? 0 : scan_dir(scan->fs, child, fd, scan->deep);
}

static int scan_child(void *ctx, const struct hierarchy_child *child)
{
	struct scan *scan = ctx;
	struct cgroupfs *fs = scan->fs;
	struct cgroupdir *dir;
	bool known;
	int r;

	dir = cgroupfs_find(fs, scan->dir->key.hierarchy, child->id);
	known = dir && dir->parent == scan->dir && !dir->gone_ns;
	r = see(fs, scan->dir->key.hierarchy, scan->dir, child, &dir);
	if (r < 0)
		return r;
	if (r)
		return ++scan->n_left_out < CGROUPFS_LEFT_OUT_ENOUGH ? 0 : SCAN_ENOUGH;
	dir->scan = scan->number;
	if (known && !scan->deep && !should_watch(fs, dir))
		return 0;
	return scan_into(scan, dir);
}

/* True if the table has exactly the subdirectories of the directory. Then no listing is needed, and
 * the scan continues in each subdirectory. */
static bool scan_known(struct scan *scan)
{
	struct hierarchy_child self, now;
	struct cgroupdir *child;
	uint64_t n = 0;

	DL_COUNT(scan->dir->children, child, n);
	if (hierarchy_stat(scan->fd, ".", &self) || self.n_children != n)
		return false;
	DL_FOREACH(scan->dir->children, child)
	{
		if (hierarchy_stat(scan->fd, child->name, &now) || now.id != child->key.id)
			return false;
		cgroupdir_saw(child, &now);
	}
	return true;
}

/* Scans all subdirectories in the table. */
static int scan_below(struct scan *scan)
{
	struct cgroupdir *dir = scan->dir->children, *next;
	uint64_t next_id;
	int r;

	while (dir) {
		next = dir->next;
		next_id = next ? next->key.id : 0;
		r = scan_into(scan, dir);
		if (r || !next)
			return r;
		/* a scan below may have moved the entry */
		dir = cgroupfs_find(scan->fs, scan->dir->key.hierarchy, next_id);
		if (!dir || dir->parent != scan->dir)
			return 0;
	}
	return 0;
}

/* Scans @dir, open as @fd. The caller has set the watch. */
static int scan_dir(struct cgroupfs *fs, struct cgroupdir *dir, int fd, bool deep)
{
	struct scan scan = {.fs = fs, .dir = dir, .number = ++fs->scan, .fd = fd, .deep = deep};
	struct cgroupdir *child, *next;
	int r;

	if (deep && scan_known(&scan))
		return scan_below(&scan);
	fs->n_scans++;
	r = hierarchy_each(fd, scan_child, &scan);
	if (r == -ENOMEM)
		return r;
	if (r) {
		/* an incomplete listing says nothing about missing entries */
		if (r != ROOT_GONE && r != SCAN_ENOUGH)
			fs->n_unreadable++;
		return 0;
	}
	DL_FOREACH_SAFE(dir->children, child, next)
		if (child->scan != scan.number)
			cgroupdir_remove(&fs->table, child);
	return 0;
}

static int scan_tree(struct cgroupfs *fs, enum hierarchy hierarchy)
{
	struct hierarchy_child self;
	struct cgroupdir *dir;
	int fd = fs->set.roots[hierarchy].fd, r;

	if (fd < 0)
		return 0;
	r = hierarchy_stat(fd, ".", &self);
	if (r)
		return r < 0 ? r : 0;
	self.name = "";
	if (fs->table.roots[hierarchy] && fs->table.roots[hierarchy]->key.id != self.id)
		cgroupdir_remove(&fs->table, fs->table.roots[hierarchy]);
	r = see(fs, hierarchy, NULL, &self, &dir);
	if (r)
		return r < 0 ? r : 0;
	watch_add(fs, dir, fd);
	return scan_dir(fs, dir, fd, true);
}

/* The larger of @ns and the gap for the last walk's cost. */
static uint64_t walk_gap(const struct cgroupfs *fs, uint64_t ns)
{
	const uint64_t least_ns = fs->last_walk_ns * CGROUPFS_WALK_SHARE;

	return ns > least_ns ? ns : least_ns;
}

int cgroupfs_walk(struct cgroupfs *fs, enum cgroupfs_walk_reason reason)
{
	const uint64_t start = nsec_monotonic(), cpu = nsec_read(CLOCK_THREAD_CPUTIME_ID);
	int r = 0;

	fs->watches_out = false;
	for (enum hierarchy h = 0; h < HIERARCHY_MAX && !r; h++)
		r = scan_tree(fs, h);
	cgroupdir_expire(&fs->table);
	fs->walked_ns = nsec_monotonic();
	fs->n_walks[reason]++;
	fs->last_walk_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID) - cpu;
	fs->walk_ns += fs->walked_ns - start;
	if (fs->walk_timer)
		loop_arm(fs->walk_timer,
			 walk_gap(fs, !fs->watcher || fs->n_unwatched ? CGROUPFS_WALK_BLIND_NS
								      : CGROUPFS_WALK_WATCHED_NS),
			 0);
	return r;
}

void cgroupfs_catch_up(struct cgroupfs *fs)
{
	if (fs->watcher)
		watcher_catch_up(fs->watcher);
}

bool cgroupfs_walk_for_miss(struct cgroupfs *fs)
{
	if (nsec_monotonic() - fs->walked_ns < walk_gap(fs, CGROUPFS_WALK_MISS_GAP_NS))
		return false;
	(void)cgroupfs_walk(fs, CGROUPFS_WALK_MISS);
	return true;
}

/**
 * struct learning - state of a descent along a path
 * @fd:  the current directory
 * @dir: its entry; NULL below a directory without room in the table
 * @id:  its cgroup id
 */
struct learning {
	int fd;
	struct cgroupdir *dir;
	uint64_t id;
};

static bool learn_step(struct cgroupfs *fs, enum hierarchy hierarchy, struct learning *l,
		       const char *name)
{
	struct hierarchy_child child;
	struct cgroupdir *found;
	int fd;

	if (strcmp(name, "..") == 0 || hierarchy_stat(l->fd, name, &child))
		return false;
	fd = openat(l->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	close(l->fd);
	l->fd = fd;
	l->id = child.id;
	if (l->dir)
		l->dir = see(fs, hierarchy, l->dir, &child, &found) ? NULL : found;
	return true;
}

uint64_t cgroupfs_learn(struct cgroupfs *fs, enum hierarchy hierarchy, struct strview path)
{
	struct learning l = {.dir = fs->table.roots[hierarchy]};
	struct hierarchy_child top;
	struct strview component;
	bool found = true;

	l.fd = openat(fs->set.roots[hierarchy].fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l.fd < 0 || hierarchy_stat(l.fd, ".", &top))
		found = false;
	else
		l.id = top.id;
	while (found && strview_until(&path, '/', &component)) {
		_cleanup_(freep) char *name = NULL;

		if (strview_empty(&component))
			continue;
		name = strview_dup(component);
		found = name && learn_step(fs, hierarchy, &l, name);
	}
	close_fdp(&l.fd);
	return found ? l.id : 0;
}

/* ---- changes ---- */

static void on_walk_timer(void *ctx)
{
	/* after -ENOMEM the table is incomplete; the next walk tries again */
	(void)cgroupfs_walk(ctx, CGROUPFS_WALK_TIMER);
}

static struct cgroupdir *child_of_name(struct cgroupdir *dir, const char *name)
{
	struct cgroupdir *child;

	DL_FOREACH(dir->children, child)
	if (strcmp(child->name, name) == 0)
		return child;
	return NULL;
}

/* The subdirectory @name of @dir (open as @fd) was made or removed, or both. */
static void scan_name(struct cgroupfs *fs, struct cgroupdir *dir, int fd, const char *name)
{
	struct scan scan = {.fs = fs, .dir = dir, .number = fs->scan, .fd = fd};
	struct cgroupdir *known = child_of_name(dir, name);
	struct hierarchy_child child;
	bool there = !hierarchy_stat(fd, name, &child);

	if (known && (!there || known->key.id != child.id))
		cgroupdir_remove(&fs->table, known);
	if (there)
		(void)scan_child(&scan, &child);
}

static void on_changed(void *ctx, void *data, const char *name)
{
	_cleanup_(close_fdp) int fd = -1;
	struct cgroupdir *dir = data;
	struct cgroupfs *fs = ctx;

	if (open_below(fs, dir, &fd))
		return;
	if (name)
		scan_name(fs, dir, fd, name);
	else
		(void)scan_dir(fs, dir, fd, false);
}

static void on_lost(void *ctx)
{
	(void)cgroupfs_walk(ctx, CGROUPFS_WALK_OVERFLOW);
}

/* Without inotify only the walks find changes. */
static int follow(struct cgroupfs *fs, const struct cgroupfs_opts *opts)
{
	struct watcher_opts watcher_opts = {
		.loop = opts->loop,
		.proc = opts->proc,
		.changed = on_changed,
		.lost = on_lost,
		.ctx = fs,
	};
	int r;

	r = watcher_new(&watcher_opts, &fs->watcher);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		fs->n_unwatchable++;
	return loop_add_timer(opts->loop, on_walk_timer, fs, &fs->walk_timer);
}

/* ---- the whole ---- */

DEFINE_CLEANUP(struct cgroupfs *, cgroupfs_freep, cgroupfs_free);

int cgroupfs_new(const struct cgroupfs_opts *opts, struct cgroupfs **ret)
{
	_cleanup_(cgroupfs_freep) struct cgroupfs *fs = calloc(1, sizeof(*fs));
	int r;

	if (!fs)
		return -ENOMEM;
	fs->set = (struct hierarchy_set){.roots = {ROOT_INIT, ROOT_INIT}};
	fs->table = (struct cgroupdir_table){
		.events = table_events, .ctx = fs, .grace_ns = opts->grace_ns};
	if (opts->events)
		fs->events = *opts->events;
	fs->ctx = opts->ctx;
	r = hierarchy_find(opts->path, opts->proc, &fs->set);
	if (r)
		return r;
	if (opts->loop) {
		r = follow(fs, opts);
		if (r < 0)
			return r;
	}
	*ret = take_ptr(fs);
	return 0;
}

void cgroupfs_free(struct cgroupfs *fs)
{
	if (!fs)
		return;
	loop_remove(fs->walk_timer);
	watcher_free(fs->watcher);
	cgroupdir_deinit(&fs->table);
	hierarchy_deinit(&fs->set);
	free(fs);
}

bool cgroupfs_has(const struct cgroupfs *fs, enum hierarchy hierarchy)
{
	return fs->set.roots[hierarchy].fd >= 0;
}

enum controller cgroupfs_controller(const struct cgroupfs *fs)
{
	return fs->set.controller;
}

static bool has_controller(struct strview controllers, enum controller controller)
{
	struct strview word;

	while (strview_until(&controllers, ',', &word))
		if (strview_is(&word, controller_name(controller)))
			return true;
	return false;
}

bool cgroupfs_of_line(const struct cgroupfs *fs, const struct cgroup_line *line,
		      enum hierarchy *ret)
{
	enum hierarchy hierarchy = line->unified ? HIERARCHY_V2 : HIERARCHY_V1;

	if (!cgroupfs_has(fs, hierarchy) ||
	    (!line->unified && !has_controller(line->controllers, fs->set.controller)))
		return false;
	*ret = hierarchy;
	return true;
}

/* The cgroup id of the root of every hierarchy. */
#define ROOT_CGROUP 1

bool cgroupfs_from_root(struct cgroupfs *fs, enum hierarchy hierarchy)
{
	return cgroupfs_find(fs, hierarchy, ROOT_CGROUP) != NULL;
}

int cgroupfs_procs(struct cgroupfs *fs, const struct cgroupdir *dir,
		   int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(CGROUPFS_PROCS_BYTES_MAX);
	char file[CGROUPDIR_PATH_MAX + sizeof("/cgroup.procs")];
	struct cgroupdir_path path;
	struct strview t, line;
	uint64_t pid;
	int r;

	cgroupdir_path(dir, &path);
	if (!path.s[0])
		return ROOT_GONE;
	snprintf(file, sizeof(file), ".%s/cgroup.procs", path.s);
	r = root_read(&fs->set.roots[dir->key.hierarchy], file, &b);
	if (r || !b.data)
		return r;
	t = strview_of_bytes(b.data, b.len);
	while (strview_line(&t, &line)) {
		if (!strview_only_u64(line, 10, &pid) || pid > INT32_MAX)
			continue;
		r = fn(ctx, (pid_t)pid);
		if (r)
			return r;
	}
	return 0;
}

/* ---- metrics ---- */

static void collect_dirs(const struct cgroupfs *fs, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {
		"podprof_cgroup_directories", METRIC_GAUGE,
		"Cgroup directories in the table; gone ones stay for late samples.", NULL};
	static const char *const names[] = {"v2", "v1", "gone"};
	uint64_t n[HIERARCHY_MAX + 1] = {0};
	const struct cgroupdir *dir = NULL;

	while ((dir = cgroupdir_next(&fs->table, dir)))
		n[dir->gone_ns ? HIERARCHY_MAX : dir->key.hierarchy]++;
	metric_by_name(sink, &family, "state", n, names, array_size(n));
}

static void collect_refused(const struct cgroupfs *fs, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {
		"podprof_cgroup_refused", METRIC_COUNTER,
		"Cgroup directories left out or not watched, by reason.", NULL};

	metric_by_name(sink, &family, "reason",
		       (const uint64_t[]){fs->n_unreadable, fs->n_unwatchable},
		       (const char *const[]){"unreadable", "watch"}, 2);
	for (int i = CGROUPDIR_OK + 1; i < CGROUPDIR_OUTCOME_MAX; i++)
		metric_u64(sink, fs->n_left_out[i],
			   &(struct metric_label){"reason", cgroupdir_outcome_name(i)}, 1);
}

void cgroupfs_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc walks = {
		"podprof_cgroup_walks", METRIC_COUNTER,
		"Walks over all cgroup directories, by reason.", NULL};
	static const struct metric_family_desc seconds = {
		"podprof_cgroup_walk_seconds", METRIC_COUNTER, "Time of these walks.", "seconds"};
	static const struct metric_family_desc events = {"podprof_cgroup_inotify_events",
							 METRIC_COUNTER, "Inotify events.", NULL};
	static const struct metric_family_desc scans = {"podprof_cgroup_scans", METRIC_COUNTER,
							"Listings of single cgroup directories.",
							NULL};
	static const struct metric_family_desc watches = {
		"podprof_cgroup_watches", METRIC_GAUGE, "Inotify watches, held and missing.", NULL};
	const struct cgroupfs *fs = ctx;

	collect_dirs(fs, sink);
	metric_by_name(sink, &walks, "reason", fs->n_walks, walk_names, CGROUPFS_WALK_MAX);
	collect_refused(fs, sink);
	metric_family(sink, &seconds);
	metric_double(sink, (double)fs->walk_ns / (double)NSEC_PER_SEC, NULL, 0);
	metric_family(sink, &events);
	metric_u64(sink, watcher_n_events(fs->watcher), NULL, 0);
	metric_family(sink, &scans);
	metric_u64(sink, fs->n_scans, NULL, 0);
	metric_by_name(sink, &watches, "state",
		       (const uint64_t[]){watcher_n(fs->watcher), fs->n_unwatched},
		       (const char *const[]){"held", "missing"}, 2);
}
