// SPDX-License-Identifier: Apache-2.0
/* The walk with the plan and the step of HotSpot, over a made-up stack and code heap. Native frames
 * are found by frame pointer. x86-64's code and registers. */
#include "support/test.h"

#include <string.h>

#define WALK_RUNTIMES
#include "support/walkbuilt.h"

#define STACK	 0x7ffc00000000ull
#define HEAP	 0x600000000000ull
#define SEGMENTS 0x610000000000ull
#define METHODS	 0x620000000000ull
#define NATIVE	 0x400000ull

#define SHIFT		7
#define HEADER		16
/* Blobs, by their first segment. */
#define BLOB(segment)	(HEAP + ((segment) << SHIFT) + HEADER)
#define COMPILED	BLOB(0ull)
#define CALLER		BLOB(4ull)
#define STUB		BLOB(8ull)
#define LONG		BLOB(16ull) /* far too many hops from its end */
#define FREE		BLOB(12ull)
#define INTERPRETER	BLOB(2048ull)
#define CODE		64ull /* from the blob */
#define NAME		0x123456789ull
#define METHOD		(METHODS + 0x100)
#define CONST		(METHODS + 0x200)
#define CONSTANTS	(METHODS + 0x300)
#define HOLDER		(METHODS + 0x400)
#define NAME_SYMBOL	(METHODS + 0x500)
/* a method of another class, with the same names of methods */
#define OTHER_METHOD	(METHODS + 0x600)
#define OTHER_CONST	(METHODS + 0x680)
#define OTHER_CONSTANTS (METHODS + 0x700)
#define OTHER_HOLDER	(METHODS + 0x780)
#define CLASS_SYMBOL	(METHODS + (REGION_WORDS * 8) - 16) /* no further memory behind */

/* The compiled blobs' code, from CODE on: prologue, body, copy of a word, epilogue. */
static const uint8_t code[] = {
	0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, /* 0: mov %eax,-0x14000(%rsp) */
	0x55,					  /* 7: push %rbp */
	0x48, 0x83, 0xec, 0x20,			  /* 8: sub $0x20,%rsp */
	0x90,					  /* 12: complete */
	0x48, 0xff, 0x74, 0x24, 0x30,		  /* 13: push 0x30(%rsp) */
	0x48, 0x8f, 0x04, 0x24,			  /* 18: pop (%rsp) */
	0x48, 0x83, 0xc4, 0x20,			  /* 22: add $0x20,%rsp */
	0x5d,					  /* 26: pop %rbp */
	0x49, 0x3b, 0x67, 0x28,			  /* 27: cmp 0x28(%r15),%rsp */
	0x0f, 0x87, 0x01, 0x00, 0x00, 0x00,	  /* 31: ja */
	0xc3,					  /* 37: ret */
	0x4d, 0x8b, 0x97, 0x08, 0x01, 0x00, 0x00, /* 38: mov 0x108(%r15),%r10 */
	0x41, 0x85, 0x02,			  /* 45: test %eax,(%r10) */
	0xc3,					  /* 48: ret */
	0x85, 0x05, 0x00, 0x10, 0x00, 0x00,	  /* 49: test %eax,0x1000(%rip) */
	0xc3,					  /* 55: ret */
	0x4d, 0x8b, 0x97, 0x08, 0x01, 0x00, 0x00, /* 56: mov 0x108(%r15),%r10 */
	0x41, 0x85, 0x02,			  /* 63: test %eax,(%r10) */
	0x85, 0x05, 0x00, 0x10, 0x00, 0x00,	  /* 66: test %eax,0x1000(%rip) */
	0x90,					  /* 72 */
};
#define COMPLETE 12
#define WORDS	 6 /* of a frame */

/* Of each walk. */
#define STEP .step = &hotspot_walk, .mode = SETTINGS_UNWIND_AUTO

#define REGION_WORDS 0x12000
static struct region {
	uint64_t start;
	uint64_t words[REGION_WORDS];
} stack = {STACK, {0}}, heap = {HEAP, {0}}, segments = {SEGMENTS, {0}}, methods = {METHODS, {0}};
static struct region *const regions[] = {&stack, &heap, &segments, &methods};

