// SPDX-License-Identifier: Apache-2.0
/* Samples with and without a stack in a window. */
#include "support/test.h"

#include <string.h>

#include "cpu/fold.h"
#include "cpu/series.h"

/* The test keeps the last reference, as in test_fold.c. */
static struct image image = {.kind = IMAGE_UNKNOWN, .refs = 1};

struct window {
	unsigned int n_series;
	uint64_t n;
	uint64_t value;
	size_t n_stacks;
	struct fold_totals totals;
};

static void look(void *ctx, struct series *series)
{
	struct window *w = ctx;

	w->n_series++;
	w->n += series->n_window;
	w->value += series->value;
	w->n_stacks += fold_n(series->fold);
	w->totals = fold_totals(series->fold);
}

static void add(struct series_table *t, bool is_lost, uint64_t count)
{
	const struct series_of of = {.id = "a"};
	const struct frame frames[] = {{&image, 1}};
	static const uint8_t marks[1];
	const struct fold_sample sample = {.frames = frames,
					   .return_address = marks,
					   .n_frames = is_lost ? 0 : 1,
					   .is_lost = is_lost};

	assert_int_equal(series_add(t, &of, &sample, count, 10 * count), 0);
}

/* Samples without a stack count for the series and its value, also alone. */
static void test_lost(void **state)
{
	struct window mixed = {0}, alone = {0};
	struct series_table *t;

	(void)state;
	assert_int_equal(series_table_new(&t), 0);
	add(t, false, 3);
	add(t, true, 4);
	add(t, true, 5);
	series_end_window(t, look, &mixed);
	assert_int_equal(mixed.n_series, 1);
	assert_int_equal(mixed.n, 3 + 4 + 5);
	assert_int_equal(mixed.value, 10 * (3 + 4 + 5));
	assert_int_equal(mixed.n_stacks, 1);
	assert_int_equal(mixed.totals.n_refused, 4 + 5);
	assert_int_equal(mixed.totals.refused_value, 10 * (4 + 5));
	add(t, true, 6);
	series_end_window(t, look, &alone);
	assert_int_equal(alone.n, 6);
	assert_int_equal(alone.value, 60);
	assert_int_equal(alone.n_stacks, 0);
	assert_int_equal(alone.totals.n_refused, 6);
	series_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
