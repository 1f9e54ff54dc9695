// SPDX-License-Identifier: Apache-2.0
/* The walk with the step of CPython, over a made-up stack and interpreter. Native frames are found
 * by frame pointer. */
#include "support/test.h"

#include <string.h>

/* Native frame i is from SP(i) to SP(i + 1), with its frame record at the end. */
#define STACK	     0x7ffc00000000ull
#define NATIVE_BYTES 0x100ull
#define SP(i)	     (STACK + NATIVE_BYTES * (i))
#define RECORD(i)    (SP((i) + 1) - 16)
#define ENTRY(i)     (SP(i) + 0x40) /* a loop's entry frame */
#define CFRAME(i)    (SP(i) + 0x20) /* ... and cframe */
/* The thread, code objects and frames: a caller's frame at the lower address. */
#define THREAD	     0x600000000000ull
#define TSTATE	     (THREAD + 0x100)
#define ROOT_CFRAME  (TSTATE + 0x200)
#define CODES	     0x610000000000ull
#define CODE(letter) (CODES + 0x100ull * (unsigned char)(letter))
/* A thread's copy of the instructions, and its index; the array is within the code object. */
#define COPY(code)   ((code) + 0x20000000000ull)
#define COPY_INDEX   2
#define COPIES_AT    224
#define FRAMES	     0x620000000000ull
#define FRAME_BYTES  0x80ull
#define N_FRAMES     64
#define FRAME(i)     (FRAMES + FRAME_BYTES * (N_FRAMES - 1 - (i)))
#define NOWHERE	     0x630000000000ull

#define WALK_RUNTIMES
#define WALK_THREAD_POINTER (THREAD + 0x80)
#include "support/walkbuilt.h"

#define LOOP	   0x500000ull
#define LOOP_COLD  0x700000ull
#define LOOP_BYTES 0x1000ull
#define PC(i)	   (0x400000ull + 0x10ull * (i))

#define REGION_WORDS 4096
static struct region {
	uint64_t start;
	uint64_t words[REGION_WORDS];
} stack = {STACK, {0}}, thread = {THREAD, {0}}, codes = {CODES, {0}}, frames = {FRAMES, {0}};
static struct region *const regions[] = {&stack, &thread, &codes, &frames};

static struct python_process process;
static struct object_memo memo;
static bool has_memo;
static uint64_t identity;
static bool has_process;

#include "support/walkregions.h"

WALK_INLINE const struct v8_process *v8_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

WALK_INLINE const struct hotspot_process *hotspot_process_of(const struct walk_ctx *c)
{
	(void)c;
	return NULL;
}

WALK_INLINE const struct python_process *python_process_of(const struct walk_ctx *c)
{
	(void)c;
	return has_process ? &process : NULL;
}

/* ---------------------------------------------------------------- releases */

enum release { R36, R38, R310, R311, R312, R313, R314, R314T, N_RELEASES };

#define LOOPS                                    \
	{                                        \
		{LOOP, LOOP + LOOP_BYTES},       \
		{                                \
			LOOP_COLD, LOOP_COLD + 8 \
		}                                \
	}
#define OLD(f_code, f_lasti, filename, lines, first)                                            \
	{                                                                                       \
		.loops = LOOPS, .way = {.at = -0x80}, .tstate_frame = 24,                       \
		.cframe_frame = PYTHON_NO_OFFSET, .frame_previous = 24, .frame_code = f_code,   \
		.frame_instr = f_lasti, .code_filename = filename, .code_name = (filename) + 8, \
		.code_qualname = (filename) + 8, .code_lines = lines, .code_first_line = first, \
		.code_instructions = PYTHON_NO_OFFSET, .activation = PYTHON_EACH_FRAME,         \
		.instr_is_int = 1, .has_strings = 1,                                            \
	}
