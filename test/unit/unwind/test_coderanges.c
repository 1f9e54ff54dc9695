// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "elf/elffile.h"
#include "support/elfmake.h"
#include "unwind/coderanges.h"
#include "unwind/ehframe.h"
#include "unwindtable/compile.h"

#define TEXT  0x1000
#define TOTAL 0x4000

#define CODE (SHF_ALLOC | SHF_EXECINSTR)
#define DATA SHF_ALLOC

DEFINE_CLEANUP(struct elffile *, elffilep_free, elffile_free);

#define SECTIONS_MAX 3

static const struct range_row {
	const char *name;
	struct elfmake_part sections[SECTIONS_MAX], ranges[SECTIONS_MAX];
	size_t n_sections, n_ranges;
} range_rows[] = {
	{"no sections: the segment", {{0}}, {{0, TOTAL, 0}}, 0, 1},
	{"only data: the segment", {{0, 0x1000, DATA}}, {{0, TOTAL, 0}}, 1, 1},
	{"data in front and behind",
	 {{0, 0x1000, DATA}, {0x1000, 0x2000, CODE}, {0x2000, 0x3000, DATA}},
	 {{0x1000, 0x2000, 0}},
	 3,
	 1},
	{"padding is code", {{0, 0x1000, CODE}, {0x1040, 0x2000, CODE}}, {{0, 0x2000, 0}}, 2, 1},
	{"more than padding is not",
	 {{0, 0x1000, CODE}, {0x1041, 0x2000, CODE}},
	 {{0, 0x1000, 0}, {0x1041, 0x2000, 0}},
	 2,
	 2},
	{"not in order, and overlapping",
	 {{0x2000, 0x3000, CODE}, {0, 0x200, CODE}, {0x100, 0x400, CODE}},
	 {{0, 0x400, 0}, {0x2000, 0x3000, 0}},
	 3,
	 2},
	{"longer than the segment", {{0x3000, 2 * TOTAL, CODE}}, {{0x3000, TOTAL, 0}}, 1, 1},
};

static void sections_of_code(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(range_rows); i++) {
		const struct range_row *row = &range_rows[i];
		_cleanup_(coderanges_deinit) struct coderanges code = {0};
		_cleanup_(elffilep_free) struct elffile *file = NULL;
		_cleanup_(elfmake_deinit) struct elfmake m;
		uint64_t bytes = 0;

		row_begin(row->name);
		elfmake_code(&m, TEXT, TOTAL, row->sections, row->n_sections);
		assert_int_equal(elffile_open_memory(m.data, m.n, &file), 0);
		assert_int_equal(coderanges_find(file, &code), 0);
		assert_int_equal(code.n, row->n_ranges);
		for (size_t k = 0; k < code.n; k++) {
			assert_int_equal(code.items[k].start, TEXT + row->ranges[k].start);
			assert_int_equal(code.items[k].end, TEXT + row->ranges[k].end);
			assert_int_equal(code.items[k].segment, 0);
			bytes += code.items[k].end - code.items[k].start;
		}
		assert_int_equal(code.bytes, bytes);
	}
}

/* Rows of the file with musl's signal trampoline in a section of these flags. */
static size_t rows_with_trampoline(uint64_t flags)
{
	static const uint8_t trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	const struct elfmake_part sections[] = {{0, 0x1000, CODE}, {0x1000, 0x2000, flags}};
	_cleanup_(elffilep_free) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	_cleanup_(elfmake_deinit) struct elfmake m;
	struct ehframe_stats stats;
	size_t code;

	code = elfmake_code(&m, TEXT, TOTAL, sections, array_size(sections));
	memcpy(m.data + code + 0x1100, trampoline, sizeof(trampoline));
	assert_int_equal(elffile_open_memory(m.data, m.n, &file), 0);
	assert_int_equal(compile_image(file, &stats, &rows), 0);
	return rows_count(rows);
}

static void constants_are_no_code(void **state)
{
	(void)state;
	assert_int_not_equal(rows_with_trampoline(CODE), 0);
	assert_int_equal(rows_with_trampoline(DATA), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_of_code),
		cmocka_unit_test(constants_are_no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
