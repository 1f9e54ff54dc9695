// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "goheap/goheap.h"

struct unsample_row {
	const char *name;
	uint64_t count;
	uint64_t size;
	int64_t rate;
	int64_t objects;
	int64_t bytes;
};

/* The values in between are results of Go 1.26.8's own scaleHeapSample(). */
static const struct unsample_row unsample_rows[] = {
	{"nothing", 0, 16, 524288, 0, 0},
	{"no size", 5, 0, 524288, 0, 0},
	{"everything is sampled", 5, 16, 1, 5, 80},
	{"rate not known", 5, 16, 0, 5, 80},
	{"rate not known, negative", 5, 16, -3, 5, 80},
	{"one small object", 1, 16, 524288, 32768, 524296},
	{"many small objects", 1000, 48, 524288, 10923166, 524312000},
	{"as large as the rate", 7, 524288, 524288, 11, 5805879},
	{"much larger than the rate", 3, 1ull << 30, 524288, 3, 3ull << 30},
	{"rate of two", 10, 1, 2, 25, 25},
	{"count that is no count", UINT64_MAX, 16, 524288, INT64_MAX, INT64_MAX},
	{"count that is no count, unscaled", 1ull << 63, 1, 1, INT64_MAX, INT64_MAX},
	{"bytes beyond int64", 1ull << 40, 1ull << 39, 524288, 1ll << 40, INT64_MAX},
};

static void test_unsample(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(unsample_rows); i++) {
		const struct unsample_row *row = &unsample_rows[i];
		struct unsampled got = unsample(row->count, row->size, row->rate);

		row_begin(row->name);
		assert_true(got.objects == row->objects);
		assert_true(got.bytes == row->bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unsample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
