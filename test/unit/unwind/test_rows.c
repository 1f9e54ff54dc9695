// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "support/allocfail.h"
#include "unwind/rows.h"

#define TEXT 0x1000

/* Rules are told apart by their offset: 'A' is reg 7 + 'A'. A '.' is a gap. */
static struct unwind_rule rule_of(char name)
{
	struct unwind_rule rule = {0};

	if (name == '.')
		return rule;
	rule.cfa = UNWIND_CFA_REG;
	rule.cfa_reg = UNWIND_X86_SP;
	rule.cfa_off = (unsigned char)name;
	rule.ra_off = -8;
	return rule;
}

static char name_of(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_GAP ? '.' : (char)rule->cfa_off;
}

static int add_rule(struct rows *rows, uint64_t vaddr, char name)
{
	struct unwind_rule rule = rule_of(name);

	return rows_add(rows, vaddr, &rule);
}

/* One range: a rule for every 16 bytes, '-' for "no row here". */
struct range {
	enum rows_source source;
	uint64_t at; /* from TEXT on */
	uint64_t size;
	const char *rules;
};

static int add_range(struct rows *rows, const struct range *range)
{
	int r = rows_begin(rows, range->source, TEXT + range->at, TEXT + range->at + range->size);

	for (size_t i = 0; !r && range->rules[i]; i++)
		if (range->rules[i] != '-')
			r = add_rule(rows, TEXT + range->at + 16 * i, range->rules[i]);
	if (r == ROWS_OUTSIDE)
		return r;
	if (r) {
		rows_drop(rows);
		return r;
	}
	return rows_end(rows);
}

/* "10A 20B 40.": offsets in hex. */
static void print_rows(const struct rows *rows, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < rows_count(rows); i++) {
		struct row row = rows_at(rows, i);

		n += (size_t)snprintf(ret + n, size - n, "%s%llx%c", i ? " " : "",
				      (unsigned long long)row.vaddr - TEXT,
				      name_of(rows_rule(rows, row.rule)));
		assert_true(n < size);
	}
}

static void check_next_gap(const struct rows *rows)
{
	size_t gap = rows_count(rows);

	while (gap-- > 0) {
		size_t i = gap;

		assert_int_equal(rows_at(rows, gap).rule, 0);
		for (; i > 0 && rows_at(rows, i - 1).rule; i--)
			assert_int_equal(rows_next_gap(rows, i), gap);
		assert_int_equal(rows_next_gap(rows, i), gap);
		gap = i;
	}
}

struct order_row {
	const char *name;
	struct range ranges[5];
	const char *expected;
};