#define NEW(state, cframe, previous, code, owner, first_line, instructions, how, tagged)         \
	{                                                                                        \
		.loops = LOOPS, .way = {.at = -0x80}, .tstate_frame = state,                     \
		.cframe_frame = cframe, .frame_previous = previous, .frame_code = code,          \
		.frame_instr = 56, .frame_entry = owner, .code_filename = 112, .code_name = 120, \
		.code_qualname = 128, .code_lines = 136, .code_first_line = first_line,          \
		.code_instructions = instructions, .activation = how, .code_tagged = tagged,     \
		.has_strings = (how) == PYTHON_IS_ENTRY,                                         \
	}

static const struct python_process releases[N_RELEASES] = {
	[R36] = OLD(32, 120, 96, 112, 36),
	[R38] = OLD(32, 104, 104, 120, 40),
	[R310] = OLD(32, 96, 104, 120, 40),
	[R311] = NEW(56, 8, 48, 32, 68, 72, 184, PYTHON_IS_ENTRY, 0),
	[R312] = NEW(56, 0, 8, 0, 70, 68, 192, PYTHON_OWNER, 0),
	[R313] = NEW(72, PYTHON_NO_OFFSET, 8, 0, 70, 68, 200, PYTHON_OWNER, 0),
	[R314] = NEW(72, PYTHON_NO_OFFSET, 8, 0, 74, 68, 208, PYTHON_OWNER, 1),
	/* free-threaded; the head of an object has the usual length here */
	[R314T] = {.loops = LOOPS,
		   .way = {.at = -0x80},
		   .tstate_frame = 72,
		   .cframe_frame = PYTHON_NO_OFFSET,
		   .frame_previous = 8,
		   .frame_instr = 56,
		   .frame_entry = 78,
		   .frame_copy = 72,
		   .code_filename = 112,
		   .code_name = 120,
		   .code_qualname = 128,
		   .code_lines = 136,
		   .code_first_line = 68,
		   .code_instructions = 216,
		   .code_copies = 208,
		   .activation = PYTHON_OWNER,
		   .code_tagged = 1},
};

/* ---------------------------------------------------------------- stacks */

/*
 * A stack by letters, innermost first. n: a native frame; L: a loop, C: in its other part; u: a
 * loop whose activation is not pushed. @python: the frames of each activation, with a space between
 * activations; a letter is a function. Odd ones: 1 a frame at an odd address, 2 an unmapped frame,
 * 3 a frame without code, 4 a frame with code at an odd address, 5 with unmapped code. In the
 * result: functions, l for a loop's native frame, ! unreadable, ? odd.
 */
struct walk_row {
	const char *name;
	enum release from, to;
	const char *native;
	const char *python;
	const char *want;
};

static const struct walk_row walk_rows[] = {
	{"a frame in place of its loop", R36, R314T, "nLn", "a", "nan"},
	{"innermost is the loop", R36, R314T, "Ln", "a", "an"},
	{"outermost is the loop", R36, R314T, "nL", "a", "na"},
	{"in the loop's other part", R36, R314T, "nCn", "a", "nan"},
	{"two activations", R36, R314T, "nLnnLn", "a b", "nannbn"},
	{"loop upon loop", R36, R314T, "LLL", "a b a", "aba"},
	{"no loop", R36, R314T, "nnn", "", "nnn"},
	{"several frames in an activation", R311, R314T, "nLn", "abc", "nabcn"},
	{"in both of them", R311, R314T, "nLnnLn", "abc dd", "nabcnnddn"},
	{"nothing is pushed yet", R36, R314T, "un", "", "ln"},
	{"the innermost is not pushed", R311, R314T, "unL", "ab", "lnab"},
	{"with calls before the push", R311, R314T, "nunLnL", "ab cd", "nlnabncd"},
	{"only the entry frame is pushed", R312, R314T, "LnL", "- ab", "lnab"},
	/* the limit of these releases: nothing tells, and all move inwards */
	{"not pushed, to 3.10", R36, R310, "unLnL", "a b", "anbnl"},
	{"fewer activations than loops", R36, R310, "LnLn", "a", "anln"},
	{"a frame at an odd address", R36, R310, "nLn", "1", "nl?n"},
	{"an unmapped frame", R36, R310, "nLn", "2", "nl!n"},
	{"a frame without code", R36, R310, "nLn", "3", "nl?n"},
	{"odd code", R36, R310, "nLn", "4", "nl?n"},
	{"unmapped code", R36, R310, "nLn", "5", "nl!n"},
	{"a later frame at an odd address", R313, R314T, "nLn", "1", "nl?n"},
	{"a later unmapped frame", R313, R314T, "nLn", "2", "nl!n"},
	{"a later frame without code", R313, R314T, "nLn", "3", "nl?n"},
	{"later odd code", R313, R314T, "nLn", "4", "nl?n"},
	{"later unmapped code", R313, R314T, "nLn", "5", "nl!n"},
	{"the second of an activation", R313, R314T, "nLn", "a2", "na!n"},
	/* the innermost is not pushed, the next one is broken */
	{"a cframe without a frame", R311, R312, "nLnLn", "1 ab", "nlnabn"},
	{"a cframe with an old frame", R311, R312, "nLnLn", "2 ab", "nlnabn"},
	{"a cframe with an old frame's code", R311, R312, "nLnLn", "c5 ab", "nlnabn"},
	{"a broken one further out", R311, R312, "nLnLn", "a 2", "nanl!n"},
	{"and each one further out", R36, R310, "nLnLnL", "a 2 b", "nanl!nl!"},
};

