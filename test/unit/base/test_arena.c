// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/arena.h"

/* malloc() gives these bytes to the next arena. */
static void leave_bytes(void)
{
	_cleanup_(arena_deinit) struct arena a;
	char *piece;

	arena_init(&a, 1u << 20);
	for (size_t i = 0; i < 500; i++) {
		assert_int_equal(arena_bytes(&a, i, &piece), 0);
		assert_int_equal((uintptr_t)piece % 8, 0);
		memset(piece, 0xff, i);
	}
	assert_in_range(a.bytes, 500 * 499 / 2, 1u << 18);
}

static void test_pieces(void **state)
{
	_cleanup_(arena_deinit) struct arena a;
	char *pieces[500];

	(void)state;
	leave_bytes();
	arena_init(&a, 1u << 20);
	for (size_t i = 0; i < array_size(pieces); i++) {
		assert_int_equal(arena_alloc(&a, i, &pieces[i]), 0);
		assert_int_equal((uintptr_t)pieces[i] % 8, 0);
		for (size_t j = 0; j < i; j++)
			assert_int_equal(pieces[i][j], 0);
		memset(pieces[i], (int)i, i);
	}
	for (size_t i = 0; i < array_size(pieces); i++)
		for (size_t j = 0; j < i; j++)
			assert_int_equal(pieces[i][j], (char)i);
	assert_in_range(a.bytes, 500 * 499 / 2, 1u << 18);
}

static void test_ceiling(void **state)
{
	_cleanup_(arena_deinit) struct arena a;
	size_t n = 0;
	char *piece = NULL;

	(void)state;
	arena_init(&a, 100000);
	assert_int_equal(arena_alloc(&a, 100000, &piece), ARENA_FULL);
	assert_int_equal(arena_alloc(&a, SIZE_MAX, &piece), ARENA_FULL);
	assert_int_equal(arena_bytes(&a, 100000, &piece), ARENA_FULL);
	assert_int_equal(arena_bytes(&a, SIZE_MAX, &piece), ARENA_FULL);
	assert_int_equal(arena_array(&a, SIZE_MAX / 2, 4, &piece), ARENA_FULL);
	assert_null(piece);
	assert_int_equal(arena_charge(&a, 100001), ARENA_FULL);
	assert_int_equal(arena_charge(&a, 20000), 0);
	assert_int_equal(arena_charge(&a, 80001), ARENA_FULL);
	assert_int_equal(arena_bytes(&a, 80000, &piece), ARENA_FULL);
	arena_deinit(&a);
	while (arena_alloc(&a, 1000, &piece) == 0)
		n++;
	assert_in_range(n, 90, 100);
	assert_in_range(a.bytes, 90000, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