static const struct order_row order_rows[] = {
	{"none", {{0}}, ""},
	{"one", {{ROWS_EH_FRAME, 0x10, 0x20, "AB"}}, "10A 20B 30."},
	{"equal neighbours", {{ROWS_EH_FRAME, 0x10, 0x30, "AAB"}}, "10A 30B 40."},
	{"nothing at the range's start", {{ROWS_EH_FRAME, 0x10, 0x20, "-B"}}, "10. 20B 30."},
	{"nothing at all", {{ROWS_EH_FRAME, 0x10, 0x20, ""}}, "10."},
	{"row behind the end", {{ROWS_EH_FRAME, 0x10, 0x10, "AB"}}, "10A 20."},
	{"side by side",
	 {{ROWS_EH_FRAME, 0x10, 0x10, "A"}, {ROWS_EH_FRAME, 0x20, 0x10, "B"}},
	 "10A 20B 30."},
	{"side by side, the same",
	 {{ROWS_EH_FRAME, 0x10, 0x10, "A"}, {ROWS_EH_FRAME, 0x20, 0x10, "A"}},
	 "10A 30."},
	{"padding of 15",
	 {{ROWS_EH_FRAME, 0x10, 0x1, "A"}, {ROWS_EH_FRAME, 0x20, 0x10, "B"}},
	 "10A 20B 30."},
	{"gap of 16",
	 {{ROWS_EH_FRAME, 0x10, 0x10, "A"}, {ROWS_EH_FRAME, 0x30, 0x10, "B"}},
	 "10A 20. 30B 40."},
	{"out of order",
	 {{ROWS_EH_FRAME, 0x50, 0x10, "C"},
	  {ROWS_EH_FRAME, 0x30, 0x10, "B"},
	  {ROWS_EH_FRAME, 0x10, 0x10, "A"}},
	 "10A 20. 30B 40. 50C 60."},
	{"out of order, side by side",
	 {{ROWS_EH_FRAME, 0x20, 0x10, "B"}, {ROWS_EH_FRAME, 0x10, 0x10, "A"}},
	 "10A 20B 30."},
	{"out of order, padding",
	 {{ROWS_EH_FRAME, 0x20, 0x10, "B"}, {ROWS_EH_FRAME, 0x10, 0x1, "A"}},
	 "10A 20B 30."},
	{"duplicate: the later",
	 {{ROWS_EH_FRAME, 0x10, 0x20, "AA"}, {ROWS_EH_FRAME, 0x10, 0x20, "BC"}},
	 "10B 20C 30."},
	{"the later has the middle",
	 {{ROWS_EH_FRAME, 0x10, 0x40, "ABCD"}, {ROWS_EH_FRAME, 0x28, 0x10, "Z"}},
	 "10A 20B 28Z 38C 40D 50."},
	{"the earlier has the middle: nothing of it",
	 {{ROWS_EH_FRAME, 0x20, 0x10, "Z"}, {ROWS_EH_FRAME, 0x10, 0x40, "ABCD"}},
	 "10A 20B 30C 40D 50."},
	{"staggered",
	 {{ROWS_EH_FRAME, 0x10, 0x30, "A"},
	  {ROWS_EH_FRAME, 0x20, 0x30, "B"},
	  {ROWS_EH_FRAME, 0x30, 0x30, "C"}},
	 "10A 20B 30C 60."},
	{"staggered downwards",
	 {{ROWS_EH_FRAME, 0x30, 0x30, "C"},
	  {ROWS_EH_FRAME, 0x20, 0x30, "B"},
	  {ROWS_EH_FRAME, 0x10, 0x30, "A"}},
	 "10A 40B 50C 60."},
	{"a lower source that comes later",
	 {{ROWS_SYNTHETIC, 0x20, 0x10, "Z"}, {ROWS_EH_FRAME, 0x10, 0x40, "ABCD"}},
	 "10A 20Z 30C 40D 50."},
	{"in the padding between two",
	 {{ROWS_EH_FRAME, 0x18, 0x8, "B"},
	  {ROWS_EH_FRAME, 0x10, 0x8, "A"},
	  {ROWS_EH_FRAME, 0x20, 0x8, "C"}},
	 "10A 18B 20C 28."},
	{"in a part of the padding",
	 {{ROWS_EH_FRAME, 0x19, 0x2, "B"},
	  {ROWS_EH_FRAME, 0x10, 0x8, "A"},
	  {ROWS_EH_FRAME, 0x20, 0x8, "C"}},
	 "10A 19B 20C 28."},
	{"every source",
	 {{ROWS_SYNTHETIC, 0x50, 0x10, "E"},
	  {ROWS_GO, 0x40, 0x20, "D"},
	  {ROWS_EH_FRAME, 0x30, 0x30, "C"},
	  {ROWS_DEBUG_FRAME, 0x20, 0x40, "B"},
	  {ROWS_CODE, 0x10, 0x50, "A"}},
	 "10A 20B 30C 40D 50E 60."},
	{"a gap that wins",
	 {{ROWS_EH_FRAME, 0x10, 0x30, "AAA"}, {ROWS_SYNTHETIC, 0x20, 0x10, "."}},
	 "10A 20. 30A 40."},
	{"the winner ends where two wait",
	 {{ROWS_EH_FRAME, 0x10, 0x60, "ABCDEF"},
	  {ROWS_EH_FRAME, 0x20, 0x30, "X"},
	  {ROWS_EH_FRAME, 0x20, 0x10, "Y"}},
	 "10A 20Y 30X 50E 60F 70."},
};

