// SPDX-License-Identifier: Apache-2.0
#include "support/v8image.h"

#include <string.h>

#include "support/flatmemory.h"

const struct v8_image v8image_of_11 = {
	.version = {11, 3, 244},
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
			[V8_BYTECODE_TABLE] = 32,
		},
};

enum map { SHARED, SCOPE, SCRIPT, ARRAY, STRING, BYTECODE, CONS, THIN, MAPS };

static const uint16_t types[MAPS] = {
	[SHARED] = 262, [SCOPE] = 261,	  [SCRIPT] = 167, [ARRAY] = 175,
	[STRING] = 8,	[BYTECODE] = 191, [CONS] = 41,	  [THIN] = 45,
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
}
