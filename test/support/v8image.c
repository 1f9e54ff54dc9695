// SPDX-License-Identifier: Apache-2.0
#include "support/v8image.h"

#include <elf.h>
#include <string.h>

#include "support/flatmemory.h"

const struct v8_image v8image_of_11 = {
	.version = {11, 3, 244},
	.other_types = {[V8_OTHER_REGEXP] = 27,
			[V8_OTHER_WASM] = 4,
			[V8_OTHER_JS_TO_WASM] = V8_FRAME_TYPES,
			[V8_OTHER_WASM_TO_JS] = V8_FRAME_TYPES,
			[V8_OTHER_WASM_EXIT] = V8_FRAME_TYPES},
	.constants =
		{
			[V8_TAG_MASK] = 1,	   [V8_TAG] = 1,
			[V8_SMI_SHIFT] = 31,	   [V8_FRAME_MARKER] = -8,
			[V8_FRAME_FUNCTION] = -16, [V8_FRAME_ARRAY] = -32,
			[V8_FRAME_OFFSET] = -40,   [V8_FUNCTION_SHARED] = 24,
			[V8_SHARED_DATA] = 8,	   [V8_SHARED_NAME] = 16,
			[V8_SHARED_SCRIPT] = 32,   [V8_SHARED_LENGTH] = 40,
			[V8_MAP_TYPE] = 12,	   [V8_TYPE_SHARED] = 262,
			[V8_TYPE_SCOPE] = 261,	   [V8_TYPE_SCRIPT] = 167,
			[V8_TYPE_ARRAY] = 175,	   [V8_SCRIPT_NAME] = 16,
			[V8_SCRIPT_SOURCE] = 8,	   [V8_SCRIPT_LINES] = 56,
			[V8_ARRAY_N] = 8,	   [V8_ARRAY_DATA] = 16,
			[V8_SCOPE_LOCALS] = 2,	   [V8_SCOPE_FIRST] = 3,
			[V8_NO_STRING] = 128,	   [V8_STRING_KINDS] = 7,
			[V8_STRING_FLAT] = 0,	   [V8_STRING_CONS] = 1,
			[V8_STRING_EXTERNAL] = 2,  [V8_STRING_SLICED] = 3,
			[V8_STRING_THIN] = 5,	   [V8_STRING_BYTES] = 8,
			[V8_STRING_N] = 12,	   [V8_STRING_CHARS] = 16,
			[V8_CONS_FIRST] = 16,	   [V8_CONS_SECOND] = 24,
			[V8_SLICED_PARENT] = 16,   [V8_SLICED_OFFSET] = 24,
			[V8_THIN_ACTUAL] = 16,	   [V8_EXTERNAL_RESOURCE] = 16,
			[V8_TYPE_BYTECODE] = 191,  [V8_BYTECODE_DATA] = 54,
			[V8_BYTECODE_TABLE] = 32,  [V8_TYPE_CODE] = 245,
			[V8_TYPE_STREAM] = 252,	   [V8_CODE_HEADER] = 16,
			[V8_CODE_START] = 40,	   [V8_CODE_FLAGS] = 48,
			[V8_CODE_SIZE] = 56,	   [V8_CODE_DATA] = 16,
			[V8_CODE_POSITIONS] = 24,  [V8_KIND_MASK] = 15,
			[V8_KIND_BASELINE] = 11,   [V8_DEOPT_SHARED] = 6,
			[V8_DEOPT_LITERALS] = 2,   [V8_DEOPT_INLINED] = 7,
		},
	.sizes = V8IMAGE_SIZES,
	.n_sizes = 5,
	.has_code = true,
	.machine = EM_X86_64,
};

enum map { SHARED, SCOPE, SCRIPT, ARRAY, STRING, BYTECODE, CONS, THIN, CODE, STREAM, MAPS };

static const uint16_t types[MAPS] = {
	[SHARED] = 262,	  [SCOPE] = 261, [SCRIPT] = 167, [ARRAY] = 175, [STRING] = 8,
	[BYTECODE] = 191, [CONS] = 41,	 [THIN] = 45,	 [CODE] = 245,	[STREAM] = 252,
};

static void put(uint8_t *bytes, uint64_t at, uint64_t word)
{
	memcpy(bytes + at - FLATMEMORY_BASE, &word, sizeof(word));
}

static uint64_t integer(uint32_t value)
{
	return (uint64_t)value << 32;
}

static void put_map(uint8_t *bytes, uint64_t at, enum map map)
{
	put(bytes, at, V8IMAGE_MAPS + 16 * (uint64_t)map + 1);
}

static void put_string(uint8_t *bytes, uint64_t at, const char *text)
{
	put_map(bytes, at, STRING);
	put(bytes, at + 8, integer((uint32_t)strlen(text)));
	memcpy(bytes + at - FLATMEMORY_BASE + 16, text, strlen(text));
}