static uint64_t code_of(char c)
{
	switch (c) {
	case '3':
		return 0;
	case '4':
		return CODE('a') + 4;
	case '5':
		return NOWHERE;
	default:
		return CODE(c);
	}
}

static uint64_t address_of(char c, size_t i)
{
	return c == '1' ? FRAME(i) + 4 : c == '2' ? NOWHERE : FRAME(i);
}

static uint32_t place_of(char c)
{
	return 2u * (unsigned char)c;
}

/* Strings, each behind a code object: the names, and the file of all. */
#define STRING_AT 0xa0
#define FILE_OF	  'A'

/* Of the string of @c, which has a hash or characters: a few, many, the most of one read and one
 * more, or wide ones. Behind the string are the next objects. */
static const struct string_shape {
	uint64_t length, hash, state;
	uint64_t tail, n; /* the words in the check: from the string on, and their bytes */
	size_t n_reads;
} shapes[] = {
	{5, 0x1234567, 0x64, 0, 0, 1},		{5, UINT64_MAX, 0x64, 48, 8, 1},
	{44, UINT64_MAX, 0x64, 48 + 8, 40, 1},	{8, UINT64_MAX, 0x28, 72, 16, 1},
	{80, UINT64_MAX, 0x64, 48 + 40, 40, 1}, {81, UINT64_MAX, 0x64, 48 + 48, 40, 2},
	{0, UINT64_MAX, 0x64, 48, 0, 1},	{50, UINT64_MAX, 0x30, 72 + 160, 40, 2},
};

static const struct string_shape *shape_of(char c)
{
	return &shapes[(unsigned char)c % array_size(shapes)];
}

static void fill_code(char c, uint64_t words[32])
{
	const struct string_shape *s = shape_of(c);
	const uint32_t first_line = 1000u + (unsigned char)c;

	for (uint64_t i = 0; i < 32; i++)
		words[i] = 0xabcdull << 32 | (unsigned char)c << 12 | i * 8;
	memcpy((char *)words + process.code_first_line, &first_line, 4);
	if (!process.has_strings)
		return;
	words[process.code_filename / 8] = CODE(FILE_OF) + STRING_AT;
	words[process.code_qualname / 8] = CODE(c) + STRING_AT;
	words[(STRING_AT + 16) / 8] = s->length;
	words[(STRING_AT + 24) / 8] = s->hash;
	words[(STRING_AT + 32) / 8] = s->state;
}

static void put_code(char c)
{
	uint64_t words[32];

	fill_code(c, words);
	put(CODE(c), words, sizeof(words));
	if (!process.code_copies)
		return;
	put_word(CODE(c) + process.code_copies, CODE(c) + COPIES_AT);
	put_word(CODE(c) + COPIES_AT + 8 + 8 * COPY_INDEX, COPY(CODE(c)));
}

