// SPDX-License-Identifier: Apache-2.0
/* The walk with the plan and the step of HotSpot over arm64's code and registers, on any machine.
 * test_hotspot has what does not depend on the machine. Native frames are found by frame pointer.
 */
#undef __TARGET_ARCH_x86
#define __TARGET_ARCH_arm64
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define WALK_RUNTIMES
#include "support/walkbuilt.h"

#define STACK	 0x7ffc00000000ull
#define HEAP	 0x600000000000ull
#define SEGMENTS 0x610000000000ull
#define METHODS	 0x620000000000ull
#define NATIVE	 0x400000ull
#define SIGNED	 (0x3aull << 48)

#define HEADER	    16
/* Blobs, by their first segment. */
#define BLOB(n)	    (HEAP + ((n) << 7) + HEADER)
#define SMALL	    BLOB(0ull)
#define LARGE	    BLOB(4ull)
#define CALLER	    BLOB(8ull)
#define STUB	    BLOB(1024ull)
#define INTERPRETER BLOB(2048ull)
#define ENTRY	    (INTERPRETER + CODE + 0x100)
#define BODY	    (INTERPRETER + CODE + 0x400)
#define CODE	    64ull /* from the blob */
#define METHOD	    (METHODS + 0x100)
#define CONST	    (METHODS + 0x200)
#define CONSTANTS   (METHODS + 0x300)
#define HOLDER	    (METHODS + 0x400)
#define SYMBOL	    (METHODS + 0x500)

/* Of compiled code, in the order of its instructions. */
enum part { LEFT, KEPT, WHOLE, PUSHED, RECORD };

struct insn {
	uint32_t code;
	enum part part; /* of the frame that is there before the instruction */
};

#define WORDS 6
static const struct insn small[] = {
	{0xd14053e9, LEFT},   /* sub x9,sp,#20,lsl #12 */
	{0xf900013f, LEFT},   /* str xzr,[x9] */
	{0xd100c3ff, LEFT},   /* sub sp,sp,#48 */
	{0xa9027bfd, KEPT},   /* stp x29,x30,[sp,#32] */
	{0x18000008, WHOLE},  /* ldr w8,n: the check of a barrier */
	{0xd63f0100, WHOLE},  /* blr x8 */
	{0xd503201f, WHOLE},  /* nop: complete */
	{0x94000010, WHOLE},  /* bl */
	{0xa9bf07e0, WHOLE},  /* stp x0,x1,[sp,#-16]! */
	{0xa8c107e0, PUSHED}, /* ldp x0,x1,[sp],#16 */
	{0xa9427bfd, WHOLE},  /* ldp x29,x30,[sp,#32] */
	{0x9100c3ff, KEPT},   /* add sp,sp,#48 */
	{0xf941a388, LEFT},   /* ldr x8,[x28,#832] */
	{0xeb2863ff, LEFT},   /* cmp sp,x8 */
	{0x54000048, LEFT},   /* b.hi */
	{0xd65f03c0, LEFT},   /* ret */
	{0xd503201f, WHOLE},  /* nop */
	{0xa9427bfd, WHOLE},  /* ldp x29,x30,[sp,#32] */
	{0x9100c3ff, KEPT},   /* add sp,sp,#48 */
	{0x14000000, LEFT},   /* b: of an exception */
	{0x10ffff88, LEFT},   /* adr x8,n */
	{0xf901af88, LEFT},   /* str x8,[x28,#856] */
	{0x14000000, LEFT},   /* b */
	{0x10ffff88, LEFT},   /* adr x8,n */
	{0xf901af88, LEFT},   /* str x8,[x28,#856] */
	{0x90000008, LEFT},   /* adrp x8,n */
	{0x91000108, LEFT},   /* add x8,x8,#0 */
	{0xd61f0100, LEFT},   /* br x8 */
	{0x10ffff88, WHOLE},  /* adr x8,n: a call of the virtual machine */
	{0xf9014f88, WHOLE},  /* str x8,[x28,#664] */
	{0x910003e8, WHOLE},  /* mov x8,sp */
};
#define COMPLETE (6 * 4)

