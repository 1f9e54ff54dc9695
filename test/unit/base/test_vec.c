// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>

#include "base/vec.h"
#include "support/allocfail.h"

struct grow_row {
	const char *name;
	size_t need, max;
	int r;
	size_t cap;
};

static const struct grow_row grow_rows[] = {
	{"nothing", 0, 10, VEC_OK, 0},
	{"first", 1, 100, VEC_OK, 8},
	{"doubled", 9, 100, VEC_OK, 16},
	{"clamped to the ceiling", 65, 100, VEC_OK, 100},
	{"exactly the ceiling", 100, 100, VEC_OK, 100},
	{"one over", 101, 100, VEC_FULL, 0},
	{"no ceiling to speak of", SIZE_MAX / 2, SIZE_MAX, -ENOMEM, 0},
	{"number of bytes wraps around", SIZE_MAX, SIZE_MAX, -ENOMEM, 0},
};

static void test_grow(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(grow_rows); i++) {
		const struct grow_row *row = &grow_rows[i];
		_cleanup_(freep) uint64_t *items = NULL;
		size_t cap = 0;

		row_begin(row->name);
		/* ASan ends the program at such a size instead of refusing */
		if (row->r == -ENOMEM)
			allocfail_arm(1);
		assert_int_equal(vec_grow(&items, &cap, row->need, sizeof(*items), row->max),
				 row->r);
		(void)allocfail_disarm();
		assert_int_equal(cap, row->cap);
		for (size_t at = 0; at < cap; at++)
			items[at] = at;
	}
}

/* The first capacity is larger than a small ceiling; the ceiling still holds. */
static void test_small_ceiling(void **state)
{
	_cleanup_(freep) uint64_t *items = NULL;
	size_t cap = 0;

	(void)state;
	assert_int_equal(vec_grow(&items, &cap, 3, sizeof(*items), 3), VEC_OK);
	assert_int_equal(vec_grow(&items, &cap, 4, sizeof(*items), 3), VEC_FULL);
	assert_int_equal(vec_grow(&items, &cap, 3, sizeof(*items), 3), VEC_OK);
}

static int fill(void *ctx)
{
	_cleanup_(freep) uint32_t *items = NULL;
	size_t cap = 0;

	for (uint32_t i = 0; i < 100; i++) {
		int r = vec_grow(&items, &cap, i + 1, sizeof(*items), 100);

		if (r)
			return r;
		items[i] = i;
		for (uint32_t at = 0; at <= i; at++)
			assert_int_equal(items[at], at);
	}
	return 0;
}

static void test_no_memory(void **state)
{
	(void)state;
	/* 8, 16, 32, 64, 100 */
	assert_int_equal(allocfail_each(fill, NULL), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_small_ceiling),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