static void put_frame(uint64_t at, uint64_t code, uint64_t previous, uint32_t place, uint8_t entry)
{
	const uint64_t instr =
		(process.code_copies ? COPY(code) : code + process.code_instructions) + place;
	const uint32_t copy = COPY_INDEX;

	put_word(at + process.frame_previous, previous);
	put_word(at + process.frame_code, code | (process.code_tagged && code ? 1 : 0));
	if (process.instr_is_int)
		put(at + process.frame_instr, &place, 4);
	else
		put_word(at + process.frame_instr, instr);
	if (process.activation != PYTHON_EACH_FRAME)
		put(at + process.frame_entry, &entry, 1);
	if (process.code_copies)
		put(at + process.frame_copy, &copy, 4);
}

static bool is_loop(char c)
{
	return c == 'L' || c == 'C';
}

/* Address of the next frame on the list after the one at python[i]: in the same activation, or the
 * entry frame in the native frame @loop, or the first frame of the next activation. */
static uint64_t next_of(const char *python, size_t i, size_t loop)
{
	if (python[i + 1] && python[i + 1] != ' ')
		return address_of(python[i + 1], i + 1);
	if (process.activation == PYTHON_OWNER)
		return ENTRY(loop);
	return python[i + 1] ? address_of(python[i + 2], i + 2) : 0;
}

/* The cframe of the loop in native frame @loop; the thread's own is the one before. */
static void put_cframe(size_t loop, uint64_t head)
{
	put_word(CFRAME(loop) + (process.cframe_frame & 0xff), head);
	put_word(CFRAME(loop) + (process.cframe_frame & 0xff) + 8, ROOT_CFRAME);
}

/* The list, from the innermost activation on. Returns the head of the list. */
static uint64_t put_frames(const char *native, const char *python)
{
	size_t loop = 0, i = 0;
	uint64_t head = 0;

	while (native[loop] && !is_loop(native[loop]))
		loop++;
	if (!native[loop] || !python[0])
		return 0;
	head = python[0] == '-' ? ENTRY(loop) : address_of(python[0], 0);
	put_cframe(loop, head);
	for (; python[i]; i++) {
		const char c = python[i];
		const bool last = !python[i + 1] || python[i + 1] == ' ';

		if (c == ' ') {
			const size_t inner = loop;

			while (!is_loop(native[++loop]))
				;
			put_word(CFRAME(inner) + (process.cframe_frame & 0xff) + 8, CFRAME(loop));
			put_cframe(loop, python[i + 1] == '-' ? ENTRY(loop)
							      : address_of(python[i + 1], i + 1));
			continue;
		}
		if (c != '-')
			put_frame(FRAME(i), code_of(c), next_of(python, i, loop), place_of(c),
				  process.activation == PYTHON_IS_ENTRY && last);
		if (last && process.activation == PYTHON_OWNER)
			put_frame(ENTRY(loop), CODES,
				  python[i + 1] ? address_of(python[i + 2], i + 2) : 0, 0,
				  PYTHON_OWNER_LOOP);
	}
	return head;
}

static size_t innermost_loop(const char *native)
{
	size_t i = 0;

	while (native[i] && !is_loop(native[i]))
		i++;
	return i;
}

static void build(const char *native, const char *python)
{
	const size_t n = strlen(native), loop = innermost_loop(native);
	uint64_t head;

	for (size_t i = 0; i < array_size(regions); i++)
		memset(regions[i]->words, 0, sizeof(regions[i]->words));
	for (size_t i = 0; i < n; i++) {
		const char c = i + 1 < n ? native[i + 1] : 0;

		put_word(RECORD(i), c ? RECORD(i + 1) : 0);
		put_word(RECORD(i) + 8, !c	   ? 0
					: c == 'n' ? PC(i + 1)
					: c == 'C' ? LOOP_COLD + 8
						   : LOOP + LOOP_BYTES);
	}
	for (int c = 'A'; c <= 'z'; c++)
		put_code((char)c);
	head = put_frames(native, python);
	put_word(THREAD, TSTATE);
	if (process.cframe_frame == PYTHON_NO_OFFSET) {
		put_word(TSTATE + process.tstate_frame, head);
	} else {
		put_word(TSTATE + process.tstate_frame, head ? CFRAME(loop) : ROOT_CFRAME);
	}
}