static const struct hotspot_process whole = {
	.low = HEAP,
	.limit = HEAP + (REGION_WORDS * 8),
	.interpreter = INTERPRETER + CODE,
	.interpreter_limit = INTERPRETER + CODE + 0x1000,
	.entry = INTERPRETER + CODE + 0x100,
	.entry_limit = INTERPRETER + CODE + 0x200,
	.heaps = {{HEAP, HEAP + (REGION_WORDS * 8), SEGMENTS}},
	.segment_shift = SHIFT,
	.block_header = HEADER,
	.frame_bcp = 64,
	.blob_name = 0,
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
};
static struct hotspot_process process;

#include "support/walkregions.h"

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

static struct object_memo memo;
static uint64_t identity; /* of the process */

static void walk_with_memo(const struct walk_start *from, struct walked *ret)
{
	struct walk_start with = *from;

	with.objects = &memo;
	with.identity = identity;
	walk_from(&with, ret);
}

WALK_INLINE const struct python_process *python_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

/* ---------------------------------------------------------------- building */

/* Symbols of 42 and of 10 characters, referred to 5 times; words behind them. */
static const uint64_t name_symbol[HOTSPOT_SYMBOL_WORDS] = {0x6261002a12340005, 1, 2, 3, 4, 5, 6, 7};
static const uint64_t class_symbol[2] = {0x6463000a56780005, 8};

static void put_blob(uint64_t blob, int32_t words, int16_t complete, uint32_t id)
{
	const int32_t distance = CODE;

	put_word(blob, NAME);
	put(blob + 12, &words, 4);
	put(blob + 16, &complete, 2);
	put(blob + 20, &distance, 4);
	put_word(blob + 24, METHOD);
	put(blob + 32, &id, 4);
	put(blob + CODE, code, sizeof(code));
}

/* A block of @n segments, each with a hop to the segment before, or with the longest possible hops.
 */
static void put_segments(uint64_t first, uint64_t n, bool slowly)
{
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t back = (uint8_t)(slowly ? i > 0 : i < 254 ? i : 253);

		put(SEGMENTS + first + i, &back, 1);
	}
}

static void build(void)
{
	process = whole;
	for (size_t i = 0; i < array_size(regions); i++)
		memset(regions[i]->words, 0, sizeof(regions[i]->words));
	memset(segments.words, 0xff, sizeof(segments.words));
	put_blob(COMPILED, WORDS, COMPLETE, 1);
	put_blob(CALLER, 4, COMPLETE, 2);
	put(CALLER + CODE + 8, "\xe8", 1); /* the call before the return address */
	put_blob(STUB, 0, -1, 0);
	put_blob(LONG, WORDS, COMPLETE, 3);
	put_segments(0, 4, false);
	put_segments(4, 4, false);
	put_segments(8, 4, false);
	put_segments(16, 64, true);
	put_segments(2048, 64, false);
	put_word(METHOD + 8, CONST);
	put_word(CONST + 8, CONSTANTS);
	put_word(CONST + 24, 0x0001000200030004ull);
	put_word(CONSTANTS + 24, HOLDER);
	put_word(CONSTANTS + 32 + 3 * 8, NAME_SYMBOL | 1);
	put_word(HOLDER + 16, CLASS_SYMBOL);
	put_word(OTHER_METHOD + 8, OTHER_CONST);
	put_word(OTHER_CONST + 8, OTHER_CONSTANTS);
	put_word(OTHER_CONST + 24, 0x0001000200030004ull);
	put_word(OTHER_CONSTANTS + 24, OTHER_HOLDER);
	put_word(OTHER_CONSTANTS + 32 + 3 * 8, NAME_SYMBOL);
	put_word(OTHER_HOLDER + 16, NAME_SYMBOL); /* the class's name */
	for (uint64_t i = 0; i < HOTSPOT_SYMBOL_WORDS; i++) {
		put_word(NAME_SYMBOL + i * 8, name_symbol[i]);
		put_word(CLASS_SYMBOL + i * 8, i < 2 ? class_symbol[i] : 0);
	}
}

/* The walk is at @pc with @sp; the stack is
 *	sp + @bytes - 8	return address into CALLER, whose frame has 4 words
 *	behind it	the return address into native code, whose frame pointer ends
 */
