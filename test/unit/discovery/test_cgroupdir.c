// SPDX-License-Identifier: Apache-2.0
/* The table alone, filled by hand; test_cgroupfs.c tests real directories. */
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "discovery/cgroupdir.h"
#include "support/allocfail.h"

#define ID1  "73051af271105c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd"
#define LONG UINT64_C(3600000000000)
#define MAX  UINT64_C(32768) /* of the table */

static struct cgroupdir *see(struct cgroupdir_table *t, struct cgroupdir *parent, const char *name,
			     uint64_t id)
{
	struct hierarchy_child child = {.name = name, .id = id};
	struct cgroupdir *dir = NULL;

	assert_int_equal(cgroupdir_see(t, HIERARCHY_V1, parent, &child, &dir), 0);
	assert_non_null(dir);
	return dir;
}

static int outcome(struct cgroupdir_table *t, struct cgroupdir *parent, const char *name,
		   uint64_t id)
{
	struct hierarchy_child child = {.name = name, .id = id};
	struct cgroupdir *dir;

	return cgroupdir_see(t, HIERARCHY_V1, parent, &child, &dir);
}

static void assert_path(const struct cgroupdir *dir, const char *want)
{
	struct cgroupdir_path path;

	cgroupdir_path(dir, &path);
	assert_string_equal(path.s, want);
}

static void test_paths(void **state)
{
	struct cgroupdir_table t = {.grace_ns = LONG};
	struct cgroupdir *root, *docker, *container;

	(void)state;
	root = see(&t, NULL, "", 1);
	docker = see(&t, root, "docker", 2);
	container = see(&t, docker, ID1, 3);
	assert_ptr_equal(t.roots[HIERARCHY_V1], root);
	assert_null(t.roots[HIERARCHY_V2]);
	assert_path(root, "/");
	assert_path(docker, "/docker");
	assert_path(container, "/docker/" ID1);
	assert_int_equal(docker->kind, CGROUP_KIND_NONE);
	assert_int_equal(container->kind, CGROUP_KIND_CONTAINER);
	assert_ptr_equal(see(&t, docker, ID1, 3), container);
	cgroupdir_remove(&t, root);
	assert_path(root, "");
	assert_path(container, "");
	assert_null(t.roots[HIERARCHY_V1]);
	assert_ptr_equal(cgroupdir_find(&t, HIERARCHY_V1, 3), container);
	cgroupdir_expire(&t);
	assert_ptr_equal(cgroupdir_find(&t, HIERARCHY_V1, 3), container);
	t.grace_ns = 0;
	cgroupdir_expire(&t);
	assert_null(cgroupdir_next(&t, NULL));
	cgroupdir_deinit(&t);
}

/* A directory cannot be below itself, whatever the numbers of a mount. */
static void test_no_tree(void **state)
{
	struct cgroupdir_table t = {.grace_ns = LONG};
	struct cgroupdir *root, *a, *b;

	(void)state;
	root = see(&t, NULL, "", 1);
	a = see(&t, root, "a", 2);
	b = see(&t, a, "b", 3);
	assert_int_equal(outcome(&t, b, "c", 1), CGROUPDIR_NO_TREE);
	assert_int_equal(outcome(&t, b, "c", 2), CGROUPDIR_NO_TREE);
	assert_int_equal(outcome(&t, b, "c", 3), CGROUPDIR_NO_TREE);
	assert_path(b, "/a/b");
	cgroupdir_deinit(&t);
}

/* A parent has one directory of a name, even if an event is missing. */
static void test_names(void **state)
{
	struct cgroupdir_table t = {.grace_ns = LONG};
	struct cgroupdir *root, *a, *below, *b, *again;

	(void)state;
	root = see(&t, NULL, "", 1);
	a = see(&t, root, "a", 2);
	below = see(&t, a, "a", 3);
	b = see(&t, root, "b", 4);
	assert_ptr_equal(cgroupdir_child(&t, root, "a"), a);
	assert_ptr_equal(cgroupdir_child(&t, a, "a"), below);
	assert_ptr_equal(cgroupdir_child(&t, root, "b"), b);
	assert_null(cgroupdir_child(&t, b, "a"));
	assert_null(cgroupdir_child(&t, root, ""));
	again = see(&t, root, "a", 5);
	assert_ptr_equal(cgroupdir_child(&t, root, "a"), again);
	assert_true(a->gone_ns && below->gone_ns);
	b = see(&t, root, "c", 4); /* renamed */
	assert_ptr_equal(cgroupdir_child(&t, root, "c"), b);
	assert_null(cgroupdir_child(&t, root, "b"));
	cgroupdir_remove(&t, again);
	assert_null(cgroupdir_child(&t, root, "a"));
	cgroupdir_deinit(&t);
}