static void walk_built(const char *native, const struct walk_runtime *step, struct walked *ret)
{
	const struct walk_start from = {
		.pc = native[0] == 'n'	 ? PC(0)
		      : native[0] == 'C' ? LOOP_COLD
					 : LOOP,
		.sp = STACK,
		.fp = RECORD(0),
		.step = step,
		.objects = has_memo ? &memo : NULL,
		.identity = identity,
		.mode = SETTINGS_UNWIND_AUTO,
	};

	n_reads = 0;
	walk_from(&from, ret);
}

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* Of the string at @at, in the memory of code objects. */
static uint64_t value_of(uint64_t at, const struct string_shape *s)
{
	uint64_t tail[5] = {0}, sum = 0, factor = 1;

	memcpy(tail, (const char *)codes.words + (at + s->tail - CODES), s->n);
	for (size_t i = 0; ~s->hash == 0 && i < array_size(tail); i++)
		sum += tail[i] * (factor *= 0x9e3779b97f4a7c15ull);
	return mix(mix(mix(0, s->length), s->hash), sum);
}

static uint64_t code_word(char c, uint64_t off)
{
	return codes.words[(CODE(c) + off - CODES) / 8];
}

/* As the header defines. @name: of the string. */
static uint32_t check_named(char c, const struct string_shape *name)
{
	const uint16_t offs[] = {process.code_filename, process.code_name, process.code_qualname,
				 process.code_lines};
	uint64_t h = 0;

	for (size_t i = 0; i < array_size(offs); i++)
		h = mix(h, code_word(c, offs[i]));
	h = mix(h, 1000u + (unsigned char)c);
	if (process.has_strings)
		h = mix(mix(h, value_of(code_word(c, process.code_qualname), name)),
			value_of(CODE(FILE_OF) + STRING_AT, shape_of(FILE_OF)));
	return (uint32_t)(h >> 32);
}

static uint32_t check_of(char c)
{
	return check_named(c, shape_of(c));
}

/* A letter for each frame; asserts the words of Python's. */
static void spell(const struct walked *w, char *ret)
{
	struct frame_record frame;
	__u32 n;

	for (__u32 i = 0; i < w->walk.n; i += n) {
		n = frame_decode(w->frames + i, w->walk.n - i, &frame);
		assert_true(n > 0);
		if (frame.kind == FRAME_NATIVE) {
			const __u64 pc = frame.words[0] - (i > 0);

			*ret++ = pc - LOOP < LOOP_BYTES || pc - LOOP_COLD < 8 ? 'l' : 'n';
			continue;
		}
		assert_int_equal(frame.runtime, FRAME_RUNTIME_PYTHON);
		if (frame.kind == FRAME_BROKEN) {
			*ret++ = frame.reason == FRAME_REASON_ODD ? '?' : '!';
			continue;
		}
		*ret = (char)((frame.words[0] - CODES) / 0x100);
		assert_true(frame.words[0] == CODE(*ret));
		assert_int_equal((uint32_t)frame.words[1], place_of(*ret));
		assert_int_equal(frame.words[1] >> 32, check_of(*ret));
		ret++;
	}
	*ret = '\0';
}

/* The hash of the words, as if stored one after the other. */
static uint64_t hash_of(const struct walked *w)
{
	uint64_t hash = 0;

	for (__u32 i = 0; i < w->walk.n; i++)
		hash = walk_hash(hash, w->frames[i]);
	return hash;
}

