// SPDX-License-Identifier: Apache-2.0
/* The walk with the plan and the step of V8, over a made-up stack. x86-64's code and registers. */
#include "support/test.h"

#include <string.h>

#define WALK_RUNTIMES
#include "support/walkbuilt.h"

#define STACK	0x7ffc00000000ull
#define TEXT	0x500000000000ull
#define CODE	(TEXT + 0x10)
#define OBJECTS 0x600000000000ull
#define NATIVE	0x400000ull
#define BUILTIN (CODE + 0x800)

/* Functions: a JSFunction, and its SharedFunctionInfo 0x40 further. */
#define LEAF	 (OBJECTS + 0x100)
#define CALLER	 (OBJECTS + 0x200)
#define INNATE	 (OBJECTS + 0x300) /* is a builtin itself */
#define BYTECODE (OBJECTS + 0x400)
#define CONTEXT	 (OBJECTS + 0x500)
#define SCRIPT	 (OBJECTS + 0x600)
#define ID	 (9ull << 32) /* the script's */

/* Frame pointers. */
#define FP	  (STACK + 0x200)
#define CALLER_FP (STACK + 0x300)
#define NATIVE_FP (STACK + 0x400)

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

/* Of each walk. */
#define STEP .step = &v8_walk, .mode = SETTINGS_UNWIND_AUTO

#define REGION_WORDS 0x200
static struct region {
	uint64_t start;
	uint64_t words[REGION_WORDS];
} stack = {STACK, {0}}, text = {TEXT, {0}}, objects = {OBJECTS, {0}};
static struct region *const regions[] = {&stack, &text, &objects};

static const struct v8_process process = {
	.builtins = {BUILTIN, BUILTIN + 0x100},
	.frame_marker = -8,
	.frame_function = -16,
	.frame_array = -32,
	.frame_offset = -40,
	.function_shared = 24,
	.shared_data = 8,
	.shared_name = 16,
	.shared_script = 32,
	.shared_number = 52,
	.script_id = 64,
};

WINDOW_INLINE int window_read(const struct table_space *space, void *to, __u64 n, __u64 address)
{
	(void)space;
	for (size_t i = 0; i < array_size(regions); i++) {
		const uint64_t off = address - regions[i]->start;

		if (off >= sizeof(regions[i]->words) || n > sizeof(regions[i]->words) - off)
			continue;
		memcpy(to, (const char *)regions[i]->words + off, n);
		return 0;
	}
	memset(to, 0, n);
	return -1;
}

static void put(uint64_t address, const void *bytes, size_t n)
{
	for (size_t i = 0; i < array_size(regions); i++)
		if (address - regions[i]->start < sizeof(regions[i]->words))
			memcpy((char *)regions[i]->words + (address - regions[i]->start), bytes, n);
}

static void put_word(uint64_t address, uint64_t word)
{
	put(address, &word, sizeof(word));
}

WALK_INLINE const struct v8_process *v8_process_of(const struct walk_ctx *c)
{
	(void)c;
	return &process;
}

WALK_INLINE const struct hotspot_process *hotspot_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

WALK_INLINE const struct python_process *python_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

/* ---------------------------------------------------------------- building */

static void put_function(uint64_t function, uint64_t data)
{
	const uint64_t shared = function + 0x40;

	put_word(function + 24, shared + 1);
	put_word(shared + 8, data);
	put_word(shared + 16, function + 2);
	put_word(shared + 32, SCRIPT + 1);
	put_word(SCRIPT + 64, ID);
	put_word(shared + 48, 7ull << 32);
}

static void put_frame(uint64_t fp, uint64_t next_fp, uint64_t ra, uint64_t marker,
		      uint64_t function)
{
	put_word(fp, next_fp);
	put_word(fp + 8, ra);
	put_word(fp - 8, marker);
	put_word(fp - 16, function + 1);
}

/* A leaf, its caller, whose code is compiled, and a native frame. */
static void build(void)
{
	for (size_t i = 0; i < array_size(regions); i++)
		memset(regions[i]->words, 0, sizeof(regions[i]->words));
	put(CODE, code, sizeof(code));
	put_function(LEAF, BYTECODE + 1);
	put_function(CALLER, BYTECODE + 1);
	put_function(INNATE, 5ull << 32);
	put_frame(FP, CALLER_FP, CODE + 8, CONTEXT + 1, LEAF);
	put_frame(CALLER_FP, NATIVE_FP, NATIVE + 1, CONTEXT + 1, CALLER);
}

static uint32_t mix(uint64_t function)
{
	const uint64_t words[] = {function + 2, SCRIPT + 1, ID, 7};
	uint64_t h = 0;

	for (size_t i = 0; i < array_size(words); i++)
		h = walk_hash(h, words[i]);
	return (uint32_t)(h >> 32);
}

/* A letter for each frame: L(eaf), C(aller), I(nnate), n(ative); u and o for broken ones. */
static void spell(const struct walked *w, char *ret, uint32_t *ret_place)
{
	static const struct {
		uint64_t function;
		char letter;
	} functions[] = {{LEAF, 'L'}, {CALLER, 'C'}, {INNATE, 'I'}};
	struct frame_record f;

	*ret_place = 0;
	for (__u32 k = 0; k < w->walk.n; k += f.n_words) {
		char letter = 'n';

		assert_true(frame_decode(w->frames + k, w->walk.n - k, &f) > 0);
		if (f.kind == FRAME_BROKEN)
			letter = f.reason == FRAME_REASON_UNREADABLE ? 'u' : 'o';
		for (size_t i = 0; f.kind == FRAME_RUNTIME && i < array_size(functions); i++)
			if (f.words[0] == functions[i].function + 0x40) {
				letter = functions[i].letter;
				assert_int_equal(f.words[1] >> 32, mix(functions[i].function));
				*ret_place += (uint32_t)f.words[1];
			}
		*ret++ = letter;
	}
	*ret = 0;
}

#ifdef __x86_64__

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
		build();
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
		build();
		for (size_t k = 0; k < array_size(row->addr) && row->addr[k]; k++)
			put_word(row->addr[k], row->word[k]);
		walk_from(&(struct walk_start){STEP, .pc = row->pc, .sp = FP - 64, .fp = FP}, &w);
		spell(&w, got, &place);
		assert_string_equal(got, row->want);
		assert_int_equal(place, row->place);
		assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);
	}
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_others),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
