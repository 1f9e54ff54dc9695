// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "base/backoff.h"

struct backoff_row {
	const char *name;
	unsigned int failures;
	uint64_t random;
	uint64_t retry_after_ns;
	uint64_t delay_ns;
};

static const struct backoff_row rows[] = {
	{"first, least", 0, 0, 0, 0},
	{"first, most", 0, BACKOFF_FIRST_NS, 0, BACKOFF_FIRST_NS},
	{"first, round again", 0, BACKOFF_FIRST_NS + 1, 0, 0},
	{"second, most", 1, 2 * BACKOFF_FIRST_NS, 0, 2 * BACKOFF_FIRST_NS},
	{"tenth: 256 s", 9, 256 * NSEC_PER_SEC, 0, 256 * NSEC_PER_SEC},
	{"eleventh would be 512 s", 10, BACKOFF_MAX_NS, 0, BACKOFF_MAX_NS},
	{"round at the maximum", 10, BACKOFF_MAX_NS + 1, 0, 0},
	{"the server's wish comes first", 0, 0, 7 * NSEC_PER_SEC, 7 * NSEC_PER_SEC},
	{"and is spread", 0, 5, 7 * NSEC_PER_SEC, 7 * NSEC_PER_SEC + 5},
	{"a wish at the maximum", 0, 0, BACKOFF_MAX_NS, BACKOFF_MAX_NS},
	{"a wish beyond it", 0, 0, BACKOFF_MAX_NS + 1, BACKOFF_MAX_NS},
	{"a wish without end", 10, BACKOFF_MAX_NS, UINT64_MAX, 2 * BACKOFF_MAX_NS},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct backoff b = {.failures = rows[i].failures};

		row_begin(rows[i].name);
		assert_true(backoff_next(&b, rows[i].random, rows[i].retry_after_ns) ==
			    rows[i].delay_ns);
	}
}

/* The wait stays in its bounds after any number of failures; a success resets it. */
static void test_bounds(void **state)
{
	struct backoff b = {0};

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		assert_true(backoff_next(&b, UINT64_MAX - i, 0) <= BACKOFF_MAX_NS);
	assert_true(backoff_next(&b, BACKOFF_MAX_NS, 0) == BACKOFF_MAX_NS);
	backoff_reset(&b);
	assert_true(backoff_next(&b, BACKOFF_MAX_NS, 0) <= BACKOFF_FIRST_NS);
}

static void test_own_maximum(void **state)
{
	struct backoff b = {.max_ns = 2 * BACKOFF_FIRST_NS};

	(void)state;
	for (size_t i = 0; i < 100; i++) {
		assert_true(backoff_next(&b, UINT64_MAX - i, 0) <= 2 * BACKOFF_FIRST_NS);
		assert_true(backoff_wait_ns(&b, 0) <= 2 * BACKOFF_FIRST_NS);
	}
	assert_true(backoff_next(&b, 0, UINT64_MAX) == 2 * BACKOFF_FIRST_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_own_maximum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
