// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "base/cpu_share.h"
#include "base/nsec.h"

#define S NSEC_PER_SEC

/* A quarter of a CPU, two seconds at once. */
static void test_debt(void **state)
{
	struct cpu_share s = {.parts = 4, .burst_ns = 2 * S};

	(void)state;
	assert_int_equal(cpu_share_wait_ns(&s, 100 * S), 0);
	cpu_share_charge(&s, 100 * S, 2 * S); /* the burst exactly */
	assert_int_equal(cpu_share_wait_ns(&s, 100 * S), 0);
	cpu_share_charge(&s, 100 * S, S);
	assert_int_equal(cpu_share_wait_ns(&s, 100 * S), 4 * S);
	assert_int_equal(cpu_share_wait_ns(&s, 103 * S), S);
	assert_int_equal(cpu_share_wait_ns(&s, 104 * S), 0);
	/* four seconds later one second of CPU time is there, not more */
	cpu_share_charge(&s, 108 * S, S);
	assert_int_equal(cpu_share_wait_ns(&s, 108 * S), 0);
	cpu_share_charge(&s, 108 * S, 1);
	assert_int_equal(cpu_share_wait_ns(&s, 108 * S), 4);
	/* after an hour the bucket is full, and not fuller */
	cpu_share_charge(&s, 4000 * S, 2 * S + 1);
	assert_int_equal(cpu_share_wait_ns(&s, 4000 * S), 4);
}

/* A client that waits for the end of its debts gets the full share, for any size of the pieces. */
static void test_share(void **state)
{
	struct cpu_share s = {.parts = 4, .burst_ns = 2 * S};
	uint64_t now = 1000 * S, used = 0;

	(void)state;
	while (now < 2000 * S) {
		uint64_t piece = (used / 7 + 1) % (S / 2);

		now += piece;
		used += piece;
		cpu_share_charge(&s, now, piece);
		now += cpu_share_wait_ns(&s, now);
	}
	assert_in_range(used, 240 * S, 253 * S);
}

/* Soon after the machine's start. */
static void test_early(void **state)
{
	struct cpu_share s = {.parts = 4, .burst_ns = 2 * S};

	(void)state;
	cpu_share_charge(&s, S, S);
	assert_int_equal(cpu_share_wait_ns(&s, S), 3 * S);
	assert_true(cpu_share_thread_ns() > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debt),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
