// SPDX-License-Identifier: Apache-2.0
/* The walk with the plan and the step of V8, over a made-up stack: x86-64's code and registers, on
 * any machine. */
#undef __TARGET_ARCH_arm64
#define __TARGET_ARCH_x86
#include "support/v8stack.h"

/* A function's code. */
static const uint8_t code[] = {
	0x55,			/* 0: push %rbp */
	0x48, 0x89, 0xe5,	/* 1: mov %rsp,%rbp */
	0x56,			/* 4: push %rsi */
	0x57,			/* 5: push %rdi */
	0x50,			/* 6: push %rax */
	0x90,			/* 7: body */
	0x48, 0x8b, 0xe5,	/* 8: mov %rbp,%rsp */
	0x5d,			/* 11: pop %rbp */
	0x48, 0x83, 0xf9, 0x01, /* 12: cmp $1,%rcx */
	0x7f, 0x03,		/* 16: jg */
	0xc2, 0x08, 0x00,	/* 18: ret $8 */
	0xc3,			/* 21: ret */
};

/* ---------------------------------------------------------------- compiled code */

struct row {
	const char *name;
	uint64_t off; /* of the code */
	uint64_t sp, fp;
	const char *want;
};

static const struct row rows[] = {
	{"before the push", 0, FP + 8, CALLER_FP, "LCn"},
	{"behind the push", 1, FP, CALLER_FP, "LCn"},
	{"behind the mov", 4, FP, FP, "LCn"},
	{"context pushed", 5, FP - 8, FP, "LCn"},
	{"function pushed", 6, FP - 16, FP, "LCn"},
	{"in the body", 7, FP - 64, FP, "LCn"},
	{"before the mov", 8, FP - 64, FP, "LCn"},
	{"before the pop", 11, FP, FP, "LCn"},
	{"behind the pop", 12, FP + 8, CALLER_FP, "LCn"},
	{"at the jump", 16, FP + 8, CALLER_FP, "LCn"},
	{"before the return", 18, FP + 8, CALLER_FP, "LCn"},
	{"before another return", 21, FP + 8, CALLER_FP, "LCn"},
};

static void test_compiled(void **state)
{
	struct walked w;
	uint32_t place;
	char got[64];

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *row = &rows[i];

		row_begin(row->name);
		build(code, sizeof(code));
		/* not written yet */
		if (row->off < 5)
			put_word(FP - 8, CONTEXT + 2);
		if (row->off < 6)
			put_word(FP - 16, INNATE + 1);
		walk_from(&(struct walk_start){STEP, .pc = CODE + row->off, .sp = row->sp,
					       .fp = row->fp, .rdi = LEAF + 1},
			  &w);
		spell(&w, got, &place);
		assert_string_equal(got, row->want);
		assert_int_equal(place, 0);
		assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);
	}
}

/* ---------------------------------------------------------------- others */

struct other_row {
	const char *name;
	uint64_t pc;
	uint64_t addr[3];
	uint64_t word[3];
	const char *want;
	uint32_t place;
};

static const struct other_row other_rows[] = {
	{"a frame of another type", CODE + 7, {FP - 8}, {10ull << 32}, "nCn", 0},
	{"no function", CODE + 7, {FP - 16}, {2}, "nCn", 0},
	{"a function elsewhere", CODE + 7, {FP - 16}, {0x12345671}, "nuCn", 0},
	{"no shared part", CODE + 7, {LEAF + 24}, {8}, "noCn", 0},
	{"a shared part elsewhere", CODE + 7, {LEAF + 24}, {0x12345671}, "nuCn", 0},
	{"a script elsewhere", CODE + 7, {LEAF + 0x60}, {0x12345671}, "nuCn", 0},
	{"scripts elsewhere",
	 CODE + 7,
	 {LEAF + 0x60, CALLER + 0x60},
	 {0x12345671, 0x12345671},
	 "nunun",
	 0},
	{"no script", CODE + 7, {LEAF + 0x60, CALLER + 0x60}, {0, 0}, "LCn", 0},
	{"a helper", BUILTIN + 8, {0}, {0}, "nLCn", 0},
	{"a helper at its return",
	 BUILTIN + 8,
	 {BUILTIN + 8, FP - 64},
	 {0xc3, CODE + 8},
	 "nLCn",
	 0},
	{"a handler of a bytecode",
	 BUILTIN + 8,
	 {FP - 32, FP - 40},
	 {BYTECODE + 1, 60ull << 32},
	 "nLCn",
	 60},
	{"a builtin that is the function", BUILTIN + 8, {FP - 16}, {INNATE + 1}, "ICn", 0},
	{"an interpreted caller",
	 CODE + 7,
	 {CALLER_FP - 32, CALLER_FP - 40, FP + 8},
	 {BYTECODE + 1, 70ull << 32, BUILTIN + 16},
	 "LCn",
	 70},
	{"bytecode of another function",
	 BUILTIN + 8,
	 {FP - 32, FP - 40},
	 {CONTEXT + 1, 60ull << 32},
	 "nLCn",
	 0},
	{"an offset that is none", BUILTIN + 8, {FP - 32, FP - 40}, {BYTECODE + 1, 61}, "nLCn", 0},
};

static void test_others(void **state)
{
	struct walked w;
	uint32_t place;
	char got[64];

	(void)state;
	for (size_t i = 0; i < array_size(other_rows); i++) {
		const struct other_row *row = &other_rows[i];

		row_begin(row->name);
		build(code, sizeof(code));
		for (size_t k = 0; k < array_size(row->addr) && row->addr[k]; k++)
			put_word(row->addr[k], row->word[k]);
		walk_from(&(struct walk_start){STEP, .pc = row->pc, .sp = FP - 64, .fp = FP}, &w);
		spell(&w, got, &place);
		assert_string_equal(got, row->want);
		assert_int_equal(place, row->place);
		assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);
	}
}

/* ---------------------------------------------------------------- ids of functions */

/* Reads of the walk over LEAF and CALLER, whose frames are right. */
static size_t count_reads(void)
{
	struct walked w;
	uint32_t place;
	char got[64];

	n_reads = 0;
	walk_from(&(struct walk_start){STEP, .pc = CODE + 7, .sp = FP - 64, .fp = FP}, &w);
	spell(&w, got, &place);
	assert_string_equal(got, "LCn");
	return n_reads;
}

/* The id of a function saves the read of its script's, and so does a neighbour of the same script.
 */
static void test_ids(void **state)
{
	size_t of_functions, of_script, of_scripts;

	(void)state;
	build(code, sizeof(code));
	process.shared_id = 56;
	of_functions = count_reads();
	process.shared_id = 0;
	of_script = count_reads();
	put_word(CALLER + 0x60, OTHER + 1);
	of_scripts = count_reads();
	assert_int_equal(of_script, of_functions + 1);
	assert_int_equal(of_scripts, of_functions + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