static uint32_t mix(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint32_t)(walk_hash(walk_hash(walk_hash(0, a), b), c) >> 32);
}

/* Without the counts of references, and the words behind the characters. */
static uint64_t mix_symbol(uint64_t h, const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < HOTSPOT_SYMBOL_WORDS; i++)
		h = walk_hash(h, i < n ? words[i] - (i ? 0 : 5) : 0);
	return h;
}

static uint32_t mix_method(uint64_t const_method, uint64_t constants, uint64_t class)
{
	uint64_t h = walk_hash(walk_hash(0, const_method), constants);

	h = mix_symbol(walk_hash(h, 0x0001000200030004ull), name_symbol, 6);
	return (uint32_t)(walk_hash(h, class) >> 32);
}

/* A letter for each frame: C(ompiled), c(aller), S(tub), I(nterpreted), J: of another class,
 * n(ative); u and o for broken ones. */
static void spell(const struct walked *w, char *ret)
{
	struct frame_record f;

	for (__u32 k = 0; k < w->walk.n; k += f.n_words) {
		char letter = 'n';

		assert_true(frame_decode(w->frames + k, w->walk.n - k, &f) > 0);
		if (f.kind == FRAME_BROKEN)
			letter = f.reason == FRAME_REASON_UNREADABLE ? 'u' : 'o';
		else if (f.kind == FRAME_RUNTIME)
			letter = f.words[0] == COMPILED	      ? 'C'
				 : f.words[0] == CALLER	      ? 'c'
				 : f.words[0] == STUB	      ? 'S'
				 : f.words[0] == METHOD	      ? 'I'
				 : f.words[0] == OTHER_METHOD ? 'J'
							      : '?';
		if (letter == 'C')
			assert_int_equal(f.words[1] >> 32, mix(NAME, METHOD, 1));
		if (letter == 'c') {
			assert_int_equal(f.words[1] >> 32, mix(NAME, METHOD, 2));
			/* as looked up: within the call */
			assert_int_equal((uint32_t)f.words[1], CODE + 12);
		}
		if (letter == 'I') {
			assert_int_equal(
				f.words[1] >> 32,
				mix_method(CONST, CONSTANTS, mix_symbol(0, class_symbol, 2)));
		}
		if (letter == 'J')
			assert_int_equal(f.words[1] >> 32,
					 mix_method(OTHER_CONST, OTHER_CONSTANTS,
						    mix_symbol(0, name_symbol, 6)));
		*ret++ = letter;
	}
	*ret = 0;
}

#ifdef __x86_64__

/* ---------------------------------------------------------------- compiled code */

/* Frame pointers of the native caller, behind the callers' frames. */
#define RECORD (STACK + 0x800)

/* The frame of @blob's code at @off, of which @bytes are there; sp is STACK. @fp_saved: the
 * caller's frame pointer is in the frame. */
static void put_frame(uint64_t bytes, bool fp_saved)
{
	put_word(STACK + bytes - 8, CALLER + CODE + 13);
	if (fp_saved)
		put_word(STACK + bytes - 16, RECORD);
	put_word(STACK + bytes + 32 - 8, NATIVE + 1);
	put_word(STACK + bytes + 32 - 16, RECORD);
}

struct row {
	const char *name;
	uint64_t off; /* of the code */
	uint64_t bytes;
	bool fp_saved;
};

static const struct row rows[] = {
	{"before all", 0, 8, false},
	{"before the push", 7, 8, false},
	{"behind the push", 8, 16, true},
	{"behind the sub", 12, 48, true},
	{"in the body", 13, 48, true},
	{"between push and pop", 18, 56, true},
	{"before the add", 22, 48, true},
	{"before the pop", 26, 16, true},
	{"at the poll", 27, 8, false},
	{"behind the poll", 31, 8, false},
	{"before the return", 37, 8, false},
	{"at the poll of 11", 38, 8, false},
	{"in it", 45, 8, false},
	{"behind it", 48, 8, false},
	{"at the older poll", 49, 8, false},
	{"behind it", 55, 8, false},
	{"a poll in a loop", 56, 48, true},
	{"in it", 63, 48, true},
	{"an older one", 66, 48, true},
	{"behind the push of a word", 72, 56, true},
};

