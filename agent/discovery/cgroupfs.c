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
#include "base/vec.h"
#include "discovery/cgroup_line.h"
#include "discovery/watcher.h"

/* Bytes of a cgroup.procs: 100,000 processes. The processes of a larger file are not listed.
 * Reached: `podprof_cgroup_refused_total{reason="unreadable"}`. */
#define CGROUPFS_PROCS_BYTES_MAX (1u << 20)

#define CGROUPFS_WALK_WATCHED_NS  (30 * NSEC_PER_SEC)
#define CGROUPFS_WALK_BLIND_NS	  (3 * NSEC_PER_SEC)
#define CGROUPFS_WALK_MISS_GAP_NS NSEC_PER_SEC /* after lost events, too */
/* Subdirectories that are compared in one step; more are compared one by one. */
#define CGROUPFS_LEAVES_STEP	  64
/* After so many refused subdirectories the listing of a directory ends. */
#define CGROUPFS_LEFT_OUT_ENOUGH  256
/* Walks use at most a hundredth of a CPU: expensive walks are further apart. A container can make
 * any number of directories, lose events, and cause samples in removed directories. */
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
	uint64_t newest[HIERARCHY_MAX];
	struct cgroupdir_events events; /* the user's */
	void *ctx;
	uint32_t scan; /* number of the last listing */

	struct watcher *watcher; /* NULL: do without */
	bool watches_out;	 /* no new attempt before the next walk */
	size_t n_unwatched;
	struct scan *scans;	   /* under way: the innermost first */
	struct loop_source *steps; /* NULL: without a loop */
	struct loop_source *walk_timer;
	bool walking;
	bool lost;		  /* events, since the last walk began */
	enum hierarchy walk_tree; /* the next to be scanned */
	uint64_t walk_step_ns;	  /* CPU time of this walk so far */
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

	if (dir->key.id > fs->newest[dir->key.hierarchy])
		fs->newest[dir->key.hierarchy] = dir->key.id;
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

uint64_t cgroupfs_newest(const struct cgroupfs *fs, enum hierarchy hierarchy)
{
	return fs->newest[hierarchy];
}

struct cgroupdir *cgroupfs_find(struct cgroupfs *fs, enum hierarchy hierarchy, uint64_t id)
{
	return cgroupdir_find(&fs->table, hierarchy, id);
}

struct cgroupdir *cgroupfs_next(struct cgroupfs *fs, const struct cgroupdir *dir)
{
	return cgroupdir_next(&fs->table, dir);
}

void cgroupfs_cursor_init(struct cgroupfs *fs, struct cgroupdir_cursor *cursor)
{
	cgroupdir_cursor_init(&fs->table, cursor);
}

void cgroupfs_cursor_deinit(struct cgroupfs *fs, struct cgroupdir_cursor *cursor)
{
	cgroupdir_cursor_deinit(&fs->table, cursor);
}

/* Calls cgroupdir_see() and counts refused directories. */
static int see(struct cgroupfs *fs, enum hierarchy hierarchy, struct cgroupdir *parent,
	       const struct hierarchy_child *child, struct cgroupdir **ret)
{
	int r = cgroupdir_see(&fs->table, hierarchy, parent, child, ret);

	if (!r)
		(*ret)->scan = fs->scan;
	if (r > 0)
		fs->n_left_out[r]++;
	return r;
}

/* ---- scans ---- */

/*
 * A scan first finds the subdirectories of its directory, one a step: it lists the directory, or,
 * in a walk, only compares the directory with the table. Then it visits the subdirectories, one a
 * step, and each visit may begin another scan. A directory may leave the table between two steps.
 */

enum scan_phase { SCAN_LIST, SCAN_VISIT };

/**
 * struct scan - the scan of one directory
 * @up:         the scan that waits for this one
 * @dir:        key of the directory, open as @fd
 * @deep:       visit every subdirectory, not only new ones
 * @list:       in the phase SCAN_LIST
 * @is_known:   the subdirectories are from the table, and each is still to be compared
 * @children:   ids to visit; @at: the next
 * @n_left_out: subdirectories without room in the table
 */
