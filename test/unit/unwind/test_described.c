// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>

#include "elf/elffile.h"
#include "support/allocfail.h"
#include "support/elfmake.h"
#include "unwind/described.h"
#include "unwind/rows.h"

#define TEXT  0x1000
#define TOTAL 0x10000

DEFINE_CLEANUP(struct elffile *, elffilep_free, elffile_free);

static void add(struct rows *rows, enum rows_source source, uint64_t start, uint64_t end)
{
	const struct unwind_rule rule = {.cfa = UNWIND_CFA_FP};

	assert_int_equal(rows_begin(rows, source, TEXT + start, TEXT + end), 0);
	assert_int_equal(rows_add(rows, TEXT + start, &rule), 0);
	assert_int_equal(rows_end(rows), 0);
}

static struct rows *make_rows(void)
{
	struct rows *rows;

	assert_int_equal(rows_new(TEXT, TEXT + TOTAL, &rows), 0);
	return rows;
}

static bool has(const struct described *d, uint64_t start, uint64_t end)
{
	return described_has(d, TEXT + start, TEXT + end);
}

static void ranges_are_joined(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = make_rows();
	_cleanup_(described_deinit) struct described d = {0};

	(void)state;
	/* not in order, of three sources: [0x100, 0x300), [0x380, 0x3a0) and 8 bytes of padding */
	add(rows, ROWS_GO, 0x200, 0x300);
	add(rows, ROWS_EH_FRAME, 0x390, 0x3a0);
	add(rows, ROWS_EH_FRAME, 0x100, 0x240);
	add(rows, ROWS_SYNTHETIC, 0x380, 0x390);
	add(rows, ROWS_GO, 0x400, 0x440);
	add(rows, ROWS_GO, 0x448, 0x500);
	assert_int_equal(described_init(&d, rows), 0);
	assert_int_equal(d.n, 3);
	assert_true(has(&d, 0x100, 0x300));
	assert_true(has(&d, 0x140, 0x2a0));
	assert_true(has(&d, 0x380, 0x3a0));
	assert_true(has(&d, 0x400, 0x500));
	assert_false(has(&d, 0xf0, 0x110));
	assert_false(has(&d, 0x2f0, 0x310));
	assert_false(has(&d, 0x300, 0x380));
	assert_false(has(&d, 0x100, 0x3a0));
	assert_false(has(&d, 0x500, 0x520));
	/* padding between two functions may be a function of a few instructions */
	assert_false(has(&d, 0x440, 0x448));
}

static void nothing_is_described(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = make_rows();
	_cleanup_(described_deinit) struct described d = {0};

	(void)state;
	assert_int_equal(described_init(&d, rows), 0);
	assert_false(has(&d, 0, 0x100));
}

/* ---------------------------------------------------------------- files */

/* Whether code is left when [0x1000, 0x8000) is described but for [0x4000, 0x4000 + @gap). */
static bool leaves(const struct elfmake_part *sections, size_t n, uint64_t gap)
{
	_cleanup_(elffilep_free) struct elffile *file = NULL;
	_cleanup_(elfmake_deinit) struct elfmake m;
	_cleanup_(rows_freep) struct rows *rows = make_rows();
	_cleanup_(described_deinit) struct described d = {0};
	bool ret;

	elfmake_code(&m, TEXT, TOTAL, sections, n);
	assert_int_equal(elffile_open_memory(m.data, m.n, &file), 0);
	add(rows, ROWS_EH_FRAME, 0x1000, 0x4000);
	add(rows, ROWS_EH_FRAME, 0x4000 + gap, 0x8000);
	assert_int_equal(described_init(&d, rows), 0);
	assert_int_equal(described_leaves(&d, file, &ret), 0);
	return ret;
}

static void only_code_in_sections_counts(void **state)
{
	const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;

	(void)state;
	row_begin("all of the code");
	assert_false(leaves(&(struct elfmake_part){0x1000, 0x8000, code}, 1, 0));
	row_begin("the headers in front and data behind");
	assert_false(leaves((struct elfmake_part[]){{0, 0x1000, SHF_ALLOC},
						    {0x1000, 0x8000, code},
						    {0x8000, 0xf000, SHF_ALLOC}},
			    3, 0));
	row_begin("code in front");
	assert_true(leaves(&(struct elfmake_part){0xf00, 0x8000, code}, 1, 0));
	row_begin("code behind");
	assert_true(leaves(&(struct elfmake_part){0x1000, 0x8100, code}, 1, 0));
	row_begin("code between");
	assert_true(leaves(&(struct elfmake_part){0x1000, 0x8000, code}, 1, 0x100));
	assert_false(leaves(&(struct elfmake_part){0x1000, 0x8000, code}, 1, 0xf0));
	row_begin("padding");
	assert_false(leaves((struct elfmake_part[]){{0xfd0, 0x8030, code},
						    {0xfd0, 0x8030, code},
						    {0xfd0, 0x8030, code},
						    {0xfd0, 0x8030, code}},
			    4, 0x30));
	row_begin("a small file");
	assert_true(leaves(&(struct elfmake_part){0x3f80, 0x4080, code}, 1, 0x40));
	row_begin("no sections of code");
	assert_true(leaves(&(struct elfmake_part){0x1000, 0x8000, SHF_ALLOC}, 1, 0));
}

static int init(void *ctx)
{
	_cleanup_(described_deinit) struct described d = {0};

	return described_init(&d, ctx);
}

static void test_no_memory(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = make_rows();

	(void)state;
	add(rows, ROWS_GO, 0x200, 0x300);
	assert_true(allocfail_survive(init, rows) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_joined),
		cmocka_unit_test(nothing_is_described),
		cmocka_unit_test(only_code_in_sections_counts),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
