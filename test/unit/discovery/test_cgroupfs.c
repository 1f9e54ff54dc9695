// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/root.h"
#include "discovery/cgroupfs.h"
#include "support/allocfail.h"
#include "support/metrics.h"
#include "support/tree.h"
#include "support/until.h"

#define ID1  "73051af271105c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd"
#define ID2  "40c03570b6f4c30bc8d69923d37ee698f5cfcced92c7b7df1c47f6f7887378a9"
#define POD  "2c48913c-b29f-11e7-9350-020968147796"
#define LONG UINT64_C(3600000000000) /* a grace period beyond the test's end */

/* ---- events of the table ---- */

struct log {
	size_t n_added;
	size_t n_removed;
	size_t n_forgotten;
	uint64_t wanted_id; /* added_wanted: the added directory */
	bool added_wanted;
};

static void on_added(void *ctx, struct cgroupdir *dir, const struct cgroup_id *id)
{
	struct log *log = ctx;

	assert_int_equal(dir->kind, id->kind);
	assert_null(dir->data);
	dir->data = log;
	log->n_added++;
	log->added_wanted |= dir->key.id == log->wanted_id;
}

static void on_removed(void *ctx, struct cgroupdir *dir)
{
	struct log *log = ctx;

	assert_ptr_equal(dir->data, log);
	log->n_removed++;
}

static void on_forgotten(void *ctx, struct cgroupdir *dir)
{
	struct log *log = ctx;

	assert_ptr_equal(dir->data, log);
	log->n_forgotten++;
}

static const struct cgroupdir_events log_events = {on_added, on_removed, on_forgotten};

static struct root proc = ROOT_INIT;

static struct cgroupfs *open_tree(const char *path, struct loop *loop, uint64_t grace_ns,
				  struct log *log)
{
	struct cgroupfs_opts opts = {
		.path = path,
		.proc = &proc,
		.loop = loop,
		.grace_ns = grace_ns,
		.events = log ? &log_events : NULL,
		.ctx = log,
	};
	struct cgroupfs *fs;

	assert_int_equal(cgroupfs_new(&opts, &fs), 0);
	assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_START), 0);
	return fs;
}

static uint64_t metric(struct cgroupfs *fs, const char *family, const char *label)
{
	return metrics_get(cgroupfs_collect, fs, family, label);
}

static void assert_path(const struct cgroupdir *dir, const char *path)
{
	struct cgroupdir_path is;

	assert_non_null(dir);
	cgroupdir_path(dir, &is);
	assert_string_equal(is.s, path);
}

struct wanted {
	struct cgroupfs *fs;
	uint64_t id;
};

static bool is_known(void *ctx)
{
	const struct wanted *wanted = ctx;

	return cgroupfs_find(wanted->fs, HIERARCHY_V2, wanted->id) != NULL;
}

/* ---- plain trees ---- */

/* The bare paths among the collected ones, as directories. */
static void test_vectors(void **state)
{
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(1u << 20);
	_cleanup_(root_deinit) struct root data = ROOT_INIT;
	struct strview rows, row, path, again;
	struct cgroupfs *fs;
	struct cgroup_id id;
	struct tree tree;
	size_t n = 0;

	(void)state;
	tree_init(&tree);
	assert_int_equal(root_open("test/data/cgroup", &data), 0);
	assert_int_equal(root_read(&data, "vectors.tsv", &file), 0);
	again = rows = strview_of_bytes(file.data, file.len);
	for (int pass = 0; pass < 2; pass++) {
		rows = again;
		fs = pass ? open_tree(tree.path, NULL, LONG, NULL) : NULL;
		while (strview_until(&rows, '\n', &row)) {
			_cleanup_(freep) char *s = NULL;
			struct cgroupdir *dir;
			uint64_t ino;

			if (!strview_until(&row, '\t', &path) || !strview_starts(&path, "/") ||
			    strview_len(&path) < 2 || memchr(path.p, '\\', strview_len(&path)))
				continue;
			s = strview_dup(path);
			assert_non_null(s);
			ino = tree_mkdir(tree.fd, s + 1);
			if (!pass)
				continue;
			row_begin(s);
			dir = cgroupfs_find(fs, HIERARCHY_V2, ino);
			assert_path(dir, s);
			cgroup_parse_path(path, &id);
			assert_int_equal(dir->kind, id.kind);
			n++;
		}
	}
	assert_in_range(n, 60, 163);
	assert_null(cgroupfs_find(fs, HIERARCHY_V2, 1));
	assert_null(cgroupfs_find(fs, HIERARCHY_V1, tree_mkdir(tree.fd, "docker")));
	cgroupfs_free(fs);
	tree_deinit(&tree);
}

