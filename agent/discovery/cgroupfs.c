// SPDX-License-Identifier: Apache-2.0
/*
 * The table holds every directory of the trees, up to a ceiling, and each is what its parent's
 * listing said last. There is one way to learn anything: scan a directory, that is, list it, add
 * what is new with all below it, and remove what is no longer there. Who asks for a scan differs:
 *
 *   - inotify on the directory (it reports mkdir and rmdir, in both versions of cgroupfs). An event
 *     only says which directory to scan, so that lost, merged or late events do no harm. A watch is
 *     set before the listing, so that nothing falls between them.
 *   - a timer, for everything: each 15 s; each 3 s if some directory could not be watched.
 *   - a sample with an id that is not in the table.
 *
 * A container's own directory is not watched while nothing is below it: what appears there belongs
 * to the container anyway, and watches are a budget.
 *
 * A cgroup file system tells the number of subdirectories in the link count, which spares listing
 * the leaves: most directories, and a listing means some dozens of files each.
 *
 * What a container makes below its own directory is its own choice, in depth and number. Behind the
 * ceilings directories are left out and counted; their samples are then named through /proc.
 */
#include "discovery/cgroupfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "discovery/watcher.h"

/* Directories in the table, of all trees. 500 pods of three containers with a subdirectory each are
 * 3500 in one tree. At 300 bytes each this is 10 MiB. Counted as refused "too_many". */
#define CGROUPFS_DIRS_MAX	 32768
/* Of them below one outermost container: a whole node of 110 pods in a container (kind) is about
 * 1000. Counted as refused "too_many_in_container". */
#define CGROUPFS_BELOW_MAX	 4096
/* Components of a path. A pod in a node in a container is 8 deep. Counted as refused "too_deep". */
#define CGROUPFS_DEPTH_MAX	 24
/* Bytes of a cgroup.procs: 100,000 processes. Beyond, the directory's processes are not listed. */
#define CGROUPFS_PROCS_BYTES_MAX (1u << 20)

#define CGROUPFS_WALK_WATCHED_NS  (15 * NSEC_PER_SEC)
#define CGROUPFS_WALK_BLIND_NS	  (3 * NSEC_PER_SEC)
#define CGROUPFS_WALK_MISS_GAP_NS NSEC_PER_SEC

enum refused {
	REFUSED_TOO_MANY,
	REFUSED_TOO_MANY_IN_CONTAINER,
	REFUSED_TOO_DEEP,
	REFUSED_UNREADABLE,
	REFUSED_WATCH,
	REFUSED_MAX,
};

static const char *const refused_names[REFUSED_MAX] = {
	[REFUSED_TOO_MANY] = "too_many", [REFUSED_TOO_MANY_IN_CONTAINER] = "too_many_in_container",
	[REFUSED_TOO_DEEP] = "too_deep", [REFUSED_UNREADABLE] = "unreadable",
	[REFUSED_WATCH] = "watch",
};

static const char *const walk_names[CGROUPFS_WALK_MAX] = {
	[CGROUPFS_WALK_START] = "start",
	[CGROUPFS_WALK_TIMER] = "timer",
	[CGROUPFS_WALK_OVERFLOW] = "overflow",
	[CGROUPFS_WALK_MISS] = "miss",
};

struct cgroupfs {
	struct hierarchy_set set;
	struct cgroupfs_dir *top[HIERARCHY_MAX]; /* the trees' own directories */
	struct cgroupfs_dir *dirs;		 /* by key */
	const struct cgroupfs_events *events;
	void *ctx;
	uint64_t grace_ns;
	uint32_t scan;

	struct watcher *watcher; /* NULL: do without */
	bool watches_out;	 /* not tried again before the next walk */
	size_t n_unwatched;
	struct loop_source *walk_timer;
	uint64_t walked_ns;

	uint64_t n_walks[CGROUPFS_WALK_MAX];
	uint64_t n_refused[REFUSED_MAX];
	uint64_t n_scans;
	uint64_t walk_ns;
};

/* ---- paths ---- */

void cgroupfs_path(const struct cgroupfs_dir *dir, struct cgroupfs_path *ret)
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