static const struct insn large[] = {
	{0xd503201f, LEFT},   /* nop */
	{0xa9bf7bfd, LEFT},   /* stp x29,x30,[sp,#-16]! */
	{0xd2808208, RECORD}, /* mov x8,#n */
	{0xcb2863ff, RECORD}, /* sub sp,sp,x8 */
	{0xd503201f, WHOLE},  /* nop */
	{0xd503201f, WHOLE},  /* nop: complete */
	{0xd2808208, WHOLE},  /* mov x8,#n */
	{0x8b2863ff, WHOLE},  /* add sp,sp,x8 */
	{0xa8c17bfd, RECORD}, /* ldp x29,x30,[sp],#16 */
	{0xd65f03c0, LEFT},   /* ret */
	{0xd503201f, WHOLE},  /* nop */
};

/* Of each walk. */
#define STEP .step = &hotspot_walk, .mode = SETTINGS_UNWIND_AUTO

#define REGION_WORDS 0x12000
static struct region {
	uint64_t start;
	uint64_t words[REGION_WORDS];
} stack = {STACK, {0}}, heap = {HEAP, {0}}, segments = {SEGMENTS, {0}}, methods = {METHODS, {0}};
static struct region *const regions[] = {&stack, &heap, &segments, &methods};

static const struct hotspot_process process = {
	.low = HEAP,
	.limit = HEAP + (REGION_WORDS * 8),
	.interpreter = INTERPRETER + CODE,
	.interpreter_limit = INTERPRETER + CODE + 0x1000,
	.entry = ENTRY,
	.entry_limit = ENTRY + 0x100,
	.heaps = {{HEAP, HEAP + (REGION_WORDS * 8), SEGMENTS}},
	.segment_shift = 7,
	.block_header = HEADER,
	.frame_bcp = 72,
	.blob_size = 12,
	.blob_complete = 16,
	.blob_code = 20,
	.blob_method = 24,
	.blob_compile_id = 32,
	.blob_bytes = 32,
	.method_const = 8,
	.const_constants = 8,
	.const_names = 24,
	.const_code = 40,
	.name_index = 2,
	.pool_holder = 24,
	.pool_entries = 32,
	.class_name = 16,
	.symbol_n = 4,
	.symbol_text = 6,
	.symbol_kept = ~0xffffull,
	.complete_is_short = 1,
	.code_is_distance = 1,
	.entry_sender = 19,
	.made = {{0x20 / 4, 0x40 / 4}, {0x60 / 4, 0x100 / 4}},
};

#include "support/walkregions.h"

static void put_insn(uint64_t address, uint32_t insn)
{
	put(address, &insn, sizeof(insn));
}

WALK_INLINE const struct v8_process *v8_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

WALK_INLINE const struct hotspot_process *hotspot_process_of(const struct walk_ctx *c)
{
	(void)c;
	return &process;
}

WALK_INLINE const struct python_process *python_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

/* ---------------------------------------------------------------- building */

static void put_blob(uint64_t blob, int32_t words, int16_t complete, const struct insn *code,
		     size_t n)
{
	const int32_t distance = CODE;

	put(blob + 12, &words, 4);
	put(blob + 16, &complete, 2);
	put(blob + 20, &distance, 4);
	for (size_t i = 0; i < n; i++)
		put_insn(blob + CODE + i * 4, code[i].code);
}

static void put_segments(uint64_t blob, uint8_t n)
{
	for (uint8_t i = 0; i < n; i++)
		put(SEGMENTS + ((blob - HEAP) >> 7) + i, &i, 1);
}

static void build(void)
{
	for (size_t i = 0; i < array_size(regions); i++)
		memset(regions[i]->words, 0, sizeof(regions[i]->words));
	memset(segments.words, 0xff, sizeof(segments.words));
	put_blob(SMALL, WORDS, COMPLETE, small, array_size(small));
	put_blob(LARGE, WORDS, 20, large, array_size(large));
	put_blob(CALLER, 4, COMPLETE, small, array_size(small));
	put_blob(STUB, 0, -1, NULL, 0);
	put_segments(SMALL, 4);
	put_segments(LARGE, 4);
	put_segments(CALLER, 4);
	put_segments(STUB, 64);
	put_segments(INTERPRETER, 64);
	put_word(METHOD + 8, CONST);
	put_word(CONST + 8, CONSTANTS);
	put_word(CONST + 24, 0x0001000200030004ull);
	put_word(CONSTANTS + 24, HOLDER);
	put_word(CONSTANTS + 32 + 3 * 8, SYMBOL);
	put_word(HOLDER + 16, SYMBOL);
}

