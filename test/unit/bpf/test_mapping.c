// SPDX-License-Identifier: Apache-2.0
/* The mapping of a pc: tables of all sizes, at all their edges. */
#include "support/test.h"

#include <string.h>

#include "lib/table_host.h"
#include "lib/mapping.bpf.h"

#define TABLE_PAGES 20
#define PER	    PROCESS_MAPPINGS_PER_PAGE
#define PAGE	    (1ull << PROCESS_PAGE_SHIFT)

static struct table_page table_pages[TABLE_PAGES];

static const struct table_space space = {.table_pages = table_pages, .n_table_pages = TABLE_PAGES};

/* Mapping i begins here and has i % 3 + 1 pages of the 5 before the next mapping. */
static uint64_t start_of(uint64_t i)
{
	return (0x10000 + 5 * i) * PAGE;
}

static uint64_t bytes_of(uint64_t i)
{
	return (i % 3 + 1) * PAGE;
}

static void fill(uint64_t first, uint64_t n)
{
	memset(table_pages, 0xff, sizeof(table_pages));
	for (uint64_t i = 0; i < n; i++) {
		const struct process_mapping m = {
			.start_pages = start_of(i) / PAGE,
			.n_pages = bytes_of(i) / PAGE,
			/* every other bias is below 0 */
			.bias_pages = (i % 2 ? -(i + 1) : i + 1) & ((1ull << 48) - 1),
			.exe = (uint16_t)(i + 1),
		};
		const uint64_t at = first + i;

		memcpy(&table_pages[at / PER].bytes[at % PER * sizeof(m)], &m, sizeof(m));
	}
}

static void expect(uint64_t first, uint64_t n, uint64_t pc, uint64_t want)
{
	struct mapping m = {.exe = 77777};

	assert_int_equal(mapping_find(&space, first, n, pc, &m), 0);
	assert_int_equal(m.exe, want + 1);
	assert_true(m.start == start_of(want));
	assert_true(m.bytes == bytes_of(want));
	assert_true(m.bias == (want % 2 ? -(want + 1) : want + 1) * PAGE);
}

static void expect_none(uint64_t first, uint64_t n, uint64_t pc)
{
	struct mapping m = {.exe = 77777};

	assert_int_equal(mapping_find(&space, first, n, pc, &m), -1);
	assert_int_equal(m.exe, 77777);
}

struct mapping_row {
	const char *name;
	uint64_t first, n;
};

static const struct mapping_row mapping_rows[] = {
	{"none", 0, 0},
	{"one", 0, 1},
	{"two", 5, 2},
	{"three", 253, 3},
	{"forty, in the middle", 300, 40},
	{"one less than a page", 0, 255},
	{"a page", 256, 256},
	{"one more", 256, 257},
	{"two pages", 512, 512},
	{"some", 256, 1000},
	{"as many as there may be", 512, PROCESS_PAGES_MAX *PER},
};

static void test_find(void **state)
{
	for (size_t r = 0; r < array_size(mapping_rows); r++) {
		const uint64_t first = mapping_rows[r].first, n = mapping_rows[r].n;

		row_begin(mapping_rows[r].name);
		fill(first, n);
		expect_none(first, n, 0);
		expect_none(first, n, start_of(0) - 1);
		for (uint64_t i = 0; i < n; i++) {
			expect(first, n, start_of(i), i);
			expect(first, n, start_of(i) + bytes_of(i) - 1, i);
			expect_none(first, n, start_of(i) + bytes_of(i));
			expect_none(first, n, start_of(i + 1) - 1);
		}
		expect_none(first, n, UINT64_MAX);
	}
}

/* A missing table, as when a record is older than its table. */
static void test_nowhere(void **state)
{
	expect_none(TABLE_PAGES * PER, 3, start_of(0));
	expect_none((TABLE_PAGES - 1) * PER, 3 * PER, UINT64_MAX / 2);
	expect_none(UINT32_MAX, UINT32_MAX, start_of(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