static int open_below(const struct cgroupfs *fs, const struct cgroupfs_dir *dir, int *ret)
{
	struct cgroupfs_path path;
	int fd;

	cgroupfs_path(dir, &path);
	if (!path.s[0])
		return ROOT_GONE;
	/* "/a" below the tree's descriptor is "./a" */
	fd = openat(fs->set.roots[dir->key.hierarchy].fd, path.s[1] ? path.s + 1 : ".",
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return root_outcome(errno);
	*ret = fd;
	return 0;
}

/* ---- watches ---- */

static bool should_watch(const struct cgroupfs *fs, const struct cgroupfs_dir *dir)
{
	return fs->watcher && !dir->watch && !(dir->kind && dir->leaf);
}

static void set_unwatched(struct cgroupfs *fs, struct cgroupfs_dir *dir, bool unwatched)
{
	if (dir->unwatched == unwatched)
		return;
	dir->unwatched = unwatched;
	if (unwatched) {
		fs->n_unwatched++;
		fs->n_refused[REFUSED_WATCH]++;
	} else {
		fs->n_unwatched--;
	}
}

/* Watch the directory that is open as @fd, if it should be and can be. */
static void watch_add(struct cgroupfs *fs, struct cgroupfs_dir *dir, int fd)
{
	int r = WATCHER_FULL;

	if (!should_watch(fs, dir))
		return;
	if (!fs->watches_out)
		r = watcher_add(fs->watcher, fd, dir, &dir->watch);
	fs->watches_out |= r == WATCHER_FULL;
	set_unwatched(fs, dir, r != 0);
}

static void watch_remove(struct cgroupfs *fs, struct cgroupfs_dir *dir)
{
	set_unwatched(fs, dir, false);
	if (dir->watch)
		watcher_remove(fs->watcher, dir->watch);
	dir->watch = NULL;
}

/* ---- the table ---- */

static void dir_forget(struct cgroupfs *fs, struct cgroupfs_dir *dir)
{
	HASH_DELETE(hh, fs->dirs, dir);
	if (fs->events && fs->events->forgotten)
		fs->events->forgotten(fs->ctx, dir);
	free(dir);
}

/* The directory has gone, and so has everything below it. */
static void dir_remove(struct cgroupfs *fs, struct cgroupfs_dir *dir)
{
	struct cgroupfs_dir *child, *next;

	DL_FOREACH_SAFE(dir->children, child, next)
	dir_remove(fs, child);
	watch_remove(fs, dir);
	if (dir->parent)
		DL_DELETE(dir->parent->children, dir);
	else
		fs->top[dir->key.hierarchy] = NULL;
	if (dir->top && dir->top != dir)
		dir->top->n_below--;
	dir->top = NULL;
	dir->parent = NULL;
	dir->gone_ns = nsec_monotonic();
	if (fs->events && fs->events->removed)
		fs->events->removed(fs->ctx, dir);
	if (!fs->grace_ns)
		dir_forget(fs, dir);
}

static void forget_old(struct cgroupfs *fs)
{
	uint64_t now = nsec_monotonic();
	struct cgroupfs_dir *dir, *next;

	HASH_ITER(hh, fs->dirs, dir, next)
		if (dir->gone_ns && now - dir->gone_ns >= fs->grace_ns)
			dir_forget(fs, dir);
}

static struct cgroupfs_dir *dir_find(struct cgroupfs *fs, enum hierarchy hierarchy, uint64_t id)
{
	struct cgroupfs_key key = {.id = id, .hierarchy = hierarchy};
	struct cgroupfs_dir *dir;

	HASH_FIND(hh, fs->dirs, &key, sizeof(key), dir);
	return dir;
}

struct cgroupfs_dir *cgroupfs_find(struct cgroupfs *fs, enum hierarchy hierarchy, uint64_t id)
{
	return dir_find(fs, hierarchy, id);
}

struct cgroupfs_dir *cgroupfs_next(struct cgroupfs *fs, const struct cgroupfs_dir *dir)
{
	return dir ? dir->hh.next : fs->dirs;
}

/* Bytes of the path of @parent's subdirectory @name. */
static size_t path_len(const struct cgroupfs_dir *parent, const char *name)
{
	return parent ? parent->path_len + 1 + strlen(name) : 0;
}

/* Whether one more directory is allowed below @parent. */
static bool dir_allowed(struct cgroupfs *fs, const struct cgroupfs_dir *parent, const char *name)
{
	enum refused reason;

	if (HASH_COUNT(fs->dirs) >= CGROUPFS_DIRS_MAX)
		reason = REFUSED_TOO_MANY;
	else if (parent && (parent->depth >= CGROUPFS_DEPTH_MAX ||
			    path_len(parent, name) >= sizeof(struct cgroupfs_path)))
		reason = REFUSED_TOO_DEEP;
	else if (parent && parent->top && parent->top->n_below >= CGROUPFS_BELOW_MAX)
		reason = REFUSED_TOO_MANY_IN_CONTAINER;
	else
		return true;
	fs->n_refused[reason]++;
	return false;
}

static int dir_new(struct cgroupfs_key key, const struct hierarchy_child *child,
		   struct cgroupfs_dir **ret)
{
	size_t n = strlen(child->name) + 1;
	struct cgroupfs_dir *dir = calloc(1, sizeof(*dir) + n);

	if (!dir)
		return -ENOMEM;
	memcpy(dir->name, child->name, n);
	dir->key = key;
	dir->leaf = child->leaf;
	*ret = dir;
	return 0;
}

static void dir_link(struct cgroupfs *fs, struct cgroupfs_dir *dir, struct cgroupfs_dir *parent)
{
	struct cgroupfs_path path;
	struct cgroup_id id;

	dir->parent = parent;
	dir->path_len = (uint32_t)path_len(parent, dir->name);
	if (parent) {
		DL_APPEND(parent->children, dir);
		dir->depth = parent->depth + 1;
		dir->top = parent->top;
		parent->leaf = false;
	} else {
		fs->top[dir->key.hierarchy] = dir;
	}
	cgroupfs_path(dir, &path);
	cgroup_parse_path(text_of(path.s), &id);
	dir->kind = id.kind;
	if (dir->top)
		dir->top->n_below++;
	else if (dir->kind)
		dir->top = dir;
	if (fs->events && fs->events->added)
		fs->events->added(fs->ctx, dir, &id);
}

/* *@ret is NULL where a ceiling refuses it. */
static int dir_add(struct cgroupfs *fs, enum hierarchy hierarchy, struct cgroupfs_dir *parent,
		   const struct hierarchy_child *child, struct cgroupfs_dir **ret)
{
	struct cgroupfs_key key = {.id = child->id, .hierarchy = hierarchy};
	struct cgroupfs_dir *dir;
	bool hash_oom = false;

	*ret = NULL;
	if (!dir_allowed(fs, parent, child->name))
		return 0;
	if (dir_new(key, child, &dir))
		return -ENOMEM;
	HASH_ADD(hh, fs->dirs, key, sizeof(dir->key), dir);
	if (hash_oom) {
		free(dir);
		return -ENOMEM;
	}
	dir_link(fs, dir, parent);
	*ret = dir;
	return 0;
}

static bool is_above(const struct cgroupfs_dir *dir, const struct cgroupfs_dir *below)
{
	while (below && below != dir)
		below = below->parent;
	return below != NULL;
}

/* The table's entry for a subdirectory that was just seen, new if need be. *@ret is NULL where
 * there is to be none. */
static int dir_see(struct cgroupfs *fs, enum hierarchy hierarchy, struct cgroupfs_dir *parent,
		   const struct hierarchy_child *child, struct cgroupfs_dir **ret)
{
	struct cgroupfs_dir *dir = dir_find(fs, hierarchy, child->id);

	if (dir && !dir->gone_ns && dir->parent == parent && strcmp(dir->name, child->name) == 0) {
		dir->leaf = child->leaf;
		*ret = dir;
		return 0;
	}
	if (dir && is_above(dir, parent)) {
		/* no tree, but a mount inside it or a move at this moment: nothing to follow */
		*ret = NULL;
		return 0;
	}
	/* renamed, or the number of one that is gone has come back */
	if (dir && !dir->gone_ns)
		dir_remove(fs, dir);
	dir = dir_find(fs, hierarchy, child->id);
	if (dir)
		dir_forget(fs, dir);
	return dir_add(fs, hierarchy, parent, child, ret);
}

/* ---- scans ---- */

/**
 * struct scan - the scan of one directory
 * @deep: look into every subdirectory, not only into new ones
 */
struct scan {
	struct cgroupfs *fs;
	struct cgroupfs_dir *dir;
	uint32_t number;
	int fd;
	bool deep;
};

static int scan_dir(struct cgroupfs *fs, struct cgroupfs_dir *dir, int fd, bool deep);

/* Go into a subdirectory: watch it, then list it. */
static int scan_into(struct scan *scan, struct cgroupfs_dir *child)
{
	_cleanup_(close_fdp) int fd = -1;
	struct hierarchy_child now;

	if (child->leaf && !should_watch(scan->fs, child))
		return 0;
	fd = openat(scan->fd, child->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		if (root_outcome(errno) != ROOT_GONE)
			scan->fs->n_refused[REFUSED_UNREADABLE]++;
		return 0;
	}
	watch_add(scan->fs, child, fd);
	/* something may have been made in it before the watch was there */
	if (child->leaf && !hierarchy_stat(fd, ".", &now))
		child->leaf = now.leaf;
	return child->leaf ? 0 : scan_dir(scan->fs, child, fd, scan->deep);
}

static int scan_child(void *ctx, const struct hierarchy_child *child)
{
	struct scan *scan = ctx;
	struct cgroupfs *fs = scan->fs;
	struct cgroupfs_dir *dir;
	bool known;
	int r;

	dir = dir_find(fs, scan->dir->key.hierarchy, child->id);
	known = dir && dir->parent == scan->dir && !dir->gone_ns;
	r = dir_see(fs, scan->dir->key.hierarchy, scan->dir, child, &dir);
	if (r || !dir)
		return r;
	dir->scan = scan->number;
	if (known && !scan->deep && !should_watch(fs, dir))
		return 0;
	return scan_into(scan, dir);
}

/* @fd is @dir, which has been watched already if it is to be. */
static int scan_dir(struct cgroupfs *fs, struct cgroupfs_dir *dir, int fd, bool deep)
{
	struct scan scan = {.fs = fs, .dir = dir, .number = ++fs->scan, .fd = fd, .deep = deep};
	struct cgroupfs_dir *child, *next;
	int r;

	fs->n_scans++;
	r = hierarchy_each(fd, scan_child, &scan);
	if (r == -ENOMEM)
		return r;
	if (r) {
		/* half a listing says nothing about what was not in it */
		if (r != ROOT_GONE)
			fs->n_refused[REFUSED_UNREADABLE]++;
		return 0;
	}
	DL_FOREACH_SAFE(dir->children, child, next)
	if (child->scan != scan.number)
		dir_remove(fs, child);
	return 0;
}

static int scan_tree(struct cgroupfs *fs, enum hierarchy hierarchy)
{
	struct hierarchy_child self;
	struct cgroupfs_dir *dir;
	int fd = fs->set.roots[hierarchy].fd, r;

	if (fd < 0)
		return 0;
	r = hierarchy_stat(fd, ".", &self);
	if (r)
		return r < 0 ? r : 0;
	self.name = "";
	if (fs->top[hierarchy] && fs->top[hierarchy]->key.id != self.id)
		dir_remove(fs, fs->top[hierarchy]);
	r = dir_see(fs, hierarchy, NULL, &self, &dir);
	if (r || !dir)
		return r;
	watch_add(fs, dir, fd);
	return scan_dir(fs, dir, fd, true);
}

static uint64_t walk_period(const struct cgroupfs *fs)
{
	return !fs->watcher || fs->n_unwatched ? CGROUPFS_WALK_BLIND_NS : CGROUPFS_WALK_WATCHED_NS;
}

int cgroupfs_walk(struct cgroupfs *fs, enum cgroupfs_walk_reason reason)
{
	uint64_t start = nsec_monotonic();
	int r = 0;

	fs->watches_out = false;
	for (enum hierarchy h = 0; h < HIERARCHY_MAX && !r; h++)
		r = scan_tree(fs, h);
	forget_old(fs);
	fs->walked_ns = nsec_monotonic();
	fs->n_walks[reason]++;
	fs->walk_ns += fs->walked_ns - start;
	if (fs->walk_timer)
		loop_arm(fs->walk_timer, walk_period(fs), 0);
	return r;
}

bool cgroupfs_walk_for_miss(struct cgroupfs *fs)
{
	if (nsec_monotonic() - fs->walked_ns < CGROUPFS_WALK_MISS_GAP_NS)
		return false;
	(void)cgroupfs_walk(fs, CGROUPFS_WALK_MISS);
	return true;
}

/* One component of a path that is to be learned; *@dir moves down to it. */
static bool learn_step(struct cgroupfs *fs, struct cgroupfs_dir **dir, const char *name)
{
	_cleanup_(close_fdp) int fd = -1;
	struct hierarchy_child child;
	struct cgroupfs_dir *found;

	if (strcmp(name, "..") == 0 || open_below(fs, *dir, &fd))
		return false;
	if (hierarchy_stat(fd, name, &child))
		return false;
	if (dir_see(fs, (*dir)->key.hierarchy, *dir, &child, &found) || !found)
		return false;
	*dir = found;
	return true;
}

void cgroupfs_learn(struct cgroupfs *fs, enum hierarchy hierarchy, struct text path)
{
	struct cgroupfs_dir *dir = fs->top[hierarchy];
	struct text component;
	bool found = dir != NULL;

	while (found && text_until(&path, '/', &component)) {
		_cleanup_(freep) char *name = NULL;

		if (text_empty(&component))
			continue;
		name = text_dup(component);
		found = name && learn_step(fs, &dir, name);
	}
}

/* ---- changes ---- */

static void on_walk_timer(void *ctx)
{
	/* without memory the table is not complete; the next walk tries again */
	(void)cgroupfs_walk(ctx, CGROUPFS_WALK_TIMER);
}

static void on_changed(void *ctx, void *data)
{
	_cleanup_(close_fdp) int fd = -1;
	struct cgroupfs_dir *dir = data;
	struct cgroupfs *fs = ctx;

	if (!open_below(fs, dir, &fd))
		(void)scan_dir(fs, dir, fd, false);
}

static void on_lost(void *ctx)
{
	(void)cgroupfs_walk(ctx, CGROUPFS_WALK_OVERFLOW);
}

/* Without inotify the walks are all there is. */
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
		fs->n_refused[REFUSED_WATCH]++;
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
	fs->grace_ns = opts->grace_ns;
	fs->events = opts->events;
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
	struct cgroupfs_dir *dir, *next;

	if (!fs)
		return;
	loop_remove(fs->walk_timer);
	watcher_free(fs->watcher);
	HASH_ITER(hh, fs->dirs, dir, next)
		dir_forget(fs, dir);
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

int cgroupfs_procs(struct cgroupfs *fs, const struct cgroupfs_dir *dir,
		   int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(CGROUPFS_PROCS_BYTES_MAX);
	_cleanup_(root_deinit) struct root root = ROOT_INIT;
	struct text t, line;
	uint64_t pid;
	int r;

	r = open_below(fs, dir, &root.fd);
	if (!r)
		r = root_read(&root, "cgroup.procs", &b);
	if (r || !b.data)
		return r;
	t = text_of_bytes(b.data, b.len);
	while (text_line(&t, &line)) {
		if (!text_only_u64(line, 10, &pid) || pid > INT32_MAX)
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
	const struct cgroupfs_dir *dir;

	for (dir = fs->dirs; dir; dir = dir->hh.next)
		n[dir->gone_ns ? HIERARCHY_MAX : dir->key.hierarchy]++;
	metric_by_name(sink, &family, "state", n, names, array_size(n));
}

void cgroupfs_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc walks = {
		"podprof_cgroup_walks", METRIC_COUNTER,
		"Walks over all cgroup directories, by reason.", NULL};
	static const struct metric_family_desc refused = {
		"podprof_cgroup_refused", METRIC_COUNTER,
		"Cgroup directories left out or not watched, by reason.", NULL};
	static const struct metric_family_desc seconds = {"podprof_cgroup_walk_seconds",
							  METRIC_COUNTER,
							  "Time spent in these walks.", "seconds"};
	static const struct metric_family_desc events = {"podprof_cgroup_events", METRIC_COUNTER,
							 "Events from inotify.", NULL};
	static const struct metric_family_desc scans = {"podprof_cgroup_scans", METRIC_COUNTER,
							"Listings of single cgroup directories.",
							NULL};
	static const struct metric_family_desc watches = {"podprof_cgroup_watches", METRIC_GAUGE,
							  "Watches held, and wanted but not had.",
							  NULL};
	const struct cgroupfs *fs = ctx;

	collect_dirs(fs, sink);
	metric_by_name(sink, &walks, "reason", fs->n_walks, walk_names, CGROUPFS_WALK_MAX);
	metric_by_name(sink, &refused, "reason", fs->n_refused, refused_names, REFUSED_MAX);
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