/* A letter for each frame: S(mall), L(arge), c(aller), s(tub), I(nterpreted), i: the interpreter's
 * own code, n(ative), b(roken). */
static void spell(const struct walked *w, char *ret)
{
	struct frame_record f;

	for (__u32 k = 0; k < w->walk.n; k += f.n_words) {
		assert_true(frame_decode(w->frames + k, w->walk.n - k, &f) > 0);
		*ret++ = f.kind == FRAME_BROKEN	     ? 'b'
			 : f.kind != FRAME_RUNTIME   ? 'n'
			 : f.words[0] == SMALL	     ? 'S'
			 : f.words[0] == LARGE	     ? 'L'
			 : f.words[0] == CALLER	     ? 'c'
			 : f.words[0] == STUB	     ? 's'
			 : f.words[0] == METHOD	     ? 'I'
			 : f.words[0] == INTERPRETER ? 'i'
						     : '?';
	}
	*ret = 0;
}

/* The return address into the caller, behind its bl. */
#define ADDRESS (CALLER + CODE + 8 * 4)
/* The native caller's frame record. */
#define OUTER	(STACK + 0x800)

/* The caller's frame, with its sp at @sp. */
static void put_caller(uint64_t sp)
{
	put_word(sp + 32 - 8, NATIVE + 1);
	put_word(sp + 32 - 16, OUTER);
}

static void check(const struct walk_start *at, const char *want)
{
	struct walked w;
	char got[64];

	walk_from(at, &w);
	spell(&w, got);
	assert_string_equal(got, want);
	assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);
}

/* ---------------------------------------------------------------- compiled code */

static void check_part(uint64_t pc, enum part part, const char *want)
{
	static const uint64_t bytes[] = {0, WORDS * 8, WORDS * 8, WORDS * 8 + 16, 16};
	const bool in_register = part == LEFT || part == KEPT;
	const struct walk_start at = {STEP, .pc = pc, .sp = STACK, .fp = in_register ? OUTER : 1,
				      .x30 = in_register ? ADDRESS | SIGNED : NATIVE};

	build();
	put_word(STACK + bytes[part] - 8, in_register ? NATIVE : ADDRESS | SIGNED);
	put_word(STACK + bytes[part] - 16, in_register ? 1 : OUTER);
	put_caller(STACK + bytes[part]);
	check(&at, want);
}

static void test_compiled(void **state)
{
	char name[32];

	(void)state;
	for (size_t i = 0; i < array_size(small); i++) {
		snprintf(name, sizeof(name), "small, %zu", i);
		row_begin(name);
		check_part(SMALL + CODE + i * 4, small[i].part, "Scn");
	}
	for (size_t i = 0; i < array_size(large); i++) {
		snprintf(name, sizeof(name), "large, %zu", i);
		row_begin(name);
		check_part(LARGE + CODE + i * 4, large[i].part, "Lcn");
	}
}

/* ---------------------------------------------------------------- stubs */

#define IN_STUB (STUB + CODE + 0x100)

static void test_stub(void **state)
{
	static const struct {
		const char *name;
		uint32_t before, insn;
		uint64_t fp, x30;
	} rows[] = {
		{"a leaf", 0, 0, OUTER, ADDRESS},
		{"before the frame pointer", 0xa9bf7bfd, 0x910003fd, OUTER, ADDRESS},
		{"with a record", 0, 0, STACK + 0x40, ADDRESS},
		{"after a call", 0, 0, STACK + 0x40, IN_STUB - 16},
		{"a register of its own", 0, 0, STACK + 0x40, 7},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct walk_start at = {STEP, .pc = IN_STUB, .sp = STACK, .fp = rows[i].fp,
					      .x30 = rows[i].x30};
		uint64_t sender = STACK;

		row_begin(rows[i].name);
		build();
		put_insn(IN_STUB - 20, 0xd63f0100); /* blr x8 */
		put_insn(IN_STUB - 4, rows[i].before);
		put_insn(IN_STUB, rows[i].insn);
		if (rows[i].before || rows[i].fp != OUTER) {
			const uint64_t record = rows[i].before ? STACK : rows[i].fp;

			put_word(record, OUTER);
			put_word(record + 8, ADDRESS);
			sender = record + 16;
		}
		put_caller(sender);
		check(&at, "scn");
	}
}