static void test_compiled(void **state)
{
	struct walked w;
	char got[64];

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct walk_start at = {STEP, .pc = COMPILED + CODE + rows[i].off,
					      .sp = STACK, .fp = rows[i].fp_saved ? 1 : RECORD};

		row_begin(rows[i].name);
		build();
		put_frame(rows[i].bytes, rows[i].fp_saved);
		walk_with_memo(&at, &w);
		spell(&w, got);
		assert_string_equal(got, "Ccn");
		assert_int_equal(w.frames[4], NATIVE + 1);
		assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);
	}
}

/* ---------------------------------------------------------------- odd code */

struct odd_row {
	const char *name;
	uint64_t pc;
	uint64_t addr; /* a word ... */
	uint64_t word; /* ... changed to this; addr 0: none */
	const char *want;
	uint32_t end;
};

/* The words around @addr are all of a blob's, so a change hits several fields. */
static const struct odd_row odd_rows[] = {
	{"a stub", STUB + CODE, 0, 0, "Scnn", SAMPLE_END_COMPLETE},
	{"free memory", FREE + CODE, 0, 0, "non", SAMPLE_END_COMPLETE},
	{"too many hops", LONG + CODE + 0x1800, 0, 0, "non", SAMPLE_END_COMPLETE},
	{"a hop before the heap", COMPILED + CODE, SEGMENTS, 0x7777777777777777ull, "non",
	 SAMPLE_END_COMPLETE},
	{"a frame of no size", COMPILED + CODE + 13, COMPILED + 8, 0, "Ccnn", SAMPLE_END_COMPLETE},
	{"a frame of 8 GB", COMPILED + CODE + 13, COMPILED + 8, 0x4000000000000000ull, "Ccnn",
	 SAMPLE_END_COMPLETE},
	{"a frame beyond the stack", COMPILED + CODE + 13, COMPILED + 8, 0x00f0000000000000ull, "C",
	 SAMPLE_END_UNREADABLE},
	{"code elsewhere", COMPILED + CODE + 13, COMPILED + 16, 0x7ffffff00000000cull, "Ccnn",
	 SAMPLE_END_COMPLETE},
};

static void test_odd(void **state)
{
	struct walked w;
	char got[64];

	(void)state;
	for (size_t i = 0; i < array_size(odd_rows); i++) {
		const struct odd_row *row = &odd_rows[i];
		const struct walk_start at = {STEP, .pc = row->pc, .sp = STACK, .fp = RECORD};

		row_begin(row->name);
		build();
		if (row->addr)
			put_word(row->addr, row->word);
		put_frame(8, false);
		put_word(RECORD + 8, NATIVE + 1);
		walk_with_memo(&at, &w);
		spell(&w, got);
		assert_string_equal(got, row->want);
		assert_int_equal(w.walk.end, row->end);
	}
}

/* ---------------------------------------------------------------- interpreted code */

/* An interpreted frame with its frame pointer at @fp; the caller's sp is @sender. */
static void put_interpreted(uint64_t fp, uint64_t sender, uint64_t next_fp, uint64_t ra)
{
	put_word(fp - 64, CONST + 40 + 7); /* the bytecode */
	put_word(fp - 24, METHOD);
	put_word(fp - 8, sender);
	put_word(fp, next_fp);
	put_word(fp + 8, ra);
}

#define BODY (INTERPRETER + CODE + 0x400)

/* A small method stores the frame pointer after it has made the frame; its caller is interpreted
 * and needs the frame pointer. */
static void check_small(void)
{
	static const uint8_t small[] = {
		0x48, 0x83, 0xec, 0x28,	      /* 0: sub $0x28,%rsp */
		0x48, 0x89, 0x6c, 0x24, 0x20, /* 4: mov %rbp,0x20(%rsp) */
	};
	const struct walk_start at = {STEP, .pc = COMPILED + CODE + 4, .sp = STACK,
				      .fp = STACK + 0x80};
	struct walked w;
	char got[64];

	build();
	put_blob(COMPILED, WORDS, sizeof(small), 1);
	put(COMPILED + CODE, small, sizeof(small));
	put_word(STACK + 32, 1); /* not stored yet */
	put_word(STACK + 40, BODY + 1);
	put_interpreted(STACK + 0x80, STACK + 0x90, 1, CALLER + CODE + 13);
	put_word(STACK + 0x90 + 32 - 8, NATIVE + 1);
	put_word(STACK + 0x90 + 32 - 16, RECORD);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "CIcn");
	assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);
}