static void test_two_trees(void **state)
{
	uint64_t v1, v2;
	struct cgroupfs *fs;
	struct tree tree;

	(void)state;
	tree_init(&tree);
	v2 = tree_mkdir(tree.fd, "unified/x");
	v1 = tree_mkdir(tree.fd, "memory/docker/" ID1);
	fs = open_tree(tree.path, NULL, LONG, NULL);
	assert_int_equal(cgroupfs_controller(fs), CONTROLLER_MEMORY);
	assert_true(cgroupfs_has(fs, HIERARCHY_V1) && cgroupfs_has(fs, HIERARCHY_V2));
	assert_path(cgroupfs_find(fs, HIERARCHY_V2, v2), "/x");
	assert_path(cgroupfs_find(fs, HIERARCHY_V1, v1), "/docker/" ID1);
	assert_null(cgroupfs_find(fs, HIERARCHY_V2, v1));
	assert_null(cgroupfs_find(fs, HIERARCHY_V1, v2));
	assert_int_equal(metric(fs, "podprof_cgroup_directories", "v2"), 2);
	assert_int_equal(metric(fs, "podprof_cgroup_directories", "v1"), 3);
	cgroupfs_free(fs);
	tree_deinit(&tree);
}

static void test_come_and_go(void **state)
{
	struct cgroupdir *dir;
	struct log log = {0};
	struct cgroupfs *fs;
	struct tree tree;
	uint64_t id;

	(void)state;
	tree_init(&tree);
	id = tree_mkdir(tree.fd, "docker/" ID1 "/below");
	fs = open_tree(tree.path, NULL, LONG, &log);
	assert_int_equal(log.n_added, 4); /* and the tree's own */
	dir = cgroupfs_find(fs, HIERARCHY_V2, id);
	assert_int_equal(dir->kind, CGROUP_KIND_CONTAINER);

	tree_rmdir(tree.fd, "docker/" ID1 "/below");
	assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_TIMER), 0);
	assert_int_equal(log.n_removed, 3);
	assert_int_equal(log.n_forgotten, 0);
	assert_ptr_equal(cgroupfs_find(fs, HIERARCHY_V2, id), dir);
	assert_true(dir->gone_ns != 0);
	assert_path(dir, "");
	assert_int_equal(metric(fs, "podprof_cgroup_directories", "gone"), 3);
	cgroupfs_free(fs);
	assert_int_equal(log.n_forgotten, 4);

	/* without a grace period the directory is dropped at once */
	log = (struct log){0};
	tree_mkdir(tree.fd, "docker/" ID1);
	fs = open_tree(tree.path, NULL, 0, &log);
	tree_rmdir(tree.fd, "docker/" ID1);
	assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_TIMER), 0);
	assert_int_equal(log.n_forgotten, 2);
	cgroupfs_free(fs);
	tree_deinit(&tree);
}

/* A walk alone removes a directory's last subdirectory, with all below: the directory is a leaf by
 * then. */
