// SPDX-License-Identifier: Apache-2.0
#include "base/cursor.h"

#include <string.h>

void cursor_init(struct cursor *c, const void *data, size_t n)
{
	c->start = data;
	c->pos = c->start;
	/* NULL + 0 is undefined in C, and an empty file is a usual input */
	c->end = n ? c->start + n : c->start;
}

bool cursor_seek(struct cursor *c, size_t off)
{
	if (off > (size_t)(c->end - c->start))
		return false;
	c->pos = off ? c->start + off : c->start;
	return true;
}

/*
 * The bits of one LEB128 number. Padding is legal ("80 80 00" is zero), so a long number is refused
 * only if a bit would be lost: above bit 63 only copies of @fill may follow.
 */
static bool cursor_leb(struct cursor *c, bool is_signed, uint64_t *ret)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	const uint8_t *p = c->pos;
	uint8_t byte;

	do {
		if (p == c->end)
			return false;
		byte = *p++;
		if (shift < 63) {
			value |= (uint64_t)(byte & 0x7f) << shift;
		} else {
			uint8_t low = byte & 0x7f;
			uint8_t fill =
				is_signed && (shift == 63 ? low & 1 : value >> 63) ? 0x7f : 0;

			if (shift == 63)
				value |= (uint64_t)(low & 1) << 63;
			if (is_signed ? low != fill : low > (shift == 63 ? 1 : 0))
				return false;
		}
		shift += shift < 70 ? 7 : 0;
	} while (byte & 0x80);

	if (is_signed && shift < 64 && byte & 0x40)
		value |= ~0ull << shift;
	c->pos = p;
	*ret = value;
	return true;
}

bool cursor_uleb_long(struct cursor *c, uint64_t *ret)
{
	return cursor_leb(c, false, ret);
}

bool cursor_sleb_long(struct cursor *c, int64_t *ret)
{
	uint64_t bits;

	if (!cursor_leb(c, true, &bits))
		return false;
	*ret = (int64_t)bits;
	return true;
}

bool cursor_bytes(struct cursor *c, size_t n, const void **ret)
{
	const void *at = c->pos;

	if (!cursor_skip(c, n))
		return false;
	*ret = at;
	return true;
}

bool cursor_cstr(struct cursor *c, const char **ret)
{
	const uint8_t *nul = cursor_left(c) ? memchr(c->pos, 0, cursor_left(c)) : NULL;

	if (!nul)
		return false;
	*ret = (const char *)c->pos;
	c->pos = nul + 1;
	return true;
}

bool cursor_sub(struct cursor *c, size_t n, struct cursor *ret)
{
	const void *at;

	if (!cursor_bytes(c, n, &at))
		return false;
	cursor_init(ret, at, n);
	return true;
}
