// SPDX-License-Identifier: Apache-2.0
#include "support/v8image.h"

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