static void test_stacks(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(walk_rows); i++) {
		const struct walk_row *row = &walk_rows[i];

		for (int release = (int)row->from; release <= (int)row->to; release++) {
			struct walked with, without;
			char got[64];

			row_begin(row->name);
			print_message("release %d\n", release);
			process = releases[release];
			build(row->native, row->python);
			has_process = true;
			walk_built(row->native, &python_walk, &with);
			spell(&with, got);
			assert_string_equal(got, row->want);
			assert_int_equal(with.walk.end, SAMPLE_END_COMPLETE);
			assert_true(with.walk.hash == hash_of(&with));

			/* without the process's record, and without the step: the same words */
			has_process = false;
			walk_built(row->native, &python_walk, &with);
			walk_built(row->native, NULL, &without);
			assert_int_equal(with.walk.n, strlen(row->native));
			assert_int_equal(with.walk.n, without.walk.n);
			assert_memory_equal(with.frames, without.frames, sizeof(with.frames));
			assert_true(with.walk.hash == without.walk.hash);
		}
	}
}

/* ---------------------------------------------------------------- hostile lists */

/* A list in a circle ends at the limit of words. */
static void test_circle(void **state)
{
	(void)state;
	has_process = true;
	for (int release = 0; release < N_RELEASES; release++) {
		struct walked w;

		process = releases[release];
		build("nLn", "a");
		put_frame(FRAME(0), CODE('a'), FRAME(0), 0, 0);
		walk_built("nLn", &python_walk, &w);
		if (release <= R310) { /* a frame for each loop */
			assert_int_equal(w.walk.n, 4);
			assert_int_equal(w.walk.end, SAMPLE_END_COMPLETE);
		} else {
			assert_int_equal(w.walk.n, SAMPLE_USER_FRAMES_MAX - 1);
			assert_int_equal(w.walk.end, SAMPLE_END_MAX_FRAMES);
		}
	}
}

/* Threads without Python, and unreadable ones: native frames, and one mark. */
static void test_threads(void **state)
{
	struct walked w;
	char got[64];

	(void)state;
	has_process = true;
	for (int release = 0; release < N_RELEASES; release++) {
		process = releases[release];
		build("nLnL", "a b");
		put_word(THREAD, 0);
		walk_built("nLnL", &python_walk, &w);
		spell(&w, got);
		assert_string_equal(got, "nlnl");

		put_word(THREAD, NOWHERE);
		walk_built("nLnL", &python_walk, &w);
		spell(&w, got);
		assert_string_equal(got, "nl!nl");

		process.way.at = 1;
		walk_built("nLnL", &python_walk, &w);
		spell(&w, got);
		assert_string_equal(got, "nl!nl");

		/* through an array, as in musl */
		process = releases[release];
		build("nLnL", "a b");
		process.way = (struct python_way){.at = -0x78, .in_array = 1, .slot = 16};
		put_word(THREAD + 8, THREAD - 16);
		walk_built("nLnL", &python_walk, &w);
		spell(&w, got);
		assert_string_equal(got, "nanb");
		put_word(THREAD + 8, 0);
		walk_built("nLnL", &python_walk, &w);
		spell(&w, got);
		assert_string_equal(got, "nlnl");
		put_word(THREAD + 8, NOWHERE);
		walk_built("nLnL", &python_walk, &w);
		spell(&w, got);
		assert_string_equal(got, "nl!nl");
	}
}

/* Random words everywhere: the walk ends, with whole frames. */
static void test_random(void **state)
{
	uint64_t seed = 1;

	(void)state;
	has_process = true;
	for (size_t round = 0; round < 2000; round++) {
		struct frame_record frame;
		struct walked w;

		process = releases[round % N_RELEASES];
		build("nLnLLn", "ab a c");
		for (size_t i = 0; i < 40; i++) {
			struct region *region;
			uint64_t word;

			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			region = regions[1 + seed % (array_size(regions) - 1)];
			word = regions[(seed >> 8) % array_size(regions)]->start +
			       (seed >> 16) % 0x2000 / (seed >> 60 ? 8 : 1) * (seed >> 60 ? 8 : 1);
			region->words[(seed >> 32) % 0x600] = seed >> 62 ? word : seed;
		}
		walk_built("nLnLLn", &python_walk, &w);
		assert_in_range(w.walk.n, 3, SAMPLE_USER_FRAMES_MAX);
		assert_true(w.walk.hash == hash_of(&w));
		for (__u32 k = 0; k < w.walk.n; k += frame.n_words)
			assert_true(frame_decode(w.frames + k, w.walk.n - k, &frame) > 0);
	}
}