struct scan {
	struct scan *up;
	struct cgroupdir_key dir;
	int fd;
	bool deep;
	enum scan_phase phase;
	DIR *list;
	bool is_known;
	uint64_t *children;
	size_t n_children, children_cap, at;
	unsigned int n_left_out;
};

static void scan_free(struct scan *scan)
{
	if (!scan)
		return;
	close_fdp(&scan->fd);
	closedirp(&scan->list);
	free(scan->children);
	free(scan);
}

DEFINE_CLEANUP(struct scan *, scan_freep, scan_free);

/* Bytes of a directory's name with the NUL: the kernel's own limit. */
#define NAME_BYTES (NAME_MAX + 1)

/* A leaf on the node may still have removed subdirectories in the table: those need a scan. */
static bool is_leaf(const struct cgroupdir *dir)
{
	return dir->leaf && !dir->children;
}

/* True if the subdirectory @name of @fd is still @child. */
static bool is_same(int fd, const char *name, struct cgroupdir *child)
{
	struct hierarchy_child now;

	if (hierarchy_stat(fd, name, &now) || now.id != child->key.id)
		return false;
	cgroupdir_saw(child, &now);
	return true;
}

/* True if the table has exactly the subdirectories of @dir, and all are leaves. @dir is a
 * subdirectory of @fd that was just read. Checking by path from the scanned directory avoids
 * opening @dir: most directories of a walk are pods with their containers. */
static bool leaves_known(const struct cgroupfs *fs, int fd, const struct cgroupdir *dir)
{
	const size_t n = strlen(dir->name);
	char path[2 * NAME_BYTES];
	struct cgroupdir *child;
	uint64_t n_children = 0;

	DL_COUNT(dir->children, child, n_children);
	if (n >= NAME_BYTES || dir->n_children != n_children || n_children > CGROUPFS_LEAVES_STEP)
		return false;
	memcpy(path, dir->name, n);
	path[n] = '/';
	DL_FOREACH(dir->children, child)
	if (!memccpy(path + n + 1, child->name, '\0', NAME_BYTES) || !is_same(fd, path, child) ||
	    !is_leaf(child) || should_watch(fs, child))
		return false;
	return true;
}

static int scan_add_child(struct scan *scan, uint64_t id)
{
	int r = vec_grow(&scan->children, &scan->children_cap, scan->n_children + 1,
			 sizeof(*scan->children), CGROUPDIR_MAX);

	if (!r)
		scan->children[scan->n_children++] = id;
	return r < 0 ? r : 0;
}

/* Visits all subdirectories in the table, if their number is right. */
static int scan_begin_known(struct scan *scan, const struct cgroupdir *dir, bool *ret_known)
{
	struct hierarchy_child self;
	struct cgroupdir *child;
	uint64_t n = 0;
	int r = 0;

	DL_COUNT(dir->children, child, n);
	*ret_known = !hierarchy_stat(scan->fd, ".", &self) && self.n_children == n;
	if (!*ret_known)
		return 0;
	scan->is_known = true;
	scan->phase = SCAN_VISIT;
	for (child = dir->children; child && !r; child = child->next)
		r = scan_add_child(scan, child->key.id);
	return r;
}

static int scan_begin_list(struct cgroupfs *fs, struct scan *scan)
{
	int r = hierarchy_list(scan->fd, &scan->list);

	fs->n_scans++;
	scan->phase = r ? SCAN_VISIT : SCAN_LIST;
	scan->is_known = false;
	scan->n_children = scan->at = 0;
	fs->scan++;
	if (r > 0 && r != ROOT_GONE)
		fs->n_unreadable++;
	return r < 0 ? r : 0;
}

/* Begins the scan of @dir, before the scans under way. Takes @fd, the open directory, also on
 * failure. The caller has set the watch. @only: instead of all subdirectories; 0: none. */
