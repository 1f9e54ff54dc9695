// SPDX-License-Identifier: Apache-2.0
/* All packed rows are found again: by the walker's own code, at each row and in between. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/allocfail.h"
#include "support/fixture.h"
#include "unwindtable/compile.h"
#include "unwindtable/table.h"

#define TEXT	 0x401000
#define TEXT_END (1ull << 40)

DEFINE_CLEANUP(struct table *, table_freep, table_free);

/* xorshift: the same rows in every run. */
static uint32_t rnd(uint64_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32) % below;
}

static struct unwind_rule rule_of(uint32_t number)
{
	return (struct unwind_rule){.cfa = UNWIND_CFA_REG,
				    .cfa_reg = UNWIND_X86_SP,
				    .cfa_off = 8 * (int32_t)number,
				    .ra_off = -8};
}

/* ---------------------------------------------------------------- comparing */

/* The rows' and the table's rule at one address. */
static void expect(const struct rows *rows, const struct table *table, uint64_t vaddr)
{
	struct unwind_rule want = {0}, got = {0};
	size_t i = rows_find(rows, vaddr);

	if (i != SIZE_MAX)
		want = *rows_rule(rows, rows_at(rows, i).rule);
	assert_int_not_equal(table_lookup(table, vaddr, &got), TABLE_TORN);
	if (memcmp(&got, &want, sizeof(got)) != 0)
		fail_msg("at %#llx: cfa %u %d fp %u %d, not cfa %u %d fp %u %d",
			 (unsigned long long)vaddr, got.cfa, got.cfa_off, got.fp, got.fp_off,
			 want.cfa, want.cfa_off, want.fp, want.fp_off);
}

static void expect_all(const struct rows *rows, const struct table *table)
{
	size_t n = rows_count(rows);

	for (size_t i = 0; i < n; i++) {
		uint64_t vaddr = rows_at(rows, i).vaddr;
		uint64_t end = i + 1 < n ? rows_at(rows, i + 1).vaddr : vaddr + 100000;

		expect(rows, table, vaddr - 1);
		expect(rows, table, vaddr);
		expect(rows, table, vaddr + (end - vaddr) / 2);
		expect(rows, table, end - 1);
	}
	expect(rows, table, 0);
	expect(rows, table, UINT64_MAX);
}

/* ---------------------------------------------------------------- made-up rows */

/**
 * struct shape - rows by chance
 * @n:     how many
 * @rules: of how many rules
 * @far:   up to this far apart, in units
 * @unit:  bytes
 * @close: in so many of ten cases only up to 4 units instead
 * @cut:   more than a table can say
 */
struct shape {
	const char *name;
	uint32_t n;
	uint32_t rules;
	uint32_t far;
	uint32_t unit;
	uint32_t close;
	bool cut;
};

static const struct shape shapes[] = {
	{"one row", 1, 1, 1, 1, 0, false},
	{"two rows", 2, 2, 1, 1, 0, false},
	{"everywhere another rule", 3000, 4000, 40, 1, 0, false},
	{"few rules", 20000, 12, 60, 1, 0, false},
	{"rule runs", 20000, 5, 200, 1, 8, false},
	{"long ids in rule runs", 20000, 600, 200, 1, 7, false},
	{"dense", 20000, 30, 9, 1, 1, false},
	{"sparse", 3000, 30, 20000, 1, 1, false},
	{"very sparse", 50, 30, 4000000, 1, 1, false},
	{"arm64", 20000, 40, 50, 4, 5, false},
	{"units of a block", 500, 40, 9, 4096, 5, false},
	{"a row for each byte", 40000, 3, 1, 1, 0, false},
	{"long ids at each byte", 40000, 3000, 1, 1, 0, true},
	{"more rules than ids", 30000, 6000, 30, 1, 0, true},
};

static struct rows *rows_of(const struct shape *shape)
{
	uint64_t state = 88172645463325252ull, vaddr = TEXT;
	struct rows *rows;