/* A number of a table, with its sign in the lowest bit. */
static uint8_t *put_number(uint8_t *at, int64_t number)
{
	uint64_t left = (uint64_t)number << 1 ^ (uint64_t)(number >> 63);

	for (; left > 0x7f; left >>= 7)
		*at++ = (uint8_t)(left | 0x80);
	*at++ = (uint8_t)left;
	return at;
}

/* The source position of a character, in the inlined call @inlined; 0: in none. */
static int64_t position_of(int64_t character, int64_t inlined)
{
	return inlined << 31 | (character + 1) << 1;
}

static void put_code(uint8_t *bytes, uint64_t at, uint64_t stream, uint32_t size, uint32_t kind)
{
	put_map(bytes, at, CODE);
	put(bytes, at + 40, stream + 16);
	put(bytes, at + 48, kind);
	put(bytes, at + 56, size);
	put_map(bytes, stream, STREAM);
	put(bytes, stream + 8, at + 1);
}

static void put_optimised(uint8_t *bytes)
{
	uint8_t *table = bytes + V8IMAGE_POSITIONS - FLATMEMORY_BASE + 16, *end;

	put_map(bytes, V8IMAGE_INNER, SHARED);
	put(bytes, V8IMAGE_INNER + 16, V8IMAGE_INNER + 64 + 1);
	put(bytes, V8IMAGE_INNER + 32, V8IMAGE_SCRIPT + 1);
	put(bytes, V8IMAGE_INNER + 48, integer(8));
	put_map(bytes, V8IMAGE_INNER + 64, SCOPE);
	put(bytes, V8IMAGE_INNER + 64 + 8, integer(1 << 12));
	put(bytes, V8IMAGE_INNER + 64 + 32, V8IMAGE_INNER + 144 + 1);
	put(bytes, V8IMAGE_INNER + 64 + 48, integer(22));
	put(bytes, V8IMAGE_INNER + 64 + 56, integer(42));
	put_string(bytes, V8IMAGE_INNER + 144, "inner");
	put_code(bytes, V8IMAGE_CODE, V8IMAGE_STREAM, 64, 13);
	put(bytes, V8IMAGE_CODE + 16, V8IMAGE_MADE_OF + 1);
	put(bytes, V8IMAGE_CODE + 24, V8IMAGE_POSITIONS + 1);
	put_map(bytes, V8IMAGE_MADE_OF, ARRAY);
	put(bytes, V8IMAGE_MADE_OF + 8, integer(20));
	put(bytes, V8IMAGE_MADE_OF + 16, V8IMAGE_TRANSLATIONS + 1);
	put(bytes, V8IMAGE_MADE_OF + 16 + 8 * 6, V8IMAGE_SHARED + 1);
	put(bytes, V8IMAGE_MADE_OF + 16 + 8 * 2, V8IMAGE_LITERALS + 1);
	put(bytes, V8IMAGE_MADE_OF + 16 + 8 * 7, V8IMAGE_INLINED + 1);
	put_map(bytes, V8IMAGE_LITERALS, ARRAY);
	put(bytes, V8IMAGE_LITERALS + 8, integer(2));
	put(bytes, V8IMAGE_LITERALS + 16, V8IMAGE_INNER + 1);
	put(bytes, V8IMAGE_LITERALS + 24, V8IMAGE_SHARED + 1);
	put(bytes, V8IMAGE_INLINED + 8, integer(16));
	put(bytes, V8IMAGE_INLINED + 16, (uint64_t)position_of(24, 0));
	end = put_number(table, 0);
	end = put_number(end, position_of(22, 0));
	end = put_number(end, 16);
	end = put_number(end, position_of(37, 1) - position_of(22, 0));
	put(bytes, V8IMAGE_POSITIONS + 8, integer((uint32_t)(end - table)));
}

/* The frames of one place that leaves at once, and of two calls. */
static void put_deopt(uint8_t *bytes)
{
	/* leaf() at bytecode 0; leaf() and inner() at 4, the same again */
	static const uint8_t translations[] = {14, 0, 2, 2, 1, 0, 2, 0,	 14, 0, 4, 4, 1,
					       8,  2, 0, 1, 8, 0, 0, 14, 12, 4, 4, 46};

	put(bytes, V8IMAGE_TRANSLATIONS + 8, integer(sizeof(translations)));
	memcpy(bytes + V8IMAGE_TRANSLATIONS - FLATMEMORY_BASE + 16, translations,
	       sizeof(translations));
	put(bytes, V8IMAGE_PLACE(0) - 16, integer(1));
	put(bytes, V8IMAGE_PLACE(0) - 8, integer(2));
	put(bytes, V8IMAGE_PLACE(0) + 16, integer(UINT32_MAX));
	put(bytes, V8IMAGE_PLACE(1) + 8, integer(8));
	put(bytes, V8IMAGE_PLACE(1) + 16, integer(21));
	put(bytes, V8IMAGE_PLACE(2) + 8, integer(20));
	put(bytes, V8IMAGE_PLACE(2) + 16, integer(40));
}

