// SPDX-License-Identifier: Apache-2.0
/* The walk with the plan and the step of V8, over a made-up stack: arm64's code and registers, on
 * any machine. */
#undef __TARGET_ARCH_x86
#define __TARGET_ARCH_arm64
#include "support/v8stack.h"

/* A function's code. */
static const uint32_t code[] = {
	0xf85f8050, /* 0: ldur x16, [x2, #-8] */
	0xb8435210, /* ldur w16, [x16, #53] */
	0x36000070, /* tbz w16, #0, . + 12 */
	0x58000ef1, /* ldr x17, . + 476 */
	0xd61f0220, /* br x17 */
	0xa9bf7bfd, /* 5: stp fp, lr, [sp, #-16]! */
	0x910003fd, /* 6: mov fp, sp */
	0xa9be03ff, /* 7: stp xzr, x0, [sp, #-32]! */
	0xa9016fe1, /* 8: stp x1, cp, [sp, #16] */
	0xd10083ff, /* 9: sub sp, sp, #32 */
	0xd503201f, /* 10: body */
	0x910003bf, /* 11: mov sp, fp */
	0xa8c17bfd, /* 12: ldp fp, lr, [sp], #16 */
	0xf100087f, /* 13: cmp x3, #2 */
	0x5400004a, /* b.ge . + 8 */
	0xd2800043, /* mov x3, #2 */
	0x91000470, /* add x16, x3, #1 */
	0x927ffa10, /* and x16, x16, #~1 */
	0x8b306fff, /* 18: add sp, sp, x16, lsl #3 */
	0xd65f03c0, /* 19: ret */
	0xd503201f, /* 20: other code */
};
#define AT(insn) (CODE + 4ull * (insn))

/* Baseline code: the rest of the frame is made by a builtin. */
static const uint32_t baseline[] = {
	0xa9bf7bfd, /* stp fp, lr, [sp, #-16]! */
	0x910003fd, /* mov fp, sp */
	0xd2800b02, /* mov x2, #88 */
	0x58001c74, /* ldr x20, . + 908 */
};

/* A builtin makes the frame in other steps. */
static const uint32_t builtin[] = {
	0xa9bf7bfd, /* stp fp, lr, [sp, #-16]! */
	0x910003fd, /* mov fp, sp */
	0xa9bf6fe1, /* stp x1, cp, [sp, #-16]! */
};

/* ---------------------------------------------------------------- beginning and end */

struct row {
	const char *name;
	const void *code;
	size_t n;
	uint64_t pc;
	uint64_t sp, fp;
	bool in_lr;	/* the return address */
	bool is_stored; /* the function's word of the frame */
	const char *want;
};

#define OF(code) code, sizeof(code)

static const struct row rows[] = {
	{"at the check", OF(code), AT(0), FP + 16, CALLER_FP, true, false, "LCn"},
	{"in the check", OF(code), AT(2), FP + 16, CALLER_FP, true, false, "LCn"},
	{"at the end of the check", OF(code), AT(4), FP + 16, CALLER_FP, true, false, "LCn"},
	{"before the push", OF(code), AT(5), FP + 16, CALLER_FP, true, false, "LCn"},
	{"behind the push", OF(code), AT(6), FP, CALLER_FP, false, false, "LCn"},
	{"behind the mov", OF(code), AT(7), FP, FP, false, false, "LCn"},
	{"arguments pushed", OF(code), AT(8), FP - 32, FP, false, false, "LCn"},
	{"function stored", OF(code), AT(9), FP - 32, FP, false, true, "LCn"},
	{"in the body", OF(code), AT(10), FP - 64, FP, false, true, "LCn"},
	{"before the mov", OF(code), AT(11), FP - 64, FP, false, true, "LCn"},
	{"before the pop", OF(code), AT(12), FP, FP, false, true, "LCn"},
	{"behind the pop", OF(code), AT(13), FP + 16, CALLER_FP, true, true, "LCn"},
	{"before the arguments' end", OF(code), AT(18), FP + 16, CALLER_FP, true, true, "LCn"},
	/* the frame is not known any more */
	{"before the return", OF(code), AT(19), FP + 48, CALLER_FP, true, true, "nCn"},
	{"behind the return", OF(code), AT(20), FP - 64, FP, false, true, "LCn"},
	{"baseline, before the push", OF(baseline), AT(0), FP + 16, CALLER_FP, true, false, "LCn"},
	{"baseline, behind the push", OF(baseline), AT(1), FP, CALLER_FP, false, false, "LCn"},
	{"baseline, behind the mov", OF(baseline), AT(2), FP, FP, false, false, "LCn"},
	{"builtin's frame, behind the mov", OF(builtin), AT(2), FP, FP, false, false, "LCn"},
};

static void test_edges(void **state)
{
	struct walked w;
	uint32_t place;
	char got[64];

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *row = &rows[i];

		row_begin(row->name);
		build(row->code, row->n);
		if (!row->is_stored) {
			put_word(FP - 8, CONTEXT + 2);
			put_word(FP - 16, INNATE + 1);
		}
		if (row->in_lr)
			put_word(FP + 8, 0);
		walk_from(&(struct walk_start){STEP, .pc = row->pc, .sp = row->sp, .fp = row->fp,
					       .x1 = LEAF + 1,
					       .x30 = row->in_lr ? CODE + 8 : NATIVE + 9},
			  &w);
		spell(&w, got, &place);
		assert_string_equal(got, row->want);
		assert_int_equal(place, 0);
		assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);
	}
}

/* ---------------------------------------------------------------- the entry */

/* Above the frame record of the entry are registers, so only the frame pointer leads on. */
static void test_entry(void **state)
{
	static const uint64_t markers[] = {2, 4};
	struct walked w;
	uint32_t place;
	char got[64];

	(void)state;
	for (size_t i = 0; i < array_size(markers); i++) {
		build(code, sizeof(code));
		put_word(CALLER_FP - 8, markers[i]);
		put_word(FP + 8, BUILTIN + 8);
		walk_from(&(struct walk_start){STEP, .pc = AT(10), .sp = FP - 64, .fp = FP}, &w);
		spell(&w, got, &place);
		assert_string_equal(got, "Lnn");
		assert_int_equal(w.walk.sp_known, 0);
		assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);
	}
}

/* At its end the entry gives back the frame pointer first, and then these registers. */
static void test_end_of_entry(void **state)
{
	static const uint32_t end[] = {
		0x910083ff, /* add sp, sp, #32 */
		0xa8c17bfd, /* ldp fp, lr, [sp], #16 */
		0xa8c153f3, /* ldp x19, x20, [sp], #16 */
		0xa8c15bf5, /* ldp x21, x22, [sp], #16 */
		0xd65f03c0, /* ret */
	};
	struct walked w;
	uint32_t place;
	char got[64];

	(void)state;
	for (uint64_t i = 2; i < array_size(end); i++) {
		build(code, sizeof(code));
		put(BUILTIN, end, sizeof(end));
		walk_from(&(struct walk_start){STEP, .pc = BUILTIN + 4 * i, .sp = FP + 16 * i,
					       .fp = NATIVE_FP, .x30 = NATIVE + 9},
			  &w);
		spell(&w, got, &place);
		assert_string_equal(got, "nn");
		assert_int_equal(w.walk.sp_known, 0);
		assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_entry),
		cmocka_unit_test(test_end_of_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