static int scan_begin(struct cgroupfs *fs, const struct cgroupdir *dir, int fd, bool deep,
		      uint64_t only)
{
	_cleanup_(scan_freep) struct scan *scan = calloc(1, sizeof(*scan));
	bool known = false;
	int r = 0;

	if (!scan) {
		close(fd);
		return -ENOMEM;
	}
	scan->fd = fd;
	scan->dir = dir->key;
	scan->deep = deep;
	if (only) {
		scan->phase = SCAN_VISIT;
		r = scan_add_child(scan, only);
	} else if (deep) {
		r = scan_begin_known(scan, dir, &known);
	}
	if (!r && !only && !known)
		r = scan_begin_list(fs, scan);
	if (r)
		return r;
	scan->up = fs->scans;
	fs->scans = take_ptr(scan);
	return 0;
}

/* A subdirectory: watch first, then list. */
static int visit(struct cgroupfs *fs, const struct scan *scan, struct cgroupdir *child)
{
	_cleanup_(close_fdp) int fd = -1;
	struct hierarchy_child now;

	if (!should_watch(fs, child) && (is_leaf(child) || leaves_known(fs, scan->fd, child)))
		return 0;
	fd = openat(scan->fd, child->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		if (root_outcome(errno) != ROOT_GONE)
			fs->n_unreadable++;
		return 0;
	}
	watch_add(fs, child, fd);
	/* a subdirectory may have appeared before the watch */
	if (child->leaf && !hierarchy_stat(fd, ".", &now))
		cgroupdir_saw(child, &now);
	return is_leaf(child) ? 0 : scan_begin(fs, child, take_fd(fd), scan->deep, 0);
}

/* Takes a subdirectory into the table, and into the list if it is to be visited. 0, 1 to end the
 * listing, -ENOMEM. */
static int scan_see(struct cgroupfs *fs, struct scan *scan, struct cgroupdir *parent,
		    const struct hierarchy_child *child)
{
	struct cgroupdir *dir = cgroupfs_find(fs, scan->dir.hierarchy, child->id);
	const bool known = dir && dir->parent == parent && !dir->gone_ns;
	int r = see(fs, scan->dir.hierarchy, parent, child, &dir);

	if (r < 0)
		return r;
	if (r)
		return ++scan->n_left_out >= CGROUPFS_LEFT_OUT_ENOUGH;
	return known && !scan->deep && !should_watch(fs, dir) ? 0 : scan_add_child(scan, child->id);
}

/* An incomplete listing says nothing about missing entries. */
static void scan_end_list(struct cgroupfs *fs, struct scan *scan, struct cgroupdir *dir, int r)
{
	struct cgroupdir *child, *next;

	scan->phase = SCAN_VISIT;
	closedirp(&scan->list);
	scan->list = NULL;
	if (r == HIERARCHY_END) {
		DL_FOREACH_SAFE(dir->children, child, next)
			if (child->scan != fs->scan)
				cgroupdir_remove(&fs->table, child);
	} else if (r > 0 && r != ROOT_GONE && scan->n_left_out < CGROUPFS_LEFT_OUT_ENOUGH) {
		fs->n_unreadable++;
	}
}

static int scan_list(struct cgroupfs *fs, struct scan *scan, struct cgroupdir *dir)
{
	struct hierarchy_child child;
	int r = hierarchy_next(scan->list, &child);

	if (!r)
		r = scan_see(fs, scan, dir, &child);
	if (r)
		scan_end_list(fs, scan, dir, r);
	return r == -ENOMEM ? r : 0;
}

/* The next subdirectory that is still there. */
static int scan_visit(struct cgroupfs *fs, struct scan *scan, const struct cgroupdir *dir)
{
	struct cgroupdir *child =
		cgroupfs_find(fs, scan->dir.hierarchy, scan->children[scan->at++]);

	if (!child || child->gone_ns || child->parent != dir)
		return 0;
	if (scan->is_known && !is_same(scan->fd, child->name, child))
		return scan_begin_list(fs, scan);
	return visit(fs, scan, child);
}