/* ---------------------------------------------------------------- reads */

#define LETTERS "abcdefghijklmnopqrstuvwxyzBCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Reads of a walk from a loop on. */
static size_t reads_of(const char *python)
{
	struct walked w;
	char got[64];

	build("L", python);
	walk_built("L", &python_walk, &w);
	spell(&w, got);
	assert_string_equal(got, python);
	return n_reads;
}

/* Frames of 128 bytes, next to each other: besides one read for each code object, the window has 7
 * frames. The lowest ones are at the start of mapped memory. */
static void test_reads(void **state)
{
	const size_t n = strlen(LETTERS);
	struct walked w;
	size_t n_native;

	(void)state;
	process = releases[R313];
	build("L", LETTERS);
	has_process = false;
	walk_built("L", &python_walk, &w);
	n_native = n_reads;
	has_process = true;
	walk_built("L", &python_walk, &w);
	assert_int_equal(w.walk.n, 2 * n);
	print_message("%zu reads for %zu frames\n", n_reads - n_native, n);
	/* the code objects, 2 of the thread, the entry frame */
	assert_in_range(n_reads - n_native - n - 2 - 1, 1, 10);
}

/* A code object is read once, but for the innermost frame, which may be no whole frame. */
static void test_repeated(void **state)
{
	(void)state;
	has_process = true;
	for (int release = R311; release < R314T; release++) {
		process = releases[release];
		assert_int_equal(reads_of("abbbb"), reads_of("ab"));
		assert_int_equal(reads_of("aabab"), reads_of("aab"));
	}
	/* here a frame has words of the code object that are not in the check */
	process = releases[R314T];
	assert_int_equal(reads_of("abbbb"), reads_of("abcde"));
}

/* Of strings: one read for a name, two for a long one, and the file once. */
static void test_string_reads(void **state)
{
	size_t n[2], n_strings = shape_of(FILE_OF)->n_reads;

	(void)state;
	has_process = true;
	for (int has_strings = 0; has_strings < 2; has_strings++) {
		process = releases[R311];
		process.has_strings = (__u8)has_strings;
		n[has_strings] = reads_of(LETTERS);
	}
	for (const char *c = LETTERS; *c; c++)
		n_strings += shape_of(*c)->n_reads;
	assert_int_equal(n[1] - n[0], n_strings);
}

/* Names near the end of a page: inside of memory, and at its end. */
static void test_string_edges(void **state)
{
	static const struct {
		uint64_t before; /* from the string to the end of the page */
		struct string_shape shape;
	} rows[] = {
		{128, {64, UINT64_MAX, 0x64, 48 + 24, 40, 1}},
		{120, {64, UINT64_MAX, 0x64, 48 + 24, 40, 2}},
		{120, {64, 5, 0x64, 0, 0, 1}},
		{64, {15, UINT64_MAX, 0x64, 48, 16, 2}},
		{40, {15, 5, 0x64, 0, 0, 1}},
	};
	static const uint64_t ends[] = {CODES + 0x2000, CODES + sizeof(codes.words)};
	size_t usual;

	(void)state;
	process = releases[R311];
	has_process = true;
	usual = reads_of("b");
	assert_int_equal(shape_of('b')->n_reads, 1);
	for (size_t i = 0; i < 2 * array_size(rows); i++) {
		const struct string_shape *s = &rows[i / 2].shape;
		const uint64_t at = ends[i % 2] - rows[i / 2].before;
		struct frame_record frame;
		struct walked w;

		build("L", "b");
		put_word(CODE('b') + process.code_qualname, at);
		put_word(at + 16, s->length);
		put_word(at + 24, s->hash);
		if (rows[i / 2].before > 40)
			put_word(at + 32, s->state);
		for (uint64_t k = 48; k < rows[i / 2].before; k += 8)
			put_word(at + k, 0x6162636465666768 + k);
		walk_built("L", &python_walk, &w);
		assert_int_equal(frame_decode(w.frames, w.walk.n, &frame), 2);
		assert_int_equal(frame.words[1] >> 32, check_named('b', s));
		assert_int_equal(n_reads - usual, s->n_reads - 1);
	}
}

