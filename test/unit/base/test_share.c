// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "base/share.h"

static void test_share_allows(void **state)
{
	static const struct {
		size_t max, total, own;
		bool allows;
	} rows[] = {
		{100, 0, 0, true},    {100, 24, 24, false}, {100, 19, 19, true},
		{100, 20, 20, false}, {100, 96, 0, true},   {100, 96, 1, false},
		{100, 99, 0, true},   {100, 100, 0, false}, {100, 101, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++)
		assert_int_equal(share_allows(rows[i].max, rows[i].total, rows[i].own),
				 rows[i].allows);
}

static void test_share_left(void **state)
{
	static const struct {
		uint64_t max, total, own, left;
	} rows[] = {
		{100, 0, 0, 25},  {100, 24, 0, 19},	   {100, 24, 18, 1},
		{100, 24, 19, 0}, {100, 24, 24, 0},	   {100, 99, 0, 1},
		{100, 100, 0, 0}, {100, UINT64_MAX, 0, 0}, {UINT64_MAX, 0, 0, 1ull << 62},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++)
		assert_int_equal(share_left(rows[i].max, rows[i].total, rows[i].own), rows[i].left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share_allows),
		cmocka_unit_test(test_share_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