static void test_last_child(void **state)
{
	struct cgroupfs *fs;
	struct tree tree;

	(void)state;
	tree_init(&tree);
	tree_mkdir(tree.fd, "a/b/c/d");
	fs = open_tree(tree.path, NULL, LONG, NULL);
	assert_int_equal(metric(fs, "podprof_cgroup_directories", "v2"), 5);
	assert_int_equal(unlinkat(tree.fd, "a/b/c/d", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(tree.fd, "a/b/c", AT_REMOVEDIR), 0);
	assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_TIMER), 0);
	assert_int_equal(metric(fs, "podprof_cgroup_directories", "v2"), 3);
	cgroupfs_free(fs);
	tree_deinit(&tree);
}

/* Same number, new name: another directory. */
static void test_rename(void **state)
{
	struct log log = {0};
	struct cgroupfs *fs;
	struct tree tree;
	uint64_t id, below;

	(void)state;
	tree_init(&tree);
	id = tree_mkdir(tree.fd, "docker/" ID1);
	below = tree_mkdir(tree.fd, "docker/" ID1 "/below");
	fs = open_tree(tree.path, NULL, LONG, &log);
	assert_int_equal(renameat(tree.fd, "docker/" ID1, tree.fd, ID2), 0);
	assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_TIMER), 0);
	assert_path(cgroupfs_find(fs, HIERARCHY_V2, id), "/" ID2);
	assert_path(cgroupfs_find(fs, HIERARCHY_V2, below), "/" ID2 "/below");
	assert_int_equal(log.n_removed, 2);
	assert_int_equal(log.n_forgotten, 2);
	cgroupfs_free(fs);
	tree_deinit(&tree);
}

static void test_depth(void **state)
{
	char path[64];
	uint64_t deepest = 0, id = 0;
	struct cgroupfs *fs;
	struct tree tree;

	(void)state;
	tree_init(&tree);
	for (size_t depth = 1; depth <= 26; depth++) {
		for (size_t i = 0; i < depth; i++)
			snprintf(path + 2 * i, sizeof(path) - 2 * i, "d/");
		path[2 * depth - 1] = '\0';
		id = tree_mkdir(tree.fd, path);
		if (depth == 24)
			deepest = id;
	}
	fs = open_tree(tree.path, NULL, LONG, NULL);
	assert_non_null(cgroupfs_find(fs, HIERARCHY_V2, deepest));
	assert_null(cgroupfs_find(fs, HIERARCHY_V2, id));
	assert_int_equal(metric(fs, "podprof_cgroup_refused", "too_deep"), 1);
	cgroupfs_free(fs);
	tree_deinit(&tree);
}

/* @n components of 200 characters. */
static void long_path(char *ret, size_t size, size_t n)
{
	for (size_t i = 0; i < n; i++)
		snprintf(ret + 201 * i, size - 201 * i, "%0200d/", (int)i);
	ret[201 * n - 1] = '\0';
}

/* A path too long for /proc/PID/cgroup, but not too deep: 20 components are 4020 characters, 21 are
 * 4221. */
static void test_long_path(void **state)
{
	char path[201 * 24], last[16] = "last";
	struct cgroupfs *fs;
	struct tree tree;
	int at;

	(void)state;
	tree_init(&tree);
	long_path(path, sizeof(path), 20);
	tree_mkdir(tree.fd, path);
	at = openat(tree.fd, path, O_DIRECTORY | O_RDONLY);
	assert_true(at >= 0);
	fs = open_tree(tree.path, NULL, LONG, NULL);
	assert_int_equal(metric(fs, "podprof_cgroup_directories", "v2"), 21);
	cgroupfs_free(fs);

	tree_mkdir(at, last);
	long_path(path, sizeof(path), 1);
	tree_mkdir(at, path);
	fs = open_tree(tree.path, NULL, LONG, NULL);
	assert_int_equal(metric(fs, "podprof_cgroup_directories", "v2"), 22);
	assert_int_equal(metric(fs, "podprof_cgroup_refused", "too_deep"), 1);
	cgroupfs_free(fs);
	assert_int_equal(unlinkat(at, path, AT_REMOVEDIR), 0);
	close(at);
	tree_deinit(&tree);
}