static void test_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(order_rows); i++) {
		_cleanup_(rows_freep) struct rows *rows = NULL;
		char text[256];

		row_begin(order_rows[i].name);
		assert_int_equal(rows_new(TEXT, TEXT + 0x1000, &rows), 0);
		for (size_t j = 0; j < 5 && order_rows[i].ranges[j].size; j++)
			assert_int_equal(add_range(rows, &order_rows[i].ranges[j]), 0);
		assert_int_equal(rows_finish(rows), 0);
		print_rows(rows, text, sizeof(text));
		assert_string_equal(text, order_rows[i].expected);
		check_next_gap(rows);
	}
}

/* Compared with painting every byte, over random ranges. */
static void test_against_bytes(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (int round = 0; round < 300; round++) {
		_cleanup_(rows_freep) struct rows *rows = NULL;
		char bytes[1024];
		int owner[1024];

		memset(bytes, '.', sizeof(bytes));
		memset(owner, -1, sizeof(owner));
		assert_int_equal(rows_new(TEXT, TEXT + sizeof(bytes), &rows), 0);
		for (int n = 0; n < 12; n++) {
			char rules[8] = "";
			struct range range = {.rules = rules};

			random = random * 6364136223846793005ull + 1442695040888963407ull;
			range.source = (random >> 60) % ROWS_SOURCE_MAX;
			range.at = (random >> 40) % (sizeof(bytes) / 16 - 8) * 16;
			range.size = 16 * (1 + (random >> 33) % 7);
			for (size_t i = 0; i < range.size / 16; i++)
				rules[i] = (char)('A' + (random >> (3 * i)) % 5);
			assert_int_equal(add_range(rows, &range), 0);
			for (size_t i = range.at; i < range.at + range.size; i++)
				if ((int)range.source >= owner[i]) {
					owner[i] = (int)range.source;
					bytes[i] = rules[(i - range.at) / 16];
				}
		}
		assert_int_equal(rows_finish(rows), 0);
		for (size_t i = 0; i < sizeof(bytes); i++) {
			size_t at = rows_find(rows, TEXT + i);
			char name = at == (size_t)-1
					    ? '.'
					    : name_of(rows_rule(rows, rows_at(rows, at).rule));

			assert_int_equal(name, bytes[i]);
		}
		for (size_t i = 1; i < rows_count(rows); i++) {
			assert_true(rows_at(rows, i - 1).vaddr < rows_at(rows, i).vaddr);
			assert_true(rows_at(rows, i - 1).rule != rows_at(rows, i).rule);
		}
	}
}

static void test_outside(void **state)
{
	static const struct {
		const char *name;
		uint64_t start, end;
		int expected;
	} ranges[] = {
		{"all of it", TEXT, TEXT + 0x1000, 0},
		{"below", TEXT - 1, TEXT + 1, ROWS_OUTSIDE},
		{"above", TEXT + 0xfff, TEXT + 0x1001, ROWS_OUTSIDE},
		{"empty", TEXT, TEXT, ROWS_OUTSIDE},
		{"backwards", TEXT + 2, TEXT + 1, ROWS_OUTSIDE},
		{"around", UINT64_MAX - 1, TEXT + 1, ROWS_OUTSIDE},
		{"last byte", TEXT + 0xfff, TEXT + 0x1000, 0},
	};
	_cleanup_(rows_freep) struct rows *rows = NULL, *wide = NULL;

	(void)state;
	assert_int_equal(rows_new(TEXT, TEXT + 0x1000, &rows), 0);
	for (size_t i = 0; i < array_size(ranges); i++) {
		row_begin(ranges[i].name);
		assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, ranges[i].start, ranges[i].end),
				 ranges[i].expected);
	}
	assert_int_equal(rows_new(TEXT, UINT64_MAX, &wide), 0);
	assert_int_equal(rows_begin(wide, ROWS_EH_FRAME, TEXT, TEXT + (1ull << 40) - 1), 0);
	assert_int_equal(rows_begin(wide, ROWS_EH_FRAME, TEXT, TEXT + (1ull << 40)), ROWS_OUTSIDE);
	assert_int_equal(rows_finish(wide), 0);
	assert_int_equal(rows_begin(wide, ROWS_EH_FRAME, TEXT, TEXT + 1), ROWS_OUTSIDE);
	assert_true(rows_find(wide, TEXT) == (size_t)-1);
}