	assert_int_equal(rows_new(TEXT, TEXT_END, &rows), 0);
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, TEXT, TEXT_END - TEXT), 0);
	for (uint32_t i = 0; i < shape->n; i++) {
		struct unwind_rule rule = rule_of(1 + rnd(&state, shape->rules));
		uint32_t far = rnd(&state, 10) < shape->close ? 4 : shape->far;

		assert_int_equal(rows_add(rows, vaddr, &rule), 0);
		vaddr += (uint64_t)shape->unit * (1 + rnd(&state, far));
	}
	rows_add(rows, vaddr, &(struct unwind_rule){0});
	assert_int_equal(rows_end(rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	return rows;
}

static void test_made_up(void **state)
{
	for (size_t i = 0; i < array_size(shapes); i++) {
		_cleanup_(rows_freep) struct rows *rows = rows_of(&shapes[i]);
		_cleanup_(table_freep) struct table *table = NULL;

		row_begin(shapes[i].name);
		assert_int_equal(table_pack(rows, &table), 0);
		assert_int_equal(table->n_rows, rows_count(rows));
		assert_int_equal(table->n_cut > 0, shapes[i].cut);
		assert_int_equal(table->n_bytes % TABLE_SUBPAGE_BYTES, 0);
		if (!shapes[i].cut)
			expect_all(rows, table);
	}
}

/* Truncated rows are gaps, and the next rows are right again. */
static void check_cut(const struct shape *shape)
{
	_cleanup_(rows_freep) struct rows *rows = rows_of(shape);
	_cleanup_(table_freep) struct table *table = NULL;
	size_t right = 0, gaps = 0;

	row_begin(shape->name);
	assert_int_equal(table_pack(rows, &table), 0);
	for (size_t i = 0; i < rows_count(rows); i++) {
		struct row row = rows_at(rows, i);
		struct unwind_rule got = {0};

		assert_int_equal(table_lookup(table, row.vaddr, &got), TABLE_FOUND);
		if (memcmp(&got, rows_rule(rows, row.rule), sizeof(got)) == 0)
			right++;
		else if (got.cfa == UNWIND_CFA_GAP)
			gaps++;
	}
	assert_int_equal(right + gaps, rows_count(rows));
	assert_true(right > rows_count(rows) / 5);
	assert_true(table->n_cut >= gaps);
}

/* With each number of slots in the page where a block ends. */
static void test_cut_is_gap(void **state)
{
	struct shape shape = {"a row for each byte", 40000, 200, 1, 1, 0, true};

	check_cut(&shape);
	shape.name = "the page full at the end of a block";
	shape.far = 2;
	shape.n = 6000;
	for (shape.rules = 100; shape.rules < 200; shape.rules++)
		check_cut(&shape);
}

/* ---------------------------------------------------------------- real tables */

static void test_file(const char *path)
{
	_cleanup_(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	_cleanup_(table_freep) struct table *table = NULL, *again = NULL;
	struct ehframe_stats stats;

	row_begin(path);
	assert_true(fd >= 0);
	assert_int_equal(elffile_open(fd, &file), 0);
	assert_int_equal(compile_image(file, &stats, &rows), 0);
	assert_int_equal(table_pack(rows, &table), 0);
	assert_int_equal(table->n_cut, 0);
	expect_all(rows, table);
	assert_int_equal(table_pack(rows, &again), 0);
	assert_int_equal(again->n_bytes, table->n_bytes);
	assert_memory_equal(again->table_image, table->table_image, table->n_bytes);
	assert_memory_equal(&again->exe, &table->exe, sizeof(table->exe));
}

static void test_files(void **state)
{
	static const char *const fixtures[] = {"plain-pie", "plain-static", "cxx"};
	char path[FIXTURE_PATH_MAX], line[FIXTURE_PATH_MAX];
	FILE *maps = fopen("/proc/self/maps", "re");

	for (size_t i = 0; i < array_size(fixtures); i++)
		test_file(fixture_path(fixtures[i], path));
	test_file("/proc/self/exe");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		/* the C library: hand-written code, too */
		if (strstr(line, " r-xp ") && strstr(line, "/libc") &&
		    sscanf(line, "%*s %*s %*s %*s %*s %4095s", path) == 1)
			test_file(path);
	fclose(maps);
}

/* ---------------------------------------------------------------- edges */

static void test_nothing(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct table *table;

	assert_int_equal(rows_new(TEXT, TEXT_END, &rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(table_pack(rows, &table), TABLE_EMPTY);
}

static void test_too_far(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct unwind_rule rule = rule_of(1);
	struct table *table;

	assert_int_equal(rows_new(TEXT, TEXT_END, &rows), 0);
	for (int i = 0; i < 2; i++) {
		uint64_t at = i ? TEXT_END - 4097 : TEXT;

		assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, at, at + 7), 0);
		assert_int_equal(rows_add(rows, at, &rule), 0);
		assert_int_equal(rows_end(rows), 0);
	}
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(table_pack(rows, &table), TABLE_TOO_LARGE);
}

static int pack_once(void *ctx)
{
	_cleanup_(table_freep) struct table *table = NULL;

	return table_pack(ctx, &table);
}

static void test_no_memory(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = rows_of(&shapes[4]);

	allocfail_each(pack_once, rows);
}

/* Prologues of six pushes and as many pops: eight rows use one slot each. */
static void test_rule_runs_pay(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	_cleanup_(table_freep) struct table *table = NULL;

	assert_int_equal(rows_new(TEXT, TEXT_END, &rows), 0);
	for (uint64_t at = TEXT; at < TEXT + 4096 * 160; at += 160) {
		assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, at, at + 160), 0);
		for (uint32_t i = 0; i < 7; i++) {
			struct unwind_rule up = rule_of(1 + i);

			assert_int_equal(rows_add(rows, at + 2 * i, &up), 0);
		}
		for (uint32_t i = 0; i < 7; i++) {
			struct unwind_rule down = rule_of(7 - i);

			assert_int_equal(rows_add(rows, at + 80 + 2 * i, &down), 0);
		}
		assert_int_equal(rows_end(rows), 0);
	}
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(table_pack(rows, &table), 0);
	expect_all(rows, table);
	/* 13 rows a function; without rule runs each would be 2 bytes and the index besides */
	assert_true(table->n_bytes * 10 < table->n_rows * 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_up),	      cmocka_unit_test(test_cut_is_gap),
		cmocka_unit_test(test_files),	      cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_too_far),	      cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_rule_runs_pay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