/* Directories of a single container leave room for the others. */
static void test_below_one_container(void **state)
{
	struct cgroupfs *fs;
	struct tree tree;
	uint64_t other;
	char name[16];
	int at;

	(void)state;
	tree_init(&tree);
	tree_mkdir(tree.fd, "docker/" ID1);
	at = openat(tree.fd, "docker/" ID1, O_DIRECTORY | O_RDONLY);
	assert_true(at >= 0);
	for (int i = 0; i < 4098; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(mkdirat(at, name, 0755), 0);
	}
	other = tree_mkdir(tree.fd, "docker/" ID2 "/x");
	fs = open_tree(tree.path, NULL, LONG, NULL);
	assert_int_equal(metric(fs, "podprof_cgroup_refused", "too_many_in_container"), 2);
	assert_non_null(cgroupfs_find(fs, HIERARCHY_V2, other));
	/* when two go, the two others get in */
	assert_int_equal(unlinkat(at, "0", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(at, "4097", AT_REMOVEDIR), 0);
	assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_TIMER), 0);
	assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_TIMER), 0);
	assert_int_equal(metric(fs, "podprof_cgroup_directories", "v2"), 1 + 1 + 1 + 4096 + 2);
	cgroupfs_free(fs);
	close(at);
	tree_deinit(&tree);
}

static bool all_told(void *ctx)
{
	struct cgroupfs *fs = ctx;

	return metric(fs, "podprof_cgroup_refused", "too_many_in_container") >= 256;
}

/* One container makes a hundred thousand directories under watch. Another's directory is still
 * reported in time, and no directory is listed again and again. */
static void test_flood(void **state)
{
	uint64_t others, before;
	struct cgroupfs *fs;
	struct loop *loop;
	struct tree tree;
	char name[16];
	int at;

	(void)state;
	tree_init(&tree);
	tree_mkdir(tree.fd, "docker/" ID1 "/x");
	assert_int_equal(loop_new(&loop), 0);
	fs = open_tree(tree.path, loop, LONG, NULL);
	at = openat(tree.fd, "docker/" ID1, O_DIRECTORY | O_RDONLY);
	assert_true(at >= 0);
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(mkdirat(at, name, 0755), 0);
		if (i % 10000 == 0)
			cgroupfs_catch_up(fs);
	}
	loop_until(loop, all_told, fs);
	others = tree_mkdir(tree.fd, "docker/" ID2);
	loop_until(loop, is_known, &(struct wanted){fs, others});
	assert_int_equal(metric(fs, "podprof_cgroup_directories", "v2"), 1 + 1 + 1 + 4096 + 1);
	/* a scan stops 256 behind the ceiling; the first walk also ends the scan under way */
	assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_TIMER), 0);
	before = metric(fs, "podprof_cgroup_refused", "too_many_in_container");
	assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_TIMER), 0);
	assert_int_equal(metric(fs, "podprof_cgroup_refused", "too_many_in_container"),
			 before + 256);
	cgroupfs_free(fs);
	loop_free(loop);
	close(at);
	tree_deinit(&tree);
}

/* More events than inotify's queue holds. */
static void lose_events(int at, unsigned int *number)
{
	char name[16];

	for (unsigned int i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "%u", ++*number);
		assert_int_equal(mkdirat(at, name, 0755), 0);
		assert_int_equal(unlinkat(at, name, AT_REMOVEDIR), 0);
	}
}

struct walks {
	struct cgroupfs *fs;
	uint64_t n;
};

static bool have_walked(void *ctx)
{
	const struct walks *walks = ctx;

	return metric(walks->fs, "podprof_cgroup_walks", "overflow") >= walks->n;
}

/* A container's events are lost again and again. A walk finds the others' directories nevertheless,
 * a second after the last walk at the earliest. */