static void test_replace(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	char text[64];

	(void)state;
	assert_int_equal(rows_new(TEXT, TEXT + 0x1000, &rows), 0);
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, TEXT, TEXT + 0x40), 0);
	assert_int_equal(add_rule(rows, TEXT, 'X'), 0);
	assert_int_equal(add_rule(rows, TEXT, 'A'), 0);
	assert_int_equal(add_rule(rows, TEXT + 0x10, 'B'), 0);
	/* back to the previous rule: two rows become one */
	assert_int_equal(add_rule(rows, TEXT + 0x10, 'A'), 0);
	assert_int_equal(add_rule(rows, TEXT + 0x20, 'C'), 0);
	assert_int_equal(rows_end(rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	print_rows(rows, text, sizeof(text));
	assert_string_equal(text, "0A 20C 40.");
}

/* A copy of finished rows has the same rows and rule numbers, and a later range fills a gap. */
static void test_copy(void **state)
{
	static const struct range ranges[] = {{ROWS_EH_FRAME, 0x10, 0x20, ".A"},
					      {ROWS_EH_FRAME, 0x40, 0x30, "B.C"}},
				  added = {ROWS_EH_FRAME, 0x30, 0x10, "D"};
	_cleanup_(rows_freep) struct rows *rows = NULL, *copy = NULL, *filled = NULL;
	char text[64];

	(void)state;
	assert_int_equal(rows_new(TEXT, TEXT + 0x1000, &rows), 0);
	for (size_t i = 0; i < array_size(ranges); i++)
		assert_int_equal(add_range(rows, &ranges[i]), 0);
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(rows_copy(rows, TEXT + 0x1000, &copy), 0);
	assert_int_equal(rows_finish(copy), 0);
	print_rows(copy, text, sizeof(text));
	assert_string_equal(text, "20A 30. 40B 50. 60C 70.");
	for (size_t i = 0; i < rows_count(copy); i++)
		assert_memory_equal(rows_rule(copy, rows_at(copy, i).rule),
				    rows_rule(rows, rows_at(copy, i).rule),
				    sizeof(struct unwind_rule));
	assert_int_equal(rows_copy(copy, TEXT + 0x1000, &filled), 0);
	assert_int_equal(add_range(filled, &added), 0);
	assert_int_equal(rows_finish(filled), 0);
	print_rows(filled, text, sizeof(text));
	assert_string_equal(text, "20A 30D 40B 50. 60C 70.");
}

static void test_drop(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	char text[64];

	(void)state;
	assert_int_equal(rows_new(TEXT, TEXT + 0x1000, &rows), 0);
	assert_int_equal(add_range(rows, &(struct range){ROWS_EH_FRAME, 0x10, 0x10, "A"}), 0);
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, TEXT + 0x20, TEXT + 0x30), 0);
	assert_int_equal(add_rule(rows, TEXT + 0x20, 'B'), 0);
	rows_drop(rows);
	assert_int_equal(add_range(rows, &(struct range){ROWS_EH_FRAME, 0x40, 0x10, "C"}), 0);
	assert_int_equal(rows_finish(rows), 0);
	print_rows(rows, text, sizeof(text));
	assert_string_equal(text, "10A 20. 40C 50.");
}

/* ---------------------------------------------------------------- ceilings */