/* One subdirectory of the scan under way. 0 or -ENOMEM. */
static int scan_step(struct cgroupfs *fs)
{
	struct scan *scan = fs->scans;
	struct cgroupdir *dir = cgroupfs_find(fs, scan->dir.hierarchy, scan->dir.id);
	bool there = dir && !dir->gone_ns;

	if (there && scan->phase == SCAN_LIST)
		return scan_list(fs, scan, dir);
	if (there && scan->at < scan->n_children)
		return scan_visit(fs, scan, dir);
	fs->scans = scan->up;
	scan_free(scan);
	return 0;
}

/* ---- walks ---- */

static int scan_tree(struct cgroupfs *fs, enum hierarchy hierarchy)
{
	_cleanup_(close_fdp) int fd = -1;
	struct hierarchy_child self;
	struct cgroupdir *dir;
	int r;

	if (!cgroupfs_has(fs, hierarchy))
		return 0;
	fd = openat(fs->set.roots[hierarchy].fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
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
	return scan_begin(fs, dir, take_fd(fd), true, 0);
}

/* The larger of @ns and the gap for the last walk's cost. */
static uint64_t walk_gap(const struct cgroupfs *fs, uint64_t ns)
{
	const uint64_t least_ns = fs->last_walk_ns * CGROUPFS_WALK_SHARE;

	return ns > least_ns ? ns : least_ns;
}

static void walk_begin(struct cgroupfs *fs, enum cgroupfs_walk_reason reason)
{
	fs->n_walks[reason]++;
	fs->watches_out = false;
	fs->walk_step_ns = 0;
	fs->walk_tree = 0;
	fs->walking = true;
	fs->lost = false;
}

static uint64_t next_walk_gap(const struct cgroupfs *fs)
{
	if (fs->lost)
		return walk_gap(fs, CGROUPFS_WALK_MISS_GAP_NS);
	return walk_gap(fs, !fs->watcher || fs->n_unwatched ? CGROUPFS_WALK_BLIND_NS
							    : CGROUPFS_WALK_WATCHED_NS);
}

static void walk_end(struct cgroupfs *fs)
{
	fs->walking = false;
	cgroupdir_expire(&fs->table);
	fs->walked_ns = nsec_monotonic();
	fs->last_walk_ns = fs->walk_step_ns;
	fs->walk_ns += fs->walk_step_ns;
	if (fs->walk_timer)
		loop_arm(fs->walk_timer, next_walk_gap(fs), 0);
}

/* After -ENOMEM the table is incomplete; the next walk tries again. */
static int walk_step(struct cgroupfs *fs)
{
	const uint64_t begun_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID);
	int r;

	r = fs->scans ? scan_step(fs) : scan_tree(fs, fs->walk_tree++);
	fs->walk_step_ns += nsec_read(CLOCK_THREAD_CPUTIME_ID) - begun_ns;
	if (!fs->scans && fs->walk_tree == HIERARCHY_MAX)
		walk_end(fs);
	return r;
}

int cgroupfs_walk(struct cgroupfs *fs, enum cgroupfs_walk_reason reason)
{
	int r = 0, step;

	walk_begin(fs, reason);
	while (fs->walking) {
		step = walk_step(fs);
		r = r ? r : step;
	}
	return r;
}

/* ---- pending work, in slices ---- */

/* One step of the work that is pending: a scan, a walk, an event. False: none is. */
static bool cgroupfs_step(void *ctx)
{
	struct cgroupfs *fs = ctx;
	uint64_t begun_ns;
	bool more;

	if (fs->walking) {
		(void)walk_step(fs);
		return fs->walking || fs->watcher;
	}
	if (!fs->watcher)
		return false;
	begun_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID);
	if (fs->scans) {
		(void)scan_step(fs);
		more = true;
	} else {
		more = watcher_next(fs->watcher) || fs->walking;
	}
	watcher_charge(fs->watcher, nsec_read(CLOCK_THREAD_CPUTIME_ID) - begun_ns);
	return more;
}