static void test_lost(void **state)
{
	unsigned int number = 0;
	struct cgroupfs *fs;
	struct loop *loop;
	struct tree tree;
	uint64_t other, walked_ns;
	int at;

	(void)state;
	tree_init(&tree);
	tree_mkdir(tree.fd, "docker/" ID1 "/x");
	assert_int_equal(loop_new(&loop), 0);
	at = openat(tree.fd, "docker/" ID1, O_DIRECTORY | O_RDONLY);
	assert_true(at >= 0);
	walked_ns = nsec_monotonic();
	fs = open_tree(tree.path, loop, LONG, NULL);
	for (uint64_t n = 1; n < 3; n++) {
		lose_events(at, &number);
		loop_until(loop, have_walked, &(struct walks){fs, n});
		assert_true(nsec_monotonic() - walked_ns >= n * (NSEC_PER_SEC - NSEC_PER_MSEC));
	}
	lose_events(at, &number);
	other = tree_mkdir(tree.fd, "docker/" ID2);
	loop_until(loop, is_known, &(struct wanted){fs, other});
	cgroupfs_free(fs);
	loop_free(loop);
	close(at);
	tree_deinit(&tree);
}

/* A slice of work and the pause after it are of the clock's time: other programs' use of the CPU
 * may end either. One of so many tries has neither ended. */
#define CATCH_UP_TRIES 100

/* The id of a new directory, and whether it is known by an event read on demand. */
static bool make_and_catch_up(struct cgroupfs *fs, const struct tree *tree, int number,
			      uint64_t *ret_id)
{
	const struct cgroupdir *dir;
	char path[32];

	snprintf(path, sizeof(path), "/docker/%d", number);
	*ret_id = tree_mkdir(tree->fd, path + 1);
	assert_null(cgroupfs_find(fs, HIERARCHY_V2, *ret_id));
	cgroupfs_catch_up(fs);
	dir = cgroupfs_find(fs, HIERARCHY_V2, *ret_id);
	if (dir)
		assert_path(dir, path);
	return dir;
}

/* A pending event is read on demand, without a round of the loop. */
static void test_catch_up(void **state)
{
	bool is_read = false, again = true;
	struct cgroupfs *fs;
	struct loop *loop;
	struct tree tree;
	uint64_t id;
	int n = 0;

	(void)state;
	tree_init(&tree);
	assert_int_equal(loop_new(&loop), 0);
	fs = open_tree(tree.path, loop, LONG, NULL);
	for (int i = 0; i < CATCH_UP_TRIES && !is_read; i++) {
		usleep(20000); /* longer than the pause, if there was little work */
		is_read = make_and_catch_up(fs, &tree, n++, &id);
		if (!is_read)
			loop_until(loop, is_known, &(struct wanted){fs, id});
	}
	assert_true(is_read);
	/* and not again at once */
	for (int i = 0; i < CATCH_UP_TRIES && again; i++)
		again = make_and_catch_up(fs, &tree, n++, &id);
	assert_false(again);
	loop_until(loop, is_known, &(struct wanted){fs, id});
	assert_int_equal(metric(fs, "podprof_cgroup_walks", "timer"), 0);
	cgroupfs_free(fs);
	loop_free(loop);
	/* without a loop there is nothing to catch up with */
	fs = open_tree(tree.path, NULL, LONG, NULL);
	cgroupfs_catch_up(fs);
	cgroupfs_free(fs);
	tree_deinit(&tree);
}

#define SLICES_DIRS 20

struct slices {
	struct cgroupfs *fs;
	const struct tree *tree;
	size_t n_last;
	size_t most;	  /* directories that became known between two turns */
	bool is_removing; /* one directory after each turn */
	int n_removed;
};

static void on_turn(void *ctx, int fd, uint32_t events)
{
	struct slices *s = ctx;
	struct cgroupdir *dir = NULL;
	char path[32];
	size_t n = 0;

	(void)fd;
	(void)events;
	while ((dir = cgroupfs_next(s->fs, dir)))
		n++;
	if (n - s->n_last > s->most)
		s->most = n - s->n_last;
	s->n_last = n;
	if (!s->is_removing || s->n_removed == SLICES_DIRS)
		return;
	snprintf(path, sizeof(path), "b/%d", s->n_removed++);
	tree_rmdir(s->tree->fd, path);
}

