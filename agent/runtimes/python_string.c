// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python_string.h"

#include <string.h>

/* Bits of the state above the kind, which is 3 bits wide. */
#define STATE_KIND_BITS 7u
#define STATE_COMPACT	8u
#define STATE_ASCII	16u

size_t python_string_header_bytes(const struct python_layout *layout)
{
	const size_t n = layout->string_length + sizeof(int64_t);
	const size_t n_state = layout->string_state + sizeof(uint32_t);
	const size_t most = n > n_state ? n : n_state;

	return most < PYTHON_STRING_HEADER_BYTES ? most : PYTHON_STRING_HEADER_BYTES;
}

bool python_string_parse(const struct python_layout *layout,
			 const uint8_t header[PYTHON_STRING_HEADER_BYTES],
			 struct python_string *ret)
{
	uint32_t state, kind;
	int64_t n;

	if (layout->string_length > PYTHON_STRING_HEADER_BYTES - sizeof(n) ||
	    layout->string_state > PYTHON_STRING_HEADER_BYTES - sizeof(state))
		return false;
	memcpy(&n, header + layout->string_length, sizeof(n));
	memcpy(&state, header + layout->string_state, sizeof(state));
	state >>= layout->string_kind;
	kind = state & STATE_KIND_BITS;
	if (n < 0 || !(state & STATE_COMPACT) || (kind != 1 && kind != 2 && kind != 4))
		return false;
	ret->n = (uint64_t)n;
	ret->width = (uint8_t)kind;
	ret->offset = state & STATE_ASCII ? layout->string_ascii : layout->string_wide;
	return true;
}

/* The bytes of @c in UTF-8; their number. */
static size_t encode(uint32_t c, char ret[4])
{
	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = '?';
	if (c < 0x80) {
		ret[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		ret[0] = (char)(0xc0 | c >> 6);
		ret[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		ret[0] = (char)(0xe0 | c >> 12);
		ret[1] = (char)(0x80 | (c >> 6 & 0x3f));
		ret[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	ret[0] = (char)(0xf0 | c >> 18);
	ret[1] = (char)(0x80 | (c >> 12 & 0x3f));
	ret[2] = (char)(0x80 | (c >> 6 & 0x3f));
	ret[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

void python_string_utf8(const uint8_t *chars, size_t n, uint8_t width, char *ret, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t c = 0;
		char bytes[4];
		size_t k;

		memcpy(&c, chars + i * width, width); /* little-endian */
		k = encode(c, bytes);
		if (k >= size - at)
			break;
		memcpy(ret + at, bytes, k);
		at += k;
	}
	ret[at] = 0;
}