/* A slice now, the rest in later turns. */
static void run_slice(struct cgroupfs *fs)
{
	const uint64_t end_ns = nsec_monotonic() + LOOP_SLICE_NS;
	bool more;

	do
		more = cgroupfs_step(fs);
	while (more && (!fs->steps || nsec_monotonic() < end_ns));
	if (more)
		(void)loop_arm(fs->steps, 0, 0);
}

void cgroupfs_catch_up(struct cgroupfs *fs)
{
	if (fs->watcher && watcher_catch_up(fs->watcher))
		run_slice(fs);
}

bool cgroupfs_walk_for_miss(struct cgroupfs *fs)
{
	if (fs->walking ||
	    nsec_monotonic() - fs->walked_ns < walk_gap(fs, CGROUPFS_WALK_MISS_GAP_NS))
		return false;
	walk_begin(fs, CGROUPFS_WALK_MISS);
	run_slice(fs);
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
	struct cgroupfs *fs = ctx;

	if (!fs->walking)
		walk_begin(fs, fs->lost ? CGROUPFS_WALK_OVERFLOW : CGROUPFS_WALK_TIMER);
	(void)loop_arm(fs->steps, 0, 0);
}

/* The subdirectory @name of @dir (open as @fd) was made or removed, or both. Takes @fd. */
static void scan_name(struct cgroupfs *fs, struct cgroupdir *dir, int fd, const char *name)
{
	_cleanup_(close_fdp) int taken = fd;
	struct cgroupdir *known = cgroupdir_child(&fs->table, dir, name), *found;
	struct hierarchy_child child;
	bool there = !hierarchy_stat(fd, name, &child), was_known;

	was_known = known && there && known->key.id == child.id;
	if (known && !was_known)
		cgroupdir_remove(&fs->table, known);
	if (!there || see(fs, dir->key.hierarchy, dir, &child, &found))
		return;
	if (!was_known || should_watch(fs, found))
		(void)scan_begin(fs, dir, take_fd(taken), false, child.id);
}

static void on_changed(void *ctx, void *data, const char *name)
{
	_cleanup_(close_fdp) int fd = -1;
	struct cgroupdir *dir = data;
	struct cgroupfs *fs = ctx;

	if (open_below(fs, dir, &fd))
		return;
	if (name)
		scan_name(fs, dir, take_fd(fd), name);
	else
		(void)scan_begin(fs, dir, take_fd(fd), false, 0);
}

/* A walk finds what the events would have told. A container can lose events all the time, so these
 * walks keep the distance of the others. */
static void on_lost(void *ctx)
{
	struct cgroupfs *fs = ctx;
	uint64_t gap_ns, since_ns;

	fs->lost = true;
	if (fs->walking)
		return; /* its end arms the timer */
	gap_ns = next_walk_gap(fs);
	since_ns = nsec_monotonic() - fs->walked_ns;
	if (since_ns >= gap_ns)
		walk_begin(fs, CGROUPFS_WALK_OVERFLOW);
	else
		(void)loop_arm(fs->walk_timer, gap_ns - since_ns, 0);
}

static void on_ready(void *ctx)
{
	struct cgroupfs *fs = ctx;

	(void)loop_arm(fs->steps, 0, 0);
}

/* Without inotify only the walks find changes. */
static int follow(struct cgroupfs *fs, const struct cgroupfs_opts *opts)
{
	struct watcher_opts watcher_opts = {
		.loop = opts->loop,
		.proc = opts->proc,
		.ready = on_ready,
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
	r = loop_add_steps(opts->loop, cgroupfs_step, fs, &fs->steps);
	return r ? r : loop_add_timer(opts->loop, on_walk_timer, fs, &fs->walk_timer);
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
	while (fs->scans) {
		struct scan *scan = fs->scans;

		fs->scans = scan->up;
		scan_free(scan);
	}
	loop_remove(fs->steps);
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

bool cgroupfs_is_copy(const struct cgroupfs *fs)
{
	return hierarchy_is_copy(&fs->set);
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
	static const struct metric_family_desc seconds = {"podprof_cgroup_walk_seconds",
							  METRIC_COUNTER,
							  "CPU time of these walks.", "seconds"};
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