/* ---------------------------------------------------------------- interpreted code */

#define SENDER (STACK + 0x140)
#define MADE   (STACK + 0x100)

static void test_entry(void **state)
{
	static const struct {
		const char *name;
		uint64_t at, fp, x30, method, sender; /* words of the frame */
	} rows[] = {
		{"not made", 0x1c, OUTER, ADDRESS, NATIVE, NATIVE},
		{"the next", 0x5c, OUTER, ADDRESS, NATIVE, NATIVE},
		{"not made, an odd frame pointer", 0x40, 1, ADDRESS, NATIVE, NATIVE},
		{"made, without the sender", 0x20, MADE, ADDRESS, METHOD, STACK},
		{"made", 0x60, MADE, ADDRESS, METHOD, SENDER},
		{"after a call", 0xfc, MADE, ENTRY + 0x80, METHOD, SENDER},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct walk_start at = {STEP,
					      .pc = ENTRY + rows[i].at,
					      .sp = STACK,
					      .fp = rows[i].fp,
					      .x12 = METHOD,
					      .x19 = SENDER,
					      .x30 = rows[i].x30};

		row_begin(rows[i].name);
		build();
		put_word(MADE - 72, CONST + 40);
		put_word(MADE - 24, rows[i].method);
		put_word(MADE - 8, rows[i].sender);
		put_word(MADE, OUTER);
		put_word(MADE + 8, ADDRESS);
		put_caller(SENDER);
		check(&at, "Icn");
	}
}

/* The frame of an interpreted caller with the same method and the same return address is none of
 * the method under way; and the sp of the caller is below the frame. */
static void test_recursion(void **state)
{
	struct walk_start at = {STEP,	       .pc = ENTRY + 0x1c, .sp = STACK,	   .fp = MADE,
				.x12 = METHOD, .x19 = STACK,	   .x30 = BODY + 4};

	(void)state;
	build();
	put_word(MADE - 72, CONST + 40 + 7);
	put_word(MADE - 24, METHOD);
	put_word(MADE - 8, SENDER);
	put_word(MADE, OUTER);
	put_word(MADE + 8, ADDRESS);
	put_caller(SENDER);
	check(&at, "IIcn");
	put_word(STACK + 0x60, MADE);
	put_word(STACK + 0x68, BODY + 4);
	at.pc = ENTRY + 0x20;
	at.fp = STACK + 0x60;
	check(&at, "IIcn");
}

/* mov sp,x29; ldp x29,x30,[sp],#16; strb wzr,[x28,#966]; mov x20,x9; and sp,x20,#-16; ret */
static void test_return(void **state)
{
	static const uint32_t code[] = {0x910003bf, 0xa8c17bfd, 0x390f1b9f,
					0xaa0903f4, 0x927cee9f, 0xd65f03c0};

	(void)state;
	for (size_t i = 2; i < array_size(code); i++) {
		const struct walk_start at = {
			STEP,	       .pc = BODY + i * 4,	     .sp = i < 5 ? STACK : SENDER,
			.fp = OUTER,   .x9 = i < 4 ? SENDER + 8 : 1, .x20 = i < 4 ? 1 : SENDER + 8,
			.x30 = ADDRESS};

		build();
		for (size_t k = 0; k < array_size(code); k++)
			put_insn(BODY + k * 4, code[k]);
		put_caller(SENDER);
		check(&at, "icn");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compiled), cmocka_unit_test(test_stub),
		cmocka_unit_test(test_entry),	 cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