static void put_baseline(uint8_t *bytes)
{
	/* before the bytecode, and of each bytecode */
	static const uint8_t lengths[] = {4, 8, 8};
	/* of the last number; the others are unknown */
	static const uint8_t sizes[] = {0, 0, 0, 0, 4, 0, 0, 0, 0, 6, 0, 0, 0, 0, 8};

	put_code(bytes, V8IMAGE_BASELINE, V8IMAGE_BASELINE_STREAM, 24, 11);
	put(bytes, V8IMAGE_BASELINE + 16, V8IMAGE_BYTECODE + 1);
	put(bytes, V8IMAGE_BASELINE + 24, V8IMAGE_LENGTHS + 1);
	put(bytes, V8IMAGE_LENGTHS + 8, integer(sizeof(lengths)));
	memcpy(bytes + V8IMAGE_LENGTHS - FLATMEMORY_BASE + 16, lengths, sizeof(lengths));
	put(bytes, V8IMAGE_BYTECODE + 8, integer(8));
	memcpy(bytes + V8IMAGE_BYTECODE - FLATMEMORY_BASE + 54, "\4\0\0\0\4\0\0\0", 8);
	memcpy(bytes + V8IMAGE_SIZES - FLATMEMORY_BASE, sizes, sizeof(sizes));
}

void v8image_build(uint8_t ret[V8IMAGE_BYTES])
{
	/* bytecode 0 at character 10, bytecode 4 at 22: twice the distance, each position 1 higher
	 */
	static const uint8_t table[] = {0, 44, 8, 48};

	memset(ret, 0, V8IMAGE_BYTES);
	put(ret, FLATMEMORY_BASE, V8IMAGE_BUILTINS);
	put(ret, FLATMEMORY_BASE + 8, 512);
	for (uint64_t i = 0; i < MAPS; i++)
		put(ret, V8IMAGE_MAPS + 16 * i + 8, integer(types[i]));
	put_map(ret, V8IMAGE_SHARED, SHARED);
	put(ret, V8IMAGE_SHARED + 8, V8IMAGE_BYTECODE + 1);
	put(ret, V8IMAGE_SHARED + 16, V8IMAGE_SCOPE + 1);
	put(ret, V8IMAGE_SHARED + 32, V8IMAGE_SCRIPT + 1);
	put(ret, V8IMAGE_SHARED + 48, integer(7));
	put_map(ret, V8IMAGE_SCOPE, SCOPE);
	put(ret, V8IMAGE_SCOPE + 8, integer(1 << 12));
	put(ret, V8IMAGE_SCOPE + 32, V8IMAGE_NAME + 1);
	put(ret, V8IMAGE_SCOPE + 48, integer(8));
	put(ret, V8IMAGE_SCOPE + 56, integer(40));
	put_string(ret, V8IMAGE_NAME, "leaf");
	put_map(ret, V8IMAGE_SCRIPT, SCRIPT);
	put(ret, V8IMAGE_SCRIPT + 8, V8IMAGE_SOURCE + 1);
	put(ret, V8IMAGE_SCRIPT + 16, V8IMAGE_FILE + 1);
	put(ret, V8IMAGE_SCRIPT + 64, integer(V8IMAGE_ID));
	put_string(ret, V8IMAGE_SOURCE, "let a;\nfunction f() {\n\treturn a + 1;\n}\nf();\n");
	put_string(ret, V8IMAGE_FILE, "file:///srv/a.js");
	put_map(ret, V8IMAGE_BYTECODE, BYTECODE);
	put(ret, V8IMAGE_BYTECODE + 32, V8IMAGE_TABLE + 1);
	put(ret, V8IMAGE_TABLE + 8, integer(sizeof(table)));
	memcpy(ret + V8IMAGE_TABLE - FLATMEMORY_BASE + 16, table, sizeof(table));
	/* lines as V8 counts them; the script does not refer to these */
	put_map(ret, V8IMAGE_ENDS, ARRAY);
	put(ret, V8IMAGE_ENDS + 8, integer(5));
	put(ret, V8IMAGE_ENDS + 16, integer(6));
	put(ret, V8IMAGE_ENDS + 24, integer(21));
	put(ret, V8IMAGE_ENDS + 32, integer(36));
	put(ret, V8IMAGE_ENDS + 40, integer(38));
	put(ret, V8IMAGE_ENDS + 48, integer(43));
	put_optimised(ret);
	put_deopt(ret);
	put_baseline(ret);
}