static void test_too_many_rules(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	size_t n = 0;

	(void)state;
	assert_int_equal(rows_new(0, 1 << 20, &rows), 0);
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, 0, ROWS_RULES_MAX + 10), 0);
	for (int32_t i = 0; i < (int32_t)ROWS_RULES_MAX + 10; i++) {
		struct unwind_rule rule = {.cfa = UNWIND_CFA_REG, .cfa_off = i};

		assert_int_equal(rows_add(rows, (uint64_t)i, &rule), 0);
	}
	assert_int_equal(rows_end(rows), 0);
	/* known rules stay */
	assert_int_equal(
		rows_begin(rows, ROWS_EH_FRAME, ROWS_RULES_MAX + 100, ROWS_RULES_MAX + 101), 0);
	assert_int_equal(add_rule(rows, ROWS_RULES_MAX + 100, '.'), 0);
	assert_int_equal(rows_end(rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(rows_n_rules(rows), ROWS_RULES_MAX);
	for (size_t i = 0; i < rows_count(rows); i++) {
		struct row row = rows_at(rows, i);
		const struct unwind_rule *rule = rows_rule(rows, row.rule);

		if (rule->cfa == UNWIND_CFA_REG)
			assert_int_equal(rule->cfa_off, row.vaddr);
		n += rule->cfa == UNWIND_CFA_UNSUPPORTED &&
		     rule->cfa_off == UNSUPPORTED_TOO_MANY_RULES;
	}
	/* all the rest is one row */
	assert_int_equal(n, 1);
	/* the gap and the excuse are rules too */
	assert_int_equal(rows_count(rows), ROWS_RULES_MAX - 2 + 2);
}

static void test_full(void **state)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	int r = 0;

	(void)state;
	assert_int_equal(rows_new(0, UINT32_MAX, &rows), 0);
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, 0, ROWS_MAX + 10), 0);
	for (uint64_t i = 0; i < ROWS_MAX && !r; i++)
		r = add_rule(rows, i, i % 2 ? 'A' : 'B');
	assert_int_equal(r, 0);
	assert_int_equal(add_rule(rows, ROWS_MAX, 'C'), ROWS_FULL);
	rows_drop(rows);
	assert_int_equal(add_range(rows, &(struct range){ROWS_EH_FRAME, 0, 0x10, "A"}), 0);
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(rows_count(rows), 2);
}

static int build(void *ctx)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	int r = rows_new(TEXT, TEXT + 0x100000, &rows);

	(void)ctx;
	/* enough rules, rows and spans for each array to grow again */
	for (uint64_t i = 0; !r && i < 200; i++) {
		r = rows_begin(rows, ROWS_EH_FRAME, TEXT + 0x100 * (200 - i),
			       TEXT + 0x100 * (200 - i) + 16);
		for (int32_t j = 0; !r && j < 2; j++) {
			struct unwind_rule rule = {.cfa = UNWIND_CFA_REG,
						   .cfa_off = (int32_t)i * 2 + j};

			r = rows_add(rows, TEXT + 0x100 * (200 - i) + 8 * (uint64_t)j, &rule);
		}
		if (r)
			rows_drop(rows);
		else
			r = rows_end(rows);
	}
	if (!r)
		r = rows_finish(rows);
	if (!r)
		assert_int_equal(rows_count(rows), 600);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	/* shrinking may fail */
	assert_true(allocfail_survive(build, NULL) > 10);
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 1; i < UNSUPPORTED_MAX; i++)
		assert_non_null(rows_unsupported_name(i));
	assert_string_equal(rows_unsupported_name(0), "unknown");
	assert_string_equal(rows_unsupported_name(UNSUPPORTED_MAX), "unknown");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	       cmocka_unit_test(test_against_bytes),
		cmocka_unit_test(test_outside),	       cmocka_unit_test(test_replace),
		cmocka_unit_test(test_copy),	       cmocka_unit_test(test_drop),
		cmocka_unit_test(test_too_many_rules), cmocka_unit_test(test_full),
		cmocka_unit_test(test_no_memory),      cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
