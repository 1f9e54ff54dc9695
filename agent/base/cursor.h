/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_CURSOR_H
#define PODPROF_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/**
 * struct cursor - a bounded reader over foreign bytes
 * @start: first byte, for cursor_pos()
 * @pos:   next byte to read
 * @end:   end of the bytes, exclusive
 *
 * The only way to read the contents of a foreign file or record. Every cursor_*() below checks,
 * copies and moves on success. On failure the function returns false, and neither the cursor nor
 * the output changes. All numbers are little-endian. The cursor borrows the bytes.
 */
struct cursor {
	const uint8_t *start;
	const uint8_t *pos;
	const uint8_t *end;
};

#define CURSOR_MUST_CHECK __attribute__((warn_unused_result))

void cursor_init(struct cursor *c, const void *data, size_t n);

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->pos);
}

/* Bytes read so far, from where cursor_init() or cursor_sub() put the start. */
static inline size_t cursor_pos(const struct cursor *c)
{
	return (size_t)(c->pos - c->start);
}

/* Move to @off bytes after the start. False if @off is past the end. */
bool cursor_seek(struct cursor *c, size_t off) CURSOR_MUST_CHECK;

/* Inline, like the one-byte numbers below: tables of unwind rows are read with these functions, a
 * hundred million bytes, opcode by opcode. */
static inline CURSOR_MUST_CHECK bool cursor_skip(struct cursor *c, size_t n)
{
	if (n > cursor_left(c))
		return false;
	/* an empty cursor may have no bytes at all, and NULL + 0 is undefined in C */
	if (n)
		c->pos += n;
	return true;
}

#define CURSOR_FIXED(name, type)                                               \
	static inline CURSOR_MUST_CHECK bool name(struct cursor *c, type *ret) \
	{                                                                      \
		if (sizeof(*ret) > cursor_left(c))                             \
			return false;                                          \
		memcpy(ret, c->pos, sizeof(*ret));                             \
		c->pos += sizeof(*ret);                                        \
		return true;                                                   \
	}                                                                      \
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "copied as it is")

CURSOR_FIXED(cursor_u8, uint8_t);
CURSOR_FIXED(cursor_u16, uint16_t);
CURSOR_FIXED(cursor_u32, uint32_t);
CURSOR_FIXED(cursor_u64, uint64_t);
#undef CURSOR_FIXED

/* LEB128 (DWARF 5 section 7.6). False for a number without an end or beyond 64 bits. */
bool cursor_uleb_long(struct cursor *c, uint64_t *ret) CURSOR_MUST_CHECK;
bool cursor_sleb_long(struct cursor *c, int64_t *ret) CURSOR_MUST_CHECK;

static inline CURSOR_MUST_CHECK bool cursor_uleb(struct cursor *c, uint64_t *ret)
{
	if (c->pos == c->end)
		return false;
	if (!(c->pos[0] & 0x80)) {
		*ret = *c->pos++;
		return true;
	}
	if (c->end - c->pos < 2 || c->pos[1] & 0x80)
		return cursor_uleb_long(c, ret);
	*ret = (c->pos[0] & 0x7fu) | (uint64_t)c->pos[1] << 7;
	c->pos += 2;
	return true;
}

static inline CURSOR_MUST_CHECK bool cursor_sleb(struct cursor *c, int64_t *ret)
{
	if (c->pos == c->end || *c->pos & 0x80)
		return cursor_sleb_long(c, ret);
	*ret = (int64_t)(*c->pos++ ^ 0x40) - 0x40; /* bit 6 is the sign */
	return true;
}

/* @ret borrows @n bytes in place. */
bool cursor_bytes(struct cursor *c, size_t n, const void **ret) CURSOR_MUST_CHECK;

/* @ret borrows a string that ends with a NUL inside the bounds. The cursor moves past the NUL. */
bool cursor_cstr(struct cursor *c, const char **ret) CURSOR_MUST_CHECK;

/* @ret reads the next @n bytes and cannot leave these bytes; @c moves past all of them. */
bool cursor_sub(struct cursor *c, size_t n, struct cursor *ret) CURSOR_MUST_CHECK;

#endif
