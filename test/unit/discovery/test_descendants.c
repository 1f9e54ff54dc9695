// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <sys/types.h>

#include "base/root.h"
#include "discovery/descendants.h"
#include "discovery/pid.h"
#include "support/tree.h"

/* A /proc of our own. */
struct world {
	struct tree tree;
	struct root proc;
	struct descendants *descendants;
	pid_t found[16];
	size_t n_found;
};

static struct world world;

static int setup(void **state)
{
	world = (struct world){0};
	*state = &world;
	tree_init(&world.tree);
	return root_open(world.tree.path, &world.proc) || descendants_new(&world.descendants);
}

static int teardown(void **state)
{
	(void)state;
	descendants_free(world.descendants);
	root_deinit(&world.proc);
	tree_deinit(&world.tree);
	return 0;
}

static void write_stat(const char *pid, const char *stat)
{
	char path[32];

	tree_mkdir(world.tree.fd, pid);
	snprintf(path, sizeof(path), "%s/stat", pid);
	tree_write(world.tree.fd, path, stat);
}

static void process(const char *pid, const char *name, const char *parent)
{
	char stat[256];

	snprintf(stat, sizeof(stat),
		 "%s (%s) S %s 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n", pid, name,
		 parent);
	write_stat(pid, stat);
}

static void note(void *ctx, pid_t pid)
{
	struct world *w = ctx;

	assert_true(w->n_found < array_size(w->found));
	w->found[w->n_found++] = pid;
}

static bool found(pid_t pid)
{
	for (size_t i = 0; i < world.n_found; i++)
		if (world.found[i] == pid)
			return true;
	return false;
}

static void test_descendants(void **state)
{
	(void)state;
	process("1", "init", "0");
	process("10", "a) S 99 (b", "20"); /* a child with a lower number, and a name to mislead */
	process("20", "server", "1");
	process("21", "worker", "20");
	process("30", "worker", "21");
	process("31", "other", "1");
	process("2", "kthreadd", "0");
	assert_true(descendants_add(world.descendants, 20));
	assert_false(descendants_add(world.descendants, 20));
	assert_int_equal(descendants_grow(world.descendants, &world.proc, note, &world), 3);
	assert_true(found(10) && found(21) && found(30));
	assert_int_equal(descendants_grow(world.descendants, &world.proc, note, &world), 0);
	process("22", "late", "30");
	assert_int_equal(descendants_grow(world.descendants, &world.proc, note, &world), 1);
	assert_true(found(22));
}

/* Text in a wrong format adds no process, and ends nothing. */
static void test_odd(void **state)
{
	static const char *const texts[] = {"",
					    "5",
					    "5 (x",
					    "5 (x)",
					    "5 (x) S",
					    "5 (x) S ",
					    "5 (x) S x",
					    "5 (x) S -20",
					    "5 (x) S 99999999999",
					    "5 (x)\nS\n20"};
	char pid[16];
	pid_t parent;

	(void)state;
	process("20", "server", "1");
	for (size_t i = 0; i < array_size(texts); i++) {
		row_begin(texts[i]);
		snprintf(pid, sizeof(pid), "%zu", 100 + i);
		write_stat(pid, texts[i]);
		assert_int_equal(pid_read_parent(&world.proc, (pid_t)(100 + i), &parent), PID_ODD);
	}
	tree_mkdir(world.tree.fd, "50");
	assert_int_equal(pid_read_parent(&world.proc, 50, &parent), PID_GONE);
	process("200", "child", "20");
	descendants_add(world.descendants, 20);
	assert_int_equal(descendants_grow(world.descendants, &world.proc, note, &world), 1);
	assert_true(found(200));
}

static void test_numbers(void **state)
{
	(void)state;
	assert_false(descendants_add(world.descendants, 0));
	assert_false(descendants_add(world.descendants, -1));
	assert_true(descendants_add(world.descendants, (1 << 22) - 1));
	assert_false(descendants_add(world.descendants, 1 << 22)); /* no such pid on any kernel */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_descendants, setup, teardown),
		cmocka_unit_test_setup_teardown(test_odd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
