// SPDX-License-Identifier: Apache-2.0
/*
 * This node's cgroup file systems, and the kernel's obstacles: no watches, no instances, cgroup
 * namespaces, odd names, directories that vanish during the read.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/root.h"
#include "discovery/cgroupfs.h"
#include "discovery/discovery.h"
#include "support/cgroups.h"
#include "support/metrics.h"
#include "support/tree.h"
#include "support/until.h"

#define POD  "2c48913c-b29f-11e7-9350-020968147796"
#define LONG UINT64_C(3600000000000)

static struct root proc = ROOT_INIT;

static struct cgroupfs *follow(const char *path, struct loop *loop)
{
	struct cgroupfs_opts opts = {.path = path, .proc = &proc, .loop = loop, .grace_ns = LONG};
	struct cgroupfs *fs;

	assert_int_equal(cgroupfs_new(&opts, &fs), 0);
	assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_START), 0);
	return fs;
}

static uint64_t metric(struct cgroupfs *fs, const char *family, const char *label)
{
	return metrics_get(cgroupfs_collect, fs, family, label);
}

/* ---------------------------------------------------------------- the collected paths */

static void assert_column(struct strview *row, const char *value)
{
	_cleanup_(freep) char *s = NULL;
	struct strview column;

	assert_true(strview_until(row, '\t', &column));
	s = strview_dup(column);
	assert_non_null(s);
	assert_string_equal(value && *value ? value : "-", s);
}

/* The first column, if it is a single path without "..". "\\" stands for a backslash. */
static char *bare_path(struct strview *row)
{
	struct strview path;
	char *s, *to;

	if (!strview_until(row, '\t', &path) || !strview_starts(&path, "/") ||
	    strview_len(&path) < 2)
		return NULL;
	s = strview_dup(path);
	assert_non_null(s);
	if (strstr(s, "\\n") || strstr(s, "/..") || strstr(s, " (deleted)")) {
		free(s);
		return NULL;
	}
	to = s;
	for (const char *from = s; *from; *to++ = *from++)
		if (from[0] == '\\' && from[1] == '\\')
			from++;
	*to = '\0';
	return s;
}

/* Each path as a cgroup below @top, the root of the tree for the reader; the walk's result equals
 * the parse of the path alone. */
static size_t check_rows(enum hierarchy h, int top, const char *path)
{
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(1u << 20);
	_cleanup_(root_deinit) struct root data = ROOT_INIT;
	struct cgroupfs *fs = NULL;
	struct strview rows, row;
	size_t n = 0;

	assert_int_equal(root_open("test/data/cgroup", &data), 0);
	assert_int_equal(root_read(&data, "vectors.tsv", &file), 0);
	for (int pass = 0; pass < 2; pass++) {
		if (pass)
			fs = follow(path, NULL);
		rows = strview_of_bytes(file.data, file.len);
		while (strview_until(&rows, '\n', &row)) {
			_cleanup_(freep) char *s = bare_path(&row);
			struct cgroupdir_path is;
			struct cgroupdir *dir;
			struct cgroup_id id;
			uint64_t inode;

			if (!s)
				continue;
			inode = tree_mkdir(top, s + 1);
			if (!pass)
				continue;
			row_begin(s);
			dir = cgroupfs_find(fs, h, inode);
			assert_non_null(dir);
			cgroupdir_path(dir, &is);
			cgroup_parse_path(strview_of(is.s), &id);
			assert_int_equal(dir->kind, id.kind);
			assert_column(&row, cgroup_runtime_name(id.runtime));
			assert_column(&row, id.container_id);
			assert_column(&row, id.pod_uid);
			assert_column(&row, cgroup_qos_name(id.qos));
			assert_column(&row, cgroup_kind_name(id.kind));
			n++;
		}
	}
	cgroupfs_free(fs);
	return n;
}

