/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up stack with frames of V8, and the walk over it with V8's plan and step. As with
 * walkbuilt.h, each test includes this text once; the test's machine is the one that is defined. */

#include <string.h>

#include "support/test.h"

#define WALK_RUNTIMES
#include "support/walkbuilt.h"

#define STACK	0x7ffc00000000ull
#define TEXT	0x500000000000ull
#define CODE	(TEXT + 0x40)
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
#define ID	 (9ull << 32)	   /* the script's */
#define OTHER	 (OBJECTS + 0x700) /* another script */
#define OTHER_ID (10ull << 32)

/* Frame pointers. */
#define FP	  (STACK + 0x200)
#define CALLER_FP (STACK + 0x300)
#define NATIVE_FP (STACK + 0x400)

/* Of each walk. */
#define STEP .step = &v8_walk, .mode = SETTINGS_UNWIND_AUTO

#define REGION_WORDS 0x200
static struct region {
	uint64_t start;
	uint64_t words[REGION_WORDS];
} stack = {STACK, {0}}, text = {TEXT, {0}}, objects = {OBJECTS, {0}};
static struct region *const regions[] = {&stack, &text, &objects};

static struct v8_process process = {
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

#include "support/walkregions.h"

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

/* In releases that have it. */
static uint32_t id_of(uint64_t function)
{
	return (uint32_t)function >> 8;
}

static void put_function(uint64_t function, uint64_t data)
{
	const uint64_t shared = function + 0x40;

	put_word(function + 24, shared + 1);
	put_word(shared + 8, data);
	put_word(shared + 16, function + 2);
	put_word(shared + 32, SCRIPT + 1);
	put_word(SCRIPT + 64, ID);
	put_word(OTHER + 64, OTHER_ID);
	put_word(shared + 48, 7ull << 32);
	put_word(shared + 56, 1ull << 32 | id_of(function));
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
static void build(const void *code, size_t n_code)
{
	for (size_t i = 0; i < array_size(regions); i++)
		memset(regions[i]->words, 0, sizeof(regions[i]->words));
	put(CODE, code, n_code);
	put_function(LEAF, BYTECODE + 1);
	put_function(CALLER, BYTECODE + 1);
	put_function(INNATE, 5ull << 32);
	put_frame(FP, CALLER_FP, CODE + 8, CONTEXT + 1, LEAF);
	put_frame(CALLER_FP, NATIVE_FP, NATIVE + 1, CONTEXT + 1, CALLER);
}

/* An object's. */
static uint64_t word_of(uint64_t address)
{
	return objects.words[(address - OBJECTS) / 8];
}

static uint32_t mix(uint64_t function)
{
	const uint64_t script = word_of(function + 0x60);
	uint64_t id = script == SCRIPT + 1 ? ID : script == OTHER + 1 ? OTHER_ID : 0;
	uint64_t h = 0;

	if (process.shared_id)
		id = id_of(function);
	h = walk_hash(walk_hash(h, function + 2), script);
	h = walk_hash(walk_hash(h, id), 7);
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