/* A tree appears by a single event, and a walk visits the whole tree: a directory a turn.
 * Directories that go meanwhile do no harm. */
static void test_slices(void **state)
{
	int fd = eventfd(1, EFD_CLOEXEC);
	struct loop_source *turn;
	struct slices slices;
	struct cgroupfs *fs;
	struct loop *loop;
	struct tree tree;
	uint64_t last = 0;
	char path[32];

	(void)state;
	tree_init(&tree);
	assert_int_equal(loop_new(&loop), 0);
	loop_set_slice(loop, 0);
	fs = open_tree(tree.path, loop, LONG, NULL);
	slices = (struct slices){.fs = fs, .tree = &tree, .n_last = 1};
	for (int i = 0; i < SLICES_DIRS; i++) {
		snprintf(path, sizeof(path), "a/%d/x/y", i);
		last = tree_mkdir(tree.fd, path);
	}
	assert_int_equal(loop_add_fd(loop, fd, EPOLLIN, on_turn, &slices, &turn), 0);
	loop_until(loop, is_known, &(struct wanted){fs, last});
	assert_int_equal(slices.most, 1);
	for (int i = 0; i < SLICES_DIRS; i++) {
		snprintf(path, sizeof(path), "b/%d", i);
		tree_mkdir(tree.fd, path);
	}
	last = tree_mkdir(tree.fd, "c");
	slices.is_removing = true;
	loop_until(loop, is_known, &(struct wanted){fs, last});
	assert_int_equal(slices.most, 1);
	tree_mkdir(tree.fd, "d/e");
	cgroupfs_catch_up(fs); /* and end in the middle */
	cgroupfs_free(fs);
	loop_free(loop);
	close(fd);
	tree_deinit(&tree);
}

static void test_learn(void **state)
{
	struct cgroupfs *fs;
	struct tree tree;
	uint64_t id;

	(void)state;
	tree_init(&tree);
	fs = open_tree(tree.path, NULL, LONG, NULL);
	id = tree_mkdir(tree.fd, "a/b/c");
	assert_int_equal(cgroupfs_learn(fs, HIERARCHY_V2, strview_of("/../a/b/c")), 0);
	assert_int_equal(cgroupfs_learn(fs, HIERARCHY_V2, strview_of("/nothing/there")), 0);
	assert_int_equal(cgroupfs_learn(fs, HIERARCHY_V1, strview_of("/a/b/c")), 0);
	assert_null(cgroupfs_find(fs, HIERARCHY_V2, id));
	assert_int_equal(cgroupfs_learn(fs, HIERARCHY_V2, strview_of("//a/b/c/")), id);
	assert_path(cgroupfs_find(fs, HIERARCHY_V2, id), "/a/b/c");
	/* no more than once a second */
	assert_false(cgroupfs_walk_for_miss(fs));
	cgroupfs_free(fs);
	tree_deinit(&tree);
}

static int without_memory(void *ctx)
{
	struct cgroupfs_opts opts = {
		.path = ctx, .proc = &proc, .grace_ns = LONG, .events = NULL, .ctx = NULL};
	struct cgroupfs *fs;
	int r = cgroupfs_new(&opts, &fs);

	if (r)
		return r;
	r = cgroupfs_walk(fs, CGROUPFS_WALK_START);
	cgroupfs_free(fs);
	return r;
}

static void test_without_memory(void **state)
{
	struct tree tree;

	(void)state;
	tree_init(&tree);
	tree_mkdir(tree.fd, "docker/" ID1);
	tree_mkdir(tree.fd, "a/b/c");
	assert_true(allocfail_survive(without_memory, tree.path) > 5);
	tree_deinit(&tree);
}