static void test_vectors(void **state)
{
	struct cgroups cgroups;
	struct cgroup any;
	char path[96];

	(void)state;
	cgroups_open(&cgroups, &proc);
	cgroups_make(&cgroups, &any, "any");
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		const int fd = cgroups.trees.roots[h].fd;
		int top;

		if (fd < 0)
			continue;
		top = openat(fd, cgroups.top, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
		assert_true(top >= 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", fd, cgroups.top);
		assert_in_range(check_rows(h, top, path), 60, 163);
		close(top);
	}
	cgroups_close(&cgroups);
}

/* ---------------------------------------------------------------- names */

/* The kernel accepts bytes that are not UTF-8, but no newline, to keep its own lists readable.
 * Neither appears in a label. */
static void test_names(void **state)
{
	struct discovery_opts opts = {
		.proc = &proc, .node_name = "", .grace_ns = LONG, .host_processes = true};
	static const char bad[] = "x\xff\xfe\x01.service";
	struct pid_id nobody = {.pid = INT32_MAX, .start_ticks = 1};
	struct cgroups cgroups;
	struct cgroup odd, line;
	const struct entity *entity;
	struct discovery *d;
	const char *unit;

	(void)state;
	cgroups_open(&cgroups, &proc);
	cgroups_make(&cgroups, &odd, "%s", bad);
	assert_false(cgroups_try_make(&cgroups, &line, "a\nb"));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(discovery_new(&opts, &d), 0);
	entity = discovery_entity(d, odd.id[HIERARCHY_V2], odd.id[HIERARCHY_V1], &nobody, "comm");
	assert_non_null(entity);
	assert_int_equal(entity->kind, ENTITY_UNIT);
	unit = labels_get(&entity->labels, "unit");
	assert_non_null(unit);
	for (const char *p = unit; *p; p++)
		assert_false(*p == '\xff' || *p == '\xfe');
	discovery_free(d);
	cgroups_close(&cgroups);
}

/* ---------------------------------------------------------------- without watches */

/* A limit of an unprivileged user, in a user namespace of the test; ends with the namespace. */
static void limit(const char *what, const char *value)
{
	const int self = open("/proc/self", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	char path[64];

	assert_int_equal(unshare(CLONE_NEWUSER), 0);
	tree_write(self, "uid_map", "0 0 1");
	close(self);
	snprintf(path, sizeof(path), "sys/user/%s", what);
	tree_write(proc.fd, path, value);
}

static bool is_there(void *ctx)
{
	struct cgroupfs *fs = ctx;

	return metric(fs, "podprof_cgroup_directories", "v2") == 1 + 8 + 8;
}

/* Everything is found all the same, by walks. */
static void walks_find(uint64_t held)
{
	struct cgroupfs *fs;
	struct loop *loop;
	struct tree tree;
	char name[16];

	tree_init(&tree);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "%d", i);
		tree_mkdir(tree.fd, name);
	}
	assert_int_equal(loop_new(&loop), 0);
	fs = follow(tree.path, loop);
	assert_int_equal(metric(fs, "podprof_cgroup_watches", "held"), held);
	assert_true(metric(fs, "podprof_cgroup_refused", "watch") > 0);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "%d/new", i);
		tree_mkdir(tree.fd, name);
	}
	loop_until(loop, is_there, fs);
	assert_true(metric(fs, "podprof_cgroup_walks", "timer") > 0);
	cgroupfs_free(fs);
	loop_free(loop);
	tree_deinit(&tree);
}

/* In a child: true if @run reaches its end. A failed assertion ends the child earlier. */
static void in_child(void (*run)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run();
		_exit(77);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 77);
}

static void with_few_watches(void)
{
	limit("max_inotify_watches", "3");
	walks_find(3);
}

static void without_instances(void)
{
	limit("max_inotify_instances", "0");
	walks_find(0);
}

static void test_without_watches(void **state)
{
	(void)state;
	in_child(with_few_watches);
	in_child(without_instances);
}

/* ---------------------------------------------------------------- a namespace of our own */

/* The entity of @cgroup by a process inside, asked repeatedly for a second. */
static const struct entity *ask_for_long(struct discovery *d, const struct cgroup *cgroup,
					 const struct pid_id *pid)
{
	const struct entity *entity = NULL;

	for (int i = 0; i < 100; i++) {
		entity = discovery_entity(d, cgroup->id[HIERARCHY_V2], cgroup->id[HIERARCHY_V1],
					  pid, "x");
		assert_non_null(entity);
		if (entity->kind != ENTITY_UNKNOWN)
			return entity;
		usleep(50000);
	}
	return entity;
}

static void start_in(const struct cgroups *cgroups, const struct cgroup *cgroup, struct pid_id *ret)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	cgroups_enter(cgroups, cgroup, child);
	assert_int_equal(pid_read(&proc, child, ret), 0);
}

/* Like an agent in a container on version 2: the trees are the node's, the paths in /proc are the
 * container's. */
