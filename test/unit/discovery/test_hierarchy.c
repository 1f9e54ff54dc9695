// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>
#include <sys/stat.h>

#include "discovery/hierarchy.h"
#include "support/tree.h"

#define ID "73051af271105c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd"

struct layout_row {
	const char *name;
	const char *dirs[5];
	bool v2; /* there is a unified tree */
	enum controller controller;
	const char *inside; /* a directory at the top of the chosen tree only */
};

/* Copies of /sys/fs/cgroup, told apart by names. */
static const struct layout_row layout_rows[] = {
	{"version 2", {"kubepods", "system.slice"}, true, CONTROLLER_NONE, NULL},
	{"nothing in it", {NULL}, true, CONTROLLER_NONE, NULL},
	{"version 1", {"memory/m", "pids/p", "devices/d"}, false, CONTROLLER_MEMORY, "m"},
	{"hybrid", {"unified/u", "cpu,cpuacct/c", "pids/p"}, true, CONTROLLER_CPU, "c"},
	{"a container decides",
	 {"memory/m", "pids/docker/" ID, "cpuset/s"},
	 false,
	 CONTROLLER_PIDS,
	 "docker"},
	{"of two with containers the preferred one",
	 {"pids/docker/" ID, "cpu/kubepods/" ID, "memory/m"},
	 false,
	 CONTROLLER_CPU,
	 "kubepods"},
	{"named hierarchies are no controllers",
	 {"systemd/s", "freezer/f"},
	 false,
	 CONTROLLER_FREEZER,
	 "f"},
};

static void test_layouts(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(layout_rows); i++) {
		const struct layout_row *row = &layout_rows[i];
		struct hierarchy_set set;
		struct tree tree;
		struct stat st;

		row_begin(row->name);
		tree_init(&tree);
		for (size_t j = 0; j < array_size(row->dirs) && row->dirs[j]; j++)
			tree_mkdir(tree.fd, row->dirs[j]);
		assert_int_equal(hierarchy_find(tree.path, NULL, &set), 0);
		assert_int_equal(set.roots[HIERARCHY_V2].fd >= 0, row->v2);
		assert_int_equal(set.controller, row->controller);
		assert_int_equal(set.roots[HIERARCHY_V1].fd >= 0, row->controller != 0);
		if (row->inside)
			assert_int_equal(fstatat(set.roots[HIERARCHY_V1].fd, row->inside, &st, 0),
					 0);
		hierarchy_deinit(&set);
		tree_deinit(&tree);
	}
}

static void test_nothing(void **state)
{
	struct root proc = ROOT_INIT;
	struct hierarchy_set set;
	struct tree tree;

	(void)state;
	tree_init(&tree);
	tree_write(tree.fd, "file", "");
	assert_int_equal(hierarchy_find("/nonexistent", NULL, &set), HIERARCHY_NO_SUCH_DIR);
	/* without a path, the directory must have cgroup file systems; the synthetic first process
	 * has none, so the second try finds the real file systems */
	tree_mkdir(tree.fd, "1/root/sys/fs/cgroup/memory/x");
	proc.fd = tree.fd;
	assert_int_equal(hierarchy_find(NULL, &proc, &set), 0);
	if (set.roots[HIERARCHY_V1].fd >= 0)
		assert_int_not_equal(faccessat(set.roots[HIERARCHY_V1].fd, "x", F_OK, 0), 0);
	hierarchy_deinit(&set);
	tree_deinit(&tree);
}

/* This node: every found tree has the files of its kind. */
static void test_this_node(void **state)
{
	struct hierarchy_set set;
	struct root proc;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(hierarchy_find(NULL, &proc, &set), 0);
	assert_true(set.roots[HIERARCHY_V2].fd >= 0 || set.roots[HIERARCHY_V1].fd >= 0);
	if (set.roots[HIERARCHY_V2].fd >= 0)
		assert_int_equal(
			faccessat(set.roots[HIERARCHY_V2].fd, "cgroup.controllers", F_OK, 0), 0);
	if (set.roots[HIERARCHY_V1].fd >= 0) {
		assert_int_not_equal(set.controller, CONTROLLER_NONE);
		assert_int_equal(
			faccessat(set.roots[HIERARCHY_V1].fd, "cgroup.sane_behavior", F_OK, 0), 0);
	}
	hierarchy_deinit(&set);
	root_deinit(&proc);
}

/* A user may name a single tree instead of the common directory. */
static void test_one_tree(void **state)
{
	char path[64];
	struct hierarchy_set node, one;
	struct root proc;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_int_equal(hierarchy_find(NULL, &proc, &node), 0);
	for (enum hierarchy h = 0; h < HIERARCHY_MAX; h++) {
		if (node.roots[h].fd < 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", node.roots[h].fd);
		assert_int_equal(hierarchy_find(path, &proc, &one), 0);
		for (enum hierarchy other = 0; other < HIERARCHY_MAX; other++)
			assert_int_equal(one.roots[other].fd >= 0, other == h);
		hierarchy_deinit(&one);
	}
	hierarchy_deinit(&node);
	root_deinit(&proc);
}

static int count(void *ctx, const struct hierarchy_child *child)
{
	size_t *n = ctx;

	assert_int_not_equal(child->id, 0);
	/* some file systems do not count subdirectories; then nothing is a leaf */
	assert_false(child->leaf && strcmp(child->name, "leaf") != 0);
	(*n)++;
	return 0;
}

static int stop(void *ctx, const struct hierarchy_child *child)
{
	size_t *n = ctx;

	(*n)++;
	return 99;
}

static void test_children(void **state)
{
	struct hierarchy_child child;
	struct tree tree;
	size_t n = 0;

	(void)state;
	tree_init(&tree);
	tree_mkdir(tree.fd, "a/b");
	tree_mkdir(tree.fd, "leaf");
	tree_write(tree.fd, "file", "x");
	assert_int_equal(symlinkat("a", tree.fd, "link"), 0);
	assert_int_equal(hierarchy_each(tree.fd, count, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(hierarchy_each(tree.fd, stop, &n), 99);
	assert_int_equal(n, 3);
	assert_int_equal(hierarchy_stat(tree.fd, "a", &child), 0);
	assert_false(child.leaf);
	assert_int_equal(hierarchy_stat(tree.fd, "file", &child), ROOT_NOT_FILE);
	assert_int_equal(hierarchy_stat(tree.fd, "link", &child), ROOT_NOT_FILE);
	assert_int_equal(hierarchy_stat(tree.fd, "none", &child), ROOT_GONE);
	tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),	  cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_this_node), cmocka_unit_test(test_one_tree),
		cmocka_unit_test(test_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
