// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "gofile/goversion.h"

#define FIRST 16

/* One row a release, in order, as in the help texts. */
static void test_rows(void **state)
{
	const struct goversion *v = goversion_newest();
	unsigned int minor = v->minor;
	char range[32];

	(void)state;
	snprintf(range, sizeof(range), "1.%u to 1.%u", FIRST, minor);
	assert_string_equal(GOVERSION_RANGE, range);
	for (; v; v = goversion_older(v))
		assert_int_equal(v->minor, minor--);
	assert_int_equal(minor, FIRST - 1);
}

/* The readers' assumptions about each row. */
static void test_columns(void **state)
{
	(void)state;
	for (const struct goversion *v = goversion_newest(); v; v = goversion_older(v)) {
		const uint16_t fields[] = {v->g.syscall_sp + 8, v->g.status, v->g.id,
					   v->g.wait_reason,	v->g.go_pc,  v->g.start_pc};

		print_message("row: 1.%u\n", v->minor);
		assert_int_equal(v->magic & ~0xfu, 0xfffffff0); /* the search pattern in a file */
		assert_true(v->form == GOMODULE_1_16 ? !v->gofunc : v->gofunc);
		assert_in_range(v->gofunc, 0, GOVERSION_MODULE_BYTES - 16);
		assert_true(v->slot_words == 2 || v->slot_words == 4);
		assert_true(v->system);
		/* three counters and all size classes, for allocations and then for frees */
		if (v->stats.words)
			assert_int_equal(v->stats.words, v->stats.first + 3 + 68 + 2 + 68);
		assert_in_range(v->stats.words, 0, GOVERSION_STATS_WORDS);
		assert_in_range(v->pacer.total_alloc, 0, GOVERSION_TOTAL_ALLOC);
		assert_int_equal(!v->pacer.total_alloc && v->stats.words, v->pacer.goal != 0);
		for (size_t i = 0; i < array_size(fields); i++) {
			assert_int_equal(fields[i] % 8, 0);
			assert_in_range(fields[i], 8, GOVERSION_G_BYTES - 8);
		}
	}
}

struct minor_row {
	const char *version;
	unsigned int minor;
	unsigned int row; /* 0: none */
};

static const struct minor_row minor_rows[] = {
	{"go1.26.8", 26, 26},
	{"go1.16", 16, 16},
	{"go1.27.3 X:boringcrypto", 27, 27},
	{"go1.21-vendor.2", 21, 21},
	{"devel go1.26-1a2b3c4 Mon Jan 1", 26, 26},
	{"go1.28rc1", 28, 27},
	{"devel go1.99", 99, 27},
	{"go1.1000", 1000, 27},
	{"go1.15.15", 15, 16},
	{"go1.1", 1, 16},
	{"go1.1001", 0, 0},
	{"go1.", 0, 0},
	{"go2.1", 0, 0},
	{"devel", 0, 0},
	{"devel +1a2b3c4", 0, 0},
	{"1.26", 0, 0},
	{"", 0, 0},
};

static void test_minor(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(minor_rows); i++) {
		const struct minor_row *row = &minor_rows[i];
		const struct goversion *v = goversion_find(goversion_minor(row->version));

		row_begin(row->version);
		assert_int_equal(goversion_minor(row->version), row->minor);
		assert_int_equal(v ? v->minor : 0, row->row);
	}
}

/* All names of each function, the newest first; the array has room. */
static void test_names(void **state)
{
	const char *names[GOVERSION_NAMES];

	(void)state;
	for (int func = 0; func < GOVERSION_FUNCS; func++) {
		size_t n = goversion_names((enum goversion_func)func, names), k = 0;

		for (const struct goversion *v = goversion_newest(); v; v = goversion_older(v))
			if (v->names[func]) {
				assert_true(k < n);
				assert_string_equal(names[k++], v->names[func]);
			}
		assert_int_equal(k, n);
		assert_string_equal(names[n - 1], goversion_find(FIRST)->names[func]);
	}
	assert_int_equal(goversion_names(GOVERSION_TICKS, names), 2);
	assert_string_equal(names[0], "runtime.ticksPerSecond");
	assert_string_equal(names[1], "runtime.tickspersecond");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_minor),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
