// SPDX-License-Identifier: Apache-2.0
#include "cpu/young_processes.h"

#include "base/nsec.h"
#include "profile/drain.h"
#include "support/test.h"

#define NOW	(100 * NSEC_PER_SEC)
#define SLOW_NS ((uint64_t)DRAIN_SOON_PART * DRAIN_SOON_LAST_NS)

/* The youngest process decides; its end leaves the others. */
static void test_youngest(void **state)
{
	struct young_processes young = {.n = 0};

	(void)state;
	assert_int_equal(young_processes_since_ns(&young, NOW), 0);
	young_processes_add(&young, 1, 1, NOW);
	young_processes_add(&young, 2, 2, NOW + 5);
	assert_int_equal(young_processes_since_ns(&young, NOW + 5), NOW + 5);
	young_processes_end(&young, 3);
	young_processes_end(&young, 2);
	assert_int_equal(young_processes_since_ns(&young, NOW + 6), NOW);
	assert_int_equal(young_processes_since_ns(&young, NOW + DRAIN_SOON_NS - 1), NOW);
	assert_int_equal(young_processes_since_ns(&young, NOW + DRAIN_SOON_NS), 0);
	assert_int_equal(young.n, 0);
}

/* Another program of a process takes the place of the earlier one. */
static void test_again(void **state)
{
	struct young_processes young = {.n = 0};

	(void)state;
	young_processes_add(&young, 1, 1, NOW);
	young_processes_add(&young, 1, 1, NOW + 7);
	assert_int_equal(young.n, 1);
	assert_int_equal(young_processes_since_ns(&young, NOW + 7), NOW + 7);
	young_processes_end(&young, 1);
	assert_int_equal(young_processes_since_ns(&young, NOW + 7), 0);
}

/* Many starts do not make drains shorter than DRAIN_SOON_LAST_NS all the time. */
static void test_limits(void **state)
{
	static const struct {
		uint64_t owner, after_ns;
		bool is_quick;
	} rows[] = {
		{1, 0, true},
		{1, 0, true},
		{1, 1, false}, /* above the owner's */
		{2, 2, true},
		{3, 3, true},
		{4, 4, false}, /* above those of all */
		{4, NSEC_PER_SEC - 1, false},
		{4, NSEC_PER_SEC, true},
		{1, NSEC_PER_SEC, true},
	};
	struct young_processes young = {.n = 0};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const uint64_t at_ns = NOW + rows[i].after_ns;

		young_processes_add(&young, i, rows[i].owner, at_ns);
		assert_int_equal(young.items[young.n - 1].since_ns,
				 rows[i].is_quick ? at_ns : at_ns - SLOW_NS);
	}
}

static void test_full(void **state)
{
	struct young_processes young = {.n = 0};

	(void)state;
	for (uint64_t i = 0; i <= YOUNG_PROCESSES_MAX; i++)
		young_processes_add(&young, i, i, NOW + i * NSEC_PER_MSEC);
	assert_int_equal(young.n, YOUNG_PROCESSES_MAX);
	assert_int_equal(young.items[0].pid, 1);
	assert_int_equal(young.items[YOUNG_PROCESSES_MAX - 1].pid, YOUNG_PROCESSES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_youngest),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