/* ---- this node's trees ---- */

/* A directory of the test's own in each of the node's trees, with the kernel's processes files. */
struct node {
	struct hierarchy_set set;
	char top[48];
};

static void node_init(struct node *node)
{
	assert_int_equal(hierarchy_find(NULL, &proc, &node->set), 0);
	snprintf(node->top, sizeof(node->top), "podprof-test-%d", (int)getpid());
}

static void node_deinit(struct node *node)
{
	hierarchy_deinit(&node->set);
}

static void node_path(const struct node *node, const char *path, char ret[256])
{
	snprintf(ret, 256, "%s/%s", node->top, path);
}

static uint64_t node_mkdir(const struct node *node, enum hierarchy h, const char *path)
{
	char below[256];

	node_path(node, path, below);
	return tree_mkdir(node->set.roots[h].fd, below);
}

static void node_rmdir(const struct node *node, enum hierarchy h, const char *path)
{
	char below[256];

	node_path(node, path, below);
	tree_rmdir(node->set.roots[h].fd, below);
}

static void test_node_walk(void **state)
{
	static const char pod[] = "kubepods/besteffort/pod" POD "/" ID1;
	struct cgroupdir *dir;
	struct cgroupfs *fs;
	struct node node;

	(void)state;
	node_init(&node);
	fs = open_tree(NULL, NULL, LONG, NULL);
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		char path[256];
		uint64_t id;

		assert_int_equal(cgroupfs_has(fs, h), node.set.roots[h].fd >= 0);
		if (!cgroupfs_has(fs, h))
			continue;
		row_begin(h == HIERARCHY_V2 ? "unified" : controller_name(node.set.controller));
		id = node_mkdir(&node, h, pod);
		assert_null(cgroupfs_find(fs, h, id));
		assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_TIMER), 0);
		dir = cgroupfs_find(fs, h, id);
		path[0] = '/';
		snprintf(path, sizeof(path), "/%s/%s", node.top, pod);
		assert_path(dir, path);
		assert_int_equal(dir->kind, CGROUP_KIND_CONTAINER);
		node_rmdir(&node, h, pod);
		assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_TIMER), 0);
		assert_true(dir->gone_ns != 0);
	}
	cgroupfs_free(fs);
	node_deinit(&node);
}

static bool added_wanted(void *ctx)
{
	const struct log *log = ctx;

	return log->added_wanted;
}

static bool all_removed(void *ctx)
{
	const struct log *log = ctx;

	return log->n_removed >= 5;
}

/* Directories are seen to come and go without a walk, five levels at once. */
static void test_node_events(void **state)
{
	static const char pod[] = "kubepods/besteffort/pod" POD "/" ID1;
	struct cgroupfs *fs;
	struct loop *loop;
	struct node node;

	(void)state;
	node_init(&node);
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		struct log log = {0};

		if (node.set.roots[h].fd < 0)
			continue;
		row_begin(h == HIERARCHY_V2 ? "unified" : controller_name(node.set.controller));
		assert_int_equal(loop_new(&loop), 0);
		fs = open_tree(NULL, loop, LONG, &log);
		assert_int_equal(metric(fs, "podprof_cgroup_watches", "missing"), 0);
		log.n_removed = 0;
		log.wanted_id = node_mkdir(&node, h, pod);
		loop_until(loop, added_wanted, &log);
		node_rmdir(&node, h, pod);
		loop_until(loop, all_removed, &log);
		assert_int_equal(metric(fs, "podprof_cgroup_walks", "timer"), 0);
		assert_int_equal(metric(fs, "podprof_cgroup_walks", "start"), 1);
		assert_true(metric(fs, "podprof_cgroup_inotify_events", "") > 0);
		cgroupfs_free(fs);
		loop_free(loop);
	}
	node_deinit(&node);
}