static void in_namespace(void)
{
	struct discovery_opts opts = {.proc = &proc, .node_name = "", .grace_ns = LONG};
	struct cgroup agents, known, later;
	struct cgroups cgroups;
	struct discovery *d;
	char id[3][65];
	struct pid_id pid;

	for (unsigned int i = 0; i < 3; i++)
		cgroups_container_id(i, id[i]);
	cgroups_open(&cgroups, &proc);
	cgroups_make(&cgroups, &agents, "kubepods/burstable/pod" POD "/%s", id[0]);
	cgroups_make(&cgroups, &known, "kubepods/besteffort/pod" POD "/%s", id[1]);
	cgroups_enter(&cgroups, &agents, getpid());
	assert_int_equal(unshare(CLONE_NEWCGROUP), 0);
	assert_int_equal(discovery_new(&opts, &d), 0);
	start_in(&cgroups, &known, &pid);
	assert_string_equal(ask_for_long(d, &known, &pid)->id.container_id, id[1]);
	assert_string_equal(ask_for_long(d, &agents, &pid)->id.pod_uid, POD);
	/* a cgroup not in the table yet; the process has moved on, or is still there */
	cgroups_make(&cgroups, &later, "kubepods/besteffort/pod" POD "/%s", id[2]);
	assert_string_equal(ask_for_long(d, &later, &pid)->id.container_id, id[2]);
	kill((pid_t)pid.pid, SIGKILL);
	waitpid((pid_t)pid.pid, NULL, 0);
	discovery_free(d);
	/* outside, to allow the removal */
	snprintf(agents.path, sizeof(agents.path), ".");
	cgroups_enter(&cgroups, &agents, getpid());
	cgroups_close(&cgroups);
}

static void test_own_namespace(void **state)
{
	(void)state;
	in_child(in_namespace);
}

/* ---------------------------------------------------------------- removal during the read */

static void make_and_remove(int fd)
{
	unsigned int seed = 1;
	char path[64];

	for (;;) {
		seed = seed * 1103515245 + 12345;
		snprintf(path, sizeof(path), "%u/%u/%u", seed >> 30, seed >> 28 & 3,
			 seed >> 26 & 3);
		path[1 + 2 * (seed >> 24 & 1) + 2 * (seed >> 23 & 1)] = '\0';
		if (seed >> 22 & 1)
			(void)mkdirat(fd, path, 0755);
		else
			(void)unlinkat(fd, path, AT_REMOVEDIR);
	}
}

struct counting {
	int fd;
	size_t n;
};

/* All directories of a tree, without the root. */
static int count_child(void *ctx, const struct hierarchy_child *child)
{
	struct counting *up = ctx, here = {.n = 0};

	here.fd = openat(up->fd, child->name, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	assert_true(here.fd >= 0);
	assert_int_equal(hierarchy_each(here.fd, count_child, &here), 0);
	close(here.fd);
	up->n += 1 + here.n;
	return 0;
}

static bool again(void *ctx)
{
	unsigned int *n = ctx;

	return (*n)++ >= 200;
}

/* Somebody makes and removes directories under our hands; when he has ended, the table is right. */
static void test_vanishing(void **state)
{
	struct counting left = {.n = 0};
	unsigned int n = 0;
	struct cgroupfs *fs;
	struct loop *loop;
	struct tree tree;
	pid_t child;

	(void)state;
	tree_init(&tree);
	assert_int_equal(loop_new(&loop), 0);
	fs = follow(tree.path, loop);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		make_and_remove(tree.fd);
	}
	for (int i = 0; i < 500; i++) {
		assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_MISS), 0);
		(void)cgroupfs_learn(fs, HIERARCHY_V2, strview_of("/1/2/3"));
		cgroupfs_catch_up(fs);
	}
	loop_until(loop, again, &n);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(cgroupfs_walk(fs, CGROUPFS_WALK_MISS), 0);
	left.fd = tree.fd;
	assert_int_equal(hierarchy_each(tree.fd, count_child, &left), 0);
	assert_int_equal(metric(fs, "podprof_cgroup_directories", "v2"), 1 + left.n);
	cgroupfs_free(fs);
	loop_free(loop);
	tree_deinit(&tree);
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
		cmocka_unit_test(test_vectors),		cmocka_unit_test(test_names),
		cmocka_unit_test(test_without_watches), cmocka_unit_test(test_own_namespace),
		cmocka_unit_test(test_vanishing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