/* ---------------------------------------------------------------- the memo of code objects */

#define INTERPRETER (THREAD + 0x1000)
#define COUNT_AT    (THREAD + 0x1100)

/* Frames of code that is in the memo cost no read. @ret: of the walk. */
static size_t reads_with_memo(const char *python)
{
	struct walked w;
	char got[64];

	walk_built("L", &python_walk, &w);
	spell(&w, got);
	assert_string_equal(got, python);
	return n_reads;
}

static void build_counted(const char *python, uint64_t count)
{
	build("L", python);
	put_word(TSTATE + PYTHON_THREAD_INTERPRETER, INTERPRETER);
	put_word(COUNT_AT, count);
}

/* A process of 3.13 with an empty memo. */
static void begin_memo(void)
{
	process = releases[R313];
	has_process = has_memo = true;
	process.interpreter = INTERPRETER;
	process.code_count = COUNT_AT;
	memset(&memo, 0, sizeof(memo));
}

static void test_memo(void **state)
{
	size_t all;

	(void)state;
	begin_memo();
	build_counted("abcd", 7);
	all = reads_with_memo("abcd");
	/* the innermost one is read each time: it may be no whole frame */
	assert_int_equal(reads_with_memo("abcd"), all - 3);
	assert_int_equal(reads_with_memo("abcd"), all - 3);
	/* of another process, or after another code object was made: all are read */
	identity = 1;
	assert_int_equal(reads_with_memo("abcd"), all);
	identity = 0;
	put_word(COUNT_AT, 8);
	assert_int_equal(reads_with_memo("abcd"), all);
	/* a counter of 32 bits */
	put_word(COUNT_AT, 1ull << 32 | 8);
	assert_int_equal(reads_with_memo("abcd"), all - 3);
	/* an overflow, another interpreter, and a process without a count: neither used nor added
	 * to */
	put_word(COUNT_AT, 1ull << 32);
	assert_int_equal(reads_with_memo("abcd"), all);
	assert_int_equal(reads_with_memo("abcd"), all);
	put_word(COUNT_AT, 8);
	put_word(TSTATE + PYTHON_THREAD_INTERPRETER, INTERPRETER + 8);
	assert_int_equal(reads_with_memo("abcd"), all - 1);
	process.interpreter = 0;
	assert_int_equal(reads_with_memo("abcd"), all - 2);
	has_memo = false;
}

/* The check of the second frame, when another object is at the code's address. */
static uint64_t check_with(uint64_t number, uint64_t count)
{
	struct frame_record frame;
	struct walked w;

	build_counted("abcd", count);
	put_word(CODE('b') + process.code_name, number);
	walk_built("L", &python_walk, &w);
	assert_int_equal(frame_decode(w.frames + 2, w.walk.n - 2, &frame), 2);
	assert_true(frame.words[0] == CODE('b'));
	return frame.words[1] >> 32;
}

static void test_memo_reused(void **state)
{
	uint64_t first;

	(void)state;
	begin_memo();
	first = check_with(6, 7);
	assert_true(check_with(7, 8) != first);
	assert_true(check_with(6, 9) == first);
	has_memo = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),	     cmocka_unit_test(test_circle),
		cmocka_unit_test(test_threads),	     cmocka_unit_test(test_random),
		cmocka_unit_test(test_reads),	     cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_string_reads), cmocka_unit_test(test_string_edges),
		cmocka_unit_test(test_memo),	     cmocka_unit_test(test_memo_reused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