#define SENDER	(STACK + 0x140)
#define MADE	(STACK + 0x120)
#define ADDRESS (CALLER + CODE + 13)

struct entry_row {
	const char *name;
	uint64_t sp, fp, rax, r13;
	uint64_t address_at; /* 0: not on the stack */
};

static const struct entry_row entry_rows[] = {
	{"called", SENDER - 16, 1, 1, SENDER, SENDER - 16},
	{"taken off", SENDER - 8, 1, ADDRESS, SENDER, 0},
	{"taken off, no arguments", SENDER, 1, ADDRESS, SENDER, 0},
	{"put back", MADE + 8, 1, ADDRESS, SENDER, MADE + 8},
	{"frame pointer stored", MADE, 1, ADDRESS, SENDER, MADE + 8},
	{"frame pointer made", MADE, MADE, 1, SENDER, MADE + 8},
	{"sender stored", MADE - 8, MADE, 1, SENDER, MADE + 8},
	{"zero stored", MADE - 16, MADE, 1, CONST, MADE + 8},
};

/* The instructions of an entry, called by compiled code. In the method's place is an old word. */
static void test_entry(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(entry_rows); i++) {
		const struct entry_row *row = &entry_rows[i];
		const struct walk_start at = {STEP,
					      .pc = INTERPRETER + CODE + 0x110,
					      .sp = row->sp,
					      .fp = row->fp,
					      .rax = row->rax,
					      .rbx = METHOD,
					      .r13 = row->r13};
		struct walked w;
		char got[64];

		row_begin(row->name);
		build();
		if (row->address_at)
			put_word(row->address_at, ADDRESS);
		put_word(MADE, RECORD);
		put_word(MADE - 8, SENDER);
		put_word(MADE - 24, NATIVE);
		put_word(SENDER + 32 - 8, NATIVE + 1);
		put_word(SENDER + 32 - 16, RECORD);
		walk_with_memo(&at, &w);
		spell(&w, got);
		assert_string_equal(got, "Icn");
		assert_int_equal((uint32_t)w.frames[1], 0);
		assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);
	}
}

static void test_interpreted(void **state)
{
	const struct walk_start at = {STEP, .pc = BODY, .sp = STACK, .fp = STACK + 0x80};
	const struct walk_start entered = {STEP,	  .pc = INTERPRETER + CODE + 0x110,
					   .sp = STACK,	  .fp = STACK + 0x80,
					   .rbx = METHOD, .r13 = STACK + 0x10};
	struct walked w;
	char got[64];

	(void)state;
	check_small();
	build();
	/* interpreted, interpreted, compiled with arguments in between, native */
	put_interpreted(STACK + 0x80, STACK + 0x90, STACK + 0x100, BODY + 1);
	put_interpreted(STACK + 0x100, STACK + 0x140, 1, CALLER + CODE + 13);
	put_word(STACK + 0x140 + 32 - 8, NATIVE + 1);
	put_word(STACK + 0x140 + 32 - 16, RECORD);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "IIcn");
	assert_int_equal((uint32_t)w.frames[1], 7);
	assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);

	/* a caller of another class does not get the first one's name */
	put_word(STACK + 0x100 - 24, OTHER_METHOD);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "IJcn");
	put_word(STACK + 0x80 - 24, OTHER_METHOD);
	put_word(STACK + 0x100 - 24, METHOD);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "JIcn");
	put_word(STACK + 0x80 - 24, METHOD);

	/* the same, in a further method that has no frame yet */
	put_word(STACK, BODY + 1);
	walk_with_memo(&entered, &w);
	spell(&w, got);
	assert_string_equal(got, "IIIcn");
	assert_int_equal((uint32_t)w.frames[1], 0);

	/* no method: one broken frame, and the walk goes on */
	put_word(STACK + 0x80 - 24, METHOD + 1);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "noIcn");
	put_word(STACK + 0x80 - 24, NATIVE);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "nuIcn");
	put_word(STACK + 0x80 - 24, METHOD);
	/* no names */
	put_word(CONSTANTS + 24, NATIVE);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "nunucn");
	put_word(CONSTANTS + 24, HOLDER);
	put_word(HOLDER + 16, NATIVE);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "nunucn");
	put_word(HOLDER + 16, CLASS_SYMBOL);
	put_word(METHOD + 8, NATIVE);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "nunucn");
}

