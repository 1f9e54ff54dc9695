// SPDX-License-Identifier: Apache-2.0
/* The programs with a language runtime, over maps that are arrays here. */
#include "support/test.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "shared/frame.h"
#include "shared/stack_dump.h"
#include "unwindtable/runtime_exes.h"

#define MAP   7
#define OWNER 100

static struct kernel_map {
	uint64_t inodes[2 * RUNTIME_EXES_MAX];
	size_t n;
	bool full;
} map;

static size_t find(uint64_t inode)
{
	size_t i = 0;

	while (i < map.n && map.inodes[i] != inode)
		i++;
	return i;
}

/* Take the place of libbpf's. */
int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const struct exe_key *exe = key;

	(void)value;
	(void)flags;
	assert_int_equal(fd, MAP);
	if (map.full)
		return -E2BIG;
	assert_int_equal(find(exe->inode), map.n);
	map.inodes[map.n++] = exe->inode;
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	const struct exe_key *exe = key;
	const size_t i = find(exe->inode);

	assert_int_equal(fd, MAP);
	assert_true(i < map.n);
	map.inodes[i] = map.inodes[--map.n];
	return 0;
}

static struct runtime_exes *new_exes(void)
{
	static const int maps[] = {-1, MAP, -1, -1};
	struct runtime_exes *exes;

	map = (struct kernel_map){0};
	assert_int_equal(runtime_exes_new(maps, array_size(maps), &exes), 0);
	return exes;
}

static void learn(struct runtime_exes *exes, uint64_t owner, uint64_t inode, uint32_t value)
{
	const struct exe_key key = {.inode = inode};

	runtime_exes_learn(exes, owner, &key, FRAME_RUNTIME_PYTHON, &value, sizeof(value));
	assert_int_equal(runtime_exes_n(exes), map.n);
}

static void test_learnt_once(void **state)
{
	struct runtime_exes *exes = new_exes();
	const struct exe_key key = {.inode = 5}, first = {.inode = 1};
	const uint32_t value = 1;
	uint32_t runtime;

	(void)state;
	learn(exes, OWNER, 1, 1);
	learn(exes, OWNER, 1, 1);
	learn(exes, OWNER + 1, 1, 1);
	assert_int_equal(map.n, 1);
	row_begin("another value");
	learn(exes, OWNER, 1, 2);
	assert_int_equal(map.n, 1);
	assert_int_equal(*(const uint32_t *)runtime_exes_find(exes, &first, &runtime), 2);
	assert_int_equal(runtime, FRAME_RUNTIME_PYTHON);
	assert_null(runtime_exes_find(exes, &key, &runtime));
	row_begin("no key, no map");
	learn(exes, OWNER, 0, 1);
	runtime_exes_learn(exes, OWNER, &key, FRAME_RUNTIME_V8, &value, sizeof(value));
	runtime_exes_learn(exes, OWNER, &key, 1000, &value, sizeof(value));
	assert_int_equal(map.n, 1);
	row_begin("the kernel has no room: tried again");
	map.full = true;
	learn(exes, OWNER, 2, 1);
	assert_int_equal(map.n, 1);
	map.full = false;
	learn(exes, OWNER, 2, 1);
	assert_int_equal(map.n, 2);
	runtime_exes_free(exes);
}

/* A greedy owner loses its own entries, oldest first, and gets a fifth. */
static void test_shares(void **state)
{
	struct runtime_exes *exes = new_exes();
	size_t greedy;

	(void)state;
	learn(exes, OWNER, 1, 1);
	for (uint64_t i = 0; i < 3 * RUNTIME_EXES_MAX; i++)
		learn(exes, OWNER + 1, 1000 + i, 1);
	greedy = map.n - 1;
	assert_in_range(greedy, RUNTIME_EXES_MAX / 5 - 1, RUNTIME_EXES_MAX / 5 + 1);
	assert_true(find(1) < map.n);
	assert_true(find(1000 + 3 * RUNTIME_EXES_MAX - 1) < map.n);
	assert_true(find(1000 + 3 * RUNTIME_EXES_MAX - greedy) < map.n);
	assert_int_equal(find(1000 + 3 * RUNTIME_EXES_MAX - greedy - 1), map.n);
	learn(exes, OWNER, 2, 1);
	assert_int_equal(map.n, greedy + 2);
	runtime_exes_free(exes);
}

/* Owners that are gone keep entries: a new owner takes the oldest one's place. */
static void test_full(void **state)
{
	struct runtime_exes *exes = new_exes();

	(void)state;
	for (uint64_t i = 0; i < RUNTIME_EXES_MAX; i++)
		learn(exes, OWNER + i, 1 + i, 1);
	assert_int_equal(map.n, RUNTIME_EXES_MAX);
	learn(exes, OWNER + RUNTIME_EXES_MAX, 1 + RUNTIME_EXES_MAX, 1);
	assert_int_equal(map.n, RUNTIME_EXES_MAX);
	assert_int_equal(find(1), map.n);
	assert_true(find(2) < map.n && find(1 + RUNTIME_EXES_MAX) < map.n);
	runtime_exes_free(exes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learnt_once),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