/* No watches available: the walks find the directory, and the lack of watches is reported. */
static void test_without_watches(void **state)
{
	struct root real = proc;
	struct log log = {0};
	struct cgroupfs *fs;
	struct tree tree, false_proc;
	struct loop *loop;

	(void)state;
	tree_init(&tree);
	tree_init(&false_proc);
	tree_mkdir(false_proc.fd, "sys/fs/inotify");
	tree_write(false_proc.fd, "sys/fs/inotify/max_user_watches",
		   "4\n"); /* a quarter: one watch */
	proc.fd = false_proc.fd;
	assert_int_equal(loop_new(&loop), 0);
	tree_mkdir(tree.fd, "a/b");
	fs = open_tree(tree.path, loop, LONG, &log);
	proc = real;
	assert_int_equal(metric(fs, "podprof_cgroup_watches", "held"), 1);
	assert_int_equal(metric(fs, "podprof_cgroup_watches", "missing"), 2);
	assert_int_equal(metric(fs, "podprof_cgroup_refused", "watch"), 2);
	log.wanted_id = tree_mkdir(tree.fd, "a/b/" ID1);
	loop_until(loop, added_wanted, &log);
	assert_true(metric(fs, "podprof_cgroup_walks", "timer") >= 1);
	cgroupfs_free(fs);
	loop_free(loop);
	tree_deinit(&tree);
	tree_deinit(&false_proc);
}

struct procs {
	pid_t wanted;
	size_t n;
	bool found;
};

static int on_pid(void *ctx, pid_t pid)
{
	struct procs *procs = ctx;

	procs->n++;
	procs->found |= pid == procs->wanted;
	return 0;
}

static int on_pid_stop(void *ctx, pid_t pid)
{
	return 77;
}

static void test_node_procs(void **state)
{
	char path[300], pid[16];
	struct cgroupfs *fs;
	struct node node;

	(void)state;
	node_init(&node);
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		struct procs procs = {0};
		struct cgroupdir *dir;
		uint64_t id;

		if (node.set.roots[h].fd < 0)
			continue;
		id = node_mkdir(&node, h, ID1);
		fs = open_tree(NULL, NULL, LONG, NULL);
		dir = cgroupfs_find(fs, h, id);
		assert_int_equal(cgroupfs_procs(fs, dir, on_pid, &procs), 0);
		assert_int_equal(procs.n, 0);

		procs.wanted = fork();
		if (procs.wanted == 0) {
			pause();
			_exit(0);
		}
		snprintf(path, sizeof(path), "%s/" ID1 "/cgroup.procs", node.top);
		snprintf(pid, sizeof(pid), "%d", (int)procs.wanted);
		tree_write(node.set.roots[h].fd, path, pid);
		assert_int_equal(cgroupfs_procs(fs, dir, on_pid, &procs), 0);
		assert_int_equal(procs.n, 1);
		assert_true(procs.found);
		assert_int_equal(cgroupfs_procs(fs, dir, on_pid_stop, NULL), 77);

		kill(procs.wanted, SIGKILL);
		assert_int_equal(waitpid(procs.wanted, NULL, 0), procs.wanted);
		node_rmdir(&node, h, ID1);
		assert_int_equal(cgroupfs_procs(fs, dir, on_pid, &procs), ROOT_GONE);
		cgroupfs_free(fs);
	}
	node_deinit(&node);
}

static int setup(void **state)
{
	return root_open("/proc", &proc);
}

static int teardown(void **state)
{
	root_deinit(&proc);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),		cmocka_unit_test(test_two_trees),
		cmocka_unit_test(test_come_and_go),	cmocka_unit_test(test_last_child),
		cmocka_unit_test(test_rename),		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_long_path),	cmocka_unit_test(test_below_one_container),
		cmocka_unit_test(test_flood),		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_catch_up),	cmocka_unit_test(test_slices),
		cmocka_unit_test(test_learn),		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_node_walk),	cmocka_unit_test(test_node_events),
		cmocka_unit_test(test_without_watches), cmocka_unit_test(test_node_procs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