#define SAFEPOINTS (METHODS + 0x800)

/* Two interpreted frames of one method in compiled code; the memo has nothing. */
static void build_remembered(void)
{
	build();
	memset(&memo, 0, sizeof(memo));
	identity = 1;
	process.safepoints = SAFEPOINTS;
	put_word(SAFEPOINTS, 7);
	put_interpreted(STACK + 0x80, STACK + 0x90, STACK + 0x100, BODY + 1);
	put_interpreted(STACK + 0x100, STACK + 0x140, 1, CALLER + CODE + 13);
	put_word(STACK + 0x140 + 32 - 8, NATIVE + 1);
	put_word(STACK + 0x140 + 32 - 16, RECORD);
}

/* The walk of a method that cannot be read any more: only the memo has it. */
static void test_remembered(void **state)
{
	static const struct {
		const char *name, *want;
		uint64_t safepoints, identity, at;
	} counts[] = {
		{"the same", "IIcn", 7, 1, SAFEPOINTS},
		{"a safepoint later", "nunucn", 8, 1, SAFEPOINTS},
		{"of another process", "nunucn", 7, 2, SAFEPOINTS},
		{"a count that is not there", "nunucn", 7, 1, NATIVE},
		{"without a count", "nunucn", 7, 1, 0},
	};
	const struct walk_start at = {STEP, .pc = BODY, .sp = STACK, .fp = STACK + 0x80};
	struct walked w;
	char got[64];

	(void)state;
	for (size_t i = 0; i < array_size(counts); i++) {
		build_remembered();
		walk_with_memo(&at, &w);
		spell(&w, got);
		assert_string_equal(got, "IIcn");
		put_word(METHOD + 8, NATIVE);
		put_word(SAFEPOINTS, counts[i].safepoints);
		identity = counts[i].identity;
		process.safepoints = counts[i].at;
		walk_with_memo(&at, &w);
		spell(&w, got);
		assert_string_equal(got, counts[i].want);
		/* the places are those of the frames, with and without the memo */
		if (counts[i].want[0] == 'I')
			assert_int_equal((uint32_t)w.frames[1], 7);
	}
}

/* Frames that may be no whole frames are not remembered: the interrupted one, and those whose
 * callee is native. */
static void test_not_remembered(void **state)
{
	const struct walk_start at = {STEP, .pc = BODY, .sp = STACK, .fp = STACK + 0x80};
	const struct walk_start native = {STEP, .pc = NATIVE, .sp = STACK, .fp = STACK + 0x20};
	struct walked w;
	char got[64];

	(void)state;
	build_remembered();
	put_word(STACK + 0x108, 0);
	put_interpreted(STACK + 0x80, STACK + 0x90, 1, CALLER + CODE + 13);
	put_word(STACK + 0x90 + 32 - 8, NATIVE + 1);
	put_word(STACK + 0x90 + 32 - 16, RECORD);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "Icn");
	put_word(STACK + 0x20, STACK + 0x80);
	put_word(STACK + 0x28, BODY + 1);
	walk_with_memo(&native, &w);
	spell(&w, got);
	assert_string_equal(got, "nIcn");
	put_word(METHOD + 8, NATIVE);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "nucn");
}

