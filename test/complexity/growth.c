// SPDX-License-Identifier: Apache-2.0
#include "complexity/growth.h"

#include "support/test.h"

/* A doubling of n log n with n above 1,000 is 2.2. */
#define GROWTH_MAX 2.6
/* Of the last doubling; less is a fixed cost, or the end at a ceiling. */
#define GROWTH_MIN 1.3
/* Of an input, below a ceiling and above. */
#define DOUBLINGS  3

struct table {
	const struct growth *rows;
	size_t n;
};

/* Whether the growth by the last doubling is right. */
static bool is_right(const struct growth *row, double growth, bool last)
{
	const bool much = growth > (row->kind == GROWS ? GROWTH_MAX : GROWTH_MIN);
	const bool little = row->kind == GROWS && last && growth < GROWTH_MIN;

	print_message("  *%.2f%s%s", growth, much ? " TOO MUCH" : "", little ? " TOO LITTLE" : "");
	return !much && !little;
}

static bool check_row(const struct growth *row)
{
	const size_t doublings = row->kind == GROWS ? DOUBLINGS : 1;
	uint64_t before = row->run(row->n);
	bool good = true;

	print_message("%-45s %9zu: %11llu", row->name, row->n, (unsigned long long)before);
	assert_true(before > 0);
	for (size_t k = 1; k <= doublings; k++) {
		uint64_t now = row->run(row->n << k);

		good &= is_right(row, (double)now / (double)before, k == doublings);
		before = now;
	}
	print_message("\n");
	return good;
}

static void test_growth(void **state)
{
	const struct table *table = *state;
	bool good = true;

	for (size_t i = 0; i < table->n; i++)
		good &= check_row(&table->rows[i]);
	assert_true(good);
}

int growth_main(const struct growth *rows, size_t n)
{
	struct table table = {rows, n};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_growth, &table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
