// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "base/nsec.h"
#include "base/work_budget.h"

static void test_units(void **state)
{
	struct work_budget b;

	(void)state;
	work_budget_init(&b, 10, NSEC_PER_SEC, NULL);
	assert_true(work_budget_spend(&b, 4));
	assert_true(work_budget_spend(&b, 6));
	assert_int_equal(b.spent, 10);
	assert_true(work_budget_spend(&b, 0));
	work_budget_add(&b, 1);
	assert_true(work_budget_spend(&b, 1));
	assert_false(work_budget_spend(&b, 1));
	assert_int_equal(b.end, WORK_SPENT);
	/* it stays so */
	work_budget_add(&b, 100);
	assert_false(work_budget_spend(&b, 0));
	assert_int_equal(b.spent, 11);
}

static void test_most_units(void **state)
{
	struct work_budget b;

	(void)state;
	work_budget_init(&b, UINT64_MAX, NSEC_PER_SEC, NULL);
	work_budget_add(&b, UINT64_MAX);
	assert_true(work_budget_spend(&b, 1));
	assert_false(work_budget_spend(&b, UINT64_MAX));
}

/* Work whose units say too little. */
static void test_cpu_time(void **state)
{
	struct work_budget b;

	(void)state;
	work_budget_init(&b, UINT64_MAX, 0, NULL);
	assert_true(work_budget_spend(&b, 1)); /* no look at the clock yet */
	assert_false(work_budget_spend(&b, 1u << 21));
	assert_int_equal(b.end, WORK_TOO_LONG);
}

static void test_stop(void **state)
{
	atomic_bool stop = false;
	struct work_budget b;

	(void)state;
	work_budget_init(&b, 100, NSEC_PER_SEC, &stop);
	assert_true(work_budget_spend(&b, 1));
	atomic_store(&stop, true);
	assert_false(work_budget_spend(&b, 1));
	assert_int_equal(b.end, WORK_STOPPED);
}

static void test_refused(void **state)
{
	static struct work_refused r;
	struct file_id file = {.device = 1, .inode = 2, .size = 3, .mtime_ns = 4}, other;

	(void)state;
	assert_false(work_refused_has(&r, &file, 1));
	work_refused_add(&r, &file, 1);
	assert_true(work_refused_has(&r, &file, 2));
	assert_true(work_refused_has(&r, &file, 1000 * NSEC_PER_SEC));
	assert_false(work_refused_has(&r, &file, 2000 * NSEC_PER_SEC));
	/* a touch or a write does not bring another budget */
	other = file;
	other.ctime_ns = ++other.mtime_ns;
	assert_true(work_refused_has(&r, &other, 2));
	/* the oldest is forgotten */
	for (other.inode = 100; other.inode < 100 + WORK_REFUSED_MAX; other.inode++)
		work_refused_add(&r, &other, 2);
	assert_false(work_refused_has(&r, &file, 2));
	other.inode--;
	assert_true(work_refused_has(&r, &other, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units),	 cmocka_unit_test(test_most_units),
		cmocka_unit_test(test_cpu_time), cmocka_unit_test(test_stop),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