/* More methods than a set has room for: each is right, and the newest are there. */
static void test_memo(void **state)
{
	struct object_memo_entry *set = memo.sets[0];

	(void)state;
	memset(&memo, 0, sizeof(memo));
	for (uint64_t i = 1; i <= OBJECT_MEMO_WAYS + 1; i++) {
		const struct object_memo_entry entry = {i * 8, 1, 2, i};

		assert_int_equal(object_memo_find(set, i * 8, 1, 2), 0);
		object_memo_add(set, &entry);
		assert_int_equal(object_memo_find(set, i * 8, 1, 2), i);
		assert_int_equal(object_memo_find(set, i * 8, 1, 3), 0);
		assert_int_equal(object_memo_find(set, i * 8, 2, 2), 0);
		assert_int_equal(object_memo_find(set, i * 8 + (1ull << 63), 1, 2), 0);
	}
	assert_int_equal(object_memo_find(set, 8, 1, 2), 0);
	assert_int_equal(object_memo_find(set, 16, 1, 2), 2);
	for (uint64_t i = 0; i < 1000; i++)
		assert_in_range(object_memo_set(&memo, METHOD + i * 8, i % 7) - memo.sets[0], 0,
				(OBJECT_MEMO_SETS - 1) * OBJECT_MEMO_WAYS);
}

/* The frame pointer of the second frame is below the frame. */
static void test_low(void **state)
{
	const struct walk_start at = {STEP, .pc = BODY, .sp = STACK, .fp = STACK + 0x80};
	struct walked w;
	char got[SAMPLE_USER_FRAMES_MAX + 1];

	(void)state;
	build();
	put_interpreted(STACK + 0x40, STACK + 0x140, 1, CALLER + CODE + 13);
	put_interpreted(STACK + 0x80, STACK + 0x90, STACK + 0x40, BODY + 1);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "II");
	assert_int_equal(w.walk.end, SAMPLE_END_FP_LOW);

	/* a stub: the frame pointer is neither sp's nor above */
	put_word(STACK + 0x88, STUB + CODE + 1);
	put_word(STACK + 0x80, STACK + 0x40);
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "IS");
	assert_int_equal(w.walk.end, SAMPLE_END_FP_LOW);
}

/* ---------------------------------------------------------------- anything */

/* Random words everywhere: the walk ends, with whole frames. */
static void test_random(void **state)
{
	static const uint64_t pcs[] = {COMPILED + CODE + 13, COMPILED + CODE, STUB + CODE, BODY,
				       INTERPRETER + CODE + 0x110};
	uint64_t seed = 1;

	(void)state;
	for (size_t round = 0; round < 2000; round++) {
		const struct walk_start at = {STEP,	     .pc = pcs[round % array_size(pcs)],
					      .sp = STACK,   .fp = STACK + 0x80,
					      .rbx = METHOD, .r13 = STACK + 0x10};
		struct frame_record frame;
		struct walked w;

		if (round % 20 == 0) {
			build_remembered();
			for (uint64_t i = 0; i < 0x400; i += 8)
				put_word(STACK + i, i % 16 ? CALLER + CODE + 13 : STACK + i + 0x40);
		}
		for (size_t i = 0; i < 20; i++) {
			struct region *region;
			uint64_t word;

			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			region = regions[seed % array_size(regions)];
			word = regions[(seed >> 8) % array_size(regions)]->start +
			       (seed >> 16) % 0x2000 / (seed >> 60 ? 8 : 1) * (seed >> 60 ? 8 : 1);
			region->words[(seed >> 32) % 0x100] = seed >> 62 ? word : seed;
		}
		walk_with_memo(&at, &w);
		assert_in_range(w.walk.n, 1, SAMPLE_USER_FRAMES_MAX);
		for (__u32 k = 0; k < w.walk.n; k += frame.n_words)
			assert_true(frame_decode(w.frames + k, w.walk.n - k, &frame) > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compiled),   cmocka_unit_test(test_odd),
		cmocka_unit_test(test_entry),	   cmocka_unit_test(test_interpreted),
		cmocka_unit_test(test_remembered), cmocka_unit_test(test_not_remembered),
		cmocka_unit_test(test_memo),	   cmocka_unit_test(test_low),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* The walk by frame pointers of another machine, with the step: as without. */
static void test_other(void **state)
{
	const struct walk_start at = {STEP, .pc = NATIVE, .sp = STACK};
	struct walked w;
	char got[64];

	(void)state;
	build();
	process = (struct hotspot_process){0};
	walk_with_memo(&at, &w);
	spell(&w, got);
	assert_string_equal(got, "n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_other)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