/* A cursor continues behind a directory that has left the table, and reaches a new one. */
static void test_cursor(void **state)
{
	struct cgroupdir_table t = {.grace_ns = 0};
	struct cgroupdir_cursor first, second;
	struct cgroupdir *root, *a, *b, *c;

	(void)state;
	root = see(&t, NULL, "", 1);
	a = see(&t, root, "a", 2);
	b = see(&t, root, "b", 3);
	cgroupdir_cursor_init(&t, &first);
	cgroupdir_cursor_init(&t, &second);
	assert_ptr_equal(cgroupdir_cursor_next(&first), root);
	assert_ptr_equal(cgroupdir_cursor_next(&second), root);
	assert_ptr_equal(cgroupdir_cursor_next(&second), a);
	cgroupdir_remove(&t, a); /* the next one of the first cursor */
	cgroupdir_expire(&t);
	c = see(&t, root, "c", 4);
	assert_ptr_equal(cgroupdir_cursor_next(&first), b);
	assert_ptr_equal(cgroupdir_cursor_next(&second), b);
	assert_ptr_equal(cgroupdir_cursor_next(&first), c);
	cgroupdir_cursor_deinit(&t, &first);
	cgroupdir_cursor_deinit(&t, &first);
	cgroupdir_remove(&t, c); /* the last one */
	cgroupdir_expire(&t);
	assert_null(cgroupdir_cursor_next(&second));
	assert_null(cgroupdir_cursor_next(&second));
	cgroupdir_cursor_deinit(&t, &second);
	assert_null(t.cursors);
	cgroupdir_cursor_deinit(&t, &second); /* there is no other cursor */
	cgroupdir_deinit(&t);
}

static void test_full(void **state)
{
	struct cgroupdir_table t = {.grace_ns = LONG};
	struct cgroupdir *root, *first = NULL;
	char name[16];

	(void)state;
	root = see(&t, NULL, "", 1);
	for (uint64_t i = 1; i < MAX; i++) {
		struct cgroupdir *dir;

		snprintf(name, sizeof(name), "%u", (unsigned int)i);
		dir = see(&t, root, name, i + 1);
		if (i == 1)
			first = dir;
	}
	assert_int_equal(outcome(&t, root, "more", MAX + 1), CGROUPDIR_TOO_MANY);
	/* known directories are still found */
	assert_ptr_equal(see(&t, root, "1", 2), first);
	/* a gone directory makes room and is dropped */
	cgroupdir_remove(&t, first);
	assert_non_null(cgroupdir_find(&t, HIERARCHY_V1, 2));
	assert_int_equal(outcome(&t, root, "more", MAX + 1), 0);
	assert_null(cgroupdir_find(&t, HIERARCHY_V1, 2));
	assert_int_equal(outcome(&t, root, "and more", MAX + 2), CGROUPDIR_TOO_MANY);
	cgroupdir_deinit(&t);
}

/* Directories made and removed in a circle evict each other, and no existing directory. */
static void test_churn(void **state)
{
	struct cgroupdir_table t = {.grace_ns = LONG};
	struct cgroupdir *root, *stays;
	size_t n = 0;

	(void)state;
	root = see(&t, NULL, "", 1);
	stays = see(&t, root, ID1, 2);
	for (uint64_t id = 3; id < 2 * MAX; id++)
		cgroupdir_remove(&t, see(&t, root, "x", id));
	assert_ptr_equal(cgroupdir_find(&t, HIERARCHY_V1, 2), stays);
	assert_null(cgroupdir_find(&t, HIERARCHY_V1, 3));
	assert_non_null(cgroupdir_find(&t, HIERARCHY_V1, 2 * MAX - 1));
	for (struct cgroupdir *dir = NULL; (dir = cgroupdir_next(&t, dir));)
		n++;
	assert_int_equal(n, MAX);
	cgroupdir_deinit(&t);
}

/* Containers have half of the table for directories of their own; removed ones evict none of the
 * other gone directories. */
static void test_inside(void **state)
{
	struct cgroupdir_table t = {.grace_ns = LONG};
	struct cgroupdir *root, *gone, *container = NULL;
	uint64_t id = 100;
	char name[80];

	(void)state;
	root = see(&t, NULL, "", 1);
	gone = see(&t, root, ID1, 2);
	cgroupdir_remove(&t, gone);
	for (int c = 0; c < 5; c++) {
		snprintf(name, sizeof(name), "%064d", c);
		container = see(&t, root, name, ++id);
		for (int i = 0; i < (c < 4 ? 4096 : 0); i++) {
			snprintf(name, sizeof(name), "%d", i);
			see(&t, container, name, ++id);
		}
		assert_int_equal(outcome(&t, container, "x", ++id),
				 CGROUPDIR_TOO_MANY_IN_CONTAINER);
	}
	see(&t, root, "y", ++id);
	cgroupdir_remove(&t, container->prev);
	for (uint64_t i = 0; i < 2 * MAX; i++)
		cgroupdir_remove(&t, see(&t, container, "x", ++id));
	assert_non_null(cgroupdir_find(&t, HIERARCHY_V1, 2));
	assert_non_null(cgroupdir_find(&t, HIERARCHY_V1, id));
	assert_null(cgroupdir_find(&t, HIERARCHY_V1, id - 2 * MAX + 1));
	cgroupdir_deinit(&t);
}

static int build(void *ctx)
{
	struct cgroupdir_table t = {.grace_ns = LONG};
	struct cgroupdir *root, *dir;
	int r;

	(void)ctx;
	r = cgroupdir_see(&t, HIERARCHY_V2, NULL, &(struct hierarchy_child){.name = "", .id = 1},
			  &root);
	for (uint64_t id = 2; id < 40 && !r; id++)
		r = cgroupdir_see(&t, HIERARCHY_V2, root,
				  &(struct hierarchy_child){.name = "x", .id = id}, &dir);
	cgroupdir_deinit(&t);
	return r;
}

static void test_without_memory(void **state)
{
	(void)state;
	assert_true(allocfail_survive(build, NULL) > 38);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),  cmocka_unit_test(test_no_tree),
		cmocka_unit_test(test_names),  cmocka_unit_test(test_cursor),
		cmocka_unit_test(test_full),   cmocka_unit_test(test_churn),
		cmocka_unit_test(test_inside), cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
