/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_CURSOR_H
#define PODPROF_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct cursor - a bounded reader over foreign bytes
 * @start: first byte, for cursor_pos()
 * @pos:   next byte to be read
 * @end:   one past the last byte
 *
 * The only way to read the contents of a file or record that somebody else wrote. Every cursor_*()
 * below checks, copies and moves on success; on failure it returns false and neither the cursor nor
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

/* Move to @off bytes after the start. False if that is past the end. */
bool cursor_seek(struct cursor *c, size_t off) CURSOR_MUST_CHECK;
bool cursor_skip(struct cursor *c, size_t n) CURSOR_MUST_CHECK;

bool cursor_u8(struct cursor *c, uint8_t *ret) CURSOR_MUST_CHECK;
bool cursor_u16(struct cursor *c, uint16_t *ret) CURSOR_MUST_CHECK;
bool cursor_u32(struct cursor *c, uint32_t *ret) CURSOR_MUST_CHECK;
bool cursor_u64(struct cursor *c, uint64_t *ret) CURSOR_MUST_CHECK;

/* LEB128 (DWARF 5 section 7.6). False for a number that does not end or does not fit 64 bits. */
bool cursor_uleb(struct cursor *c, uint64_t *ret) CURSOR_MUST_CHECK;
bool cursor_sleb(struct cursor *c, int64_t *ret) CURSOR_MUST_CHECK;

/* @ret borrows @n bytes in place. */
bool cursor_bytes(struct cursor *c, size_t n, const void **ret) CURSOR_MUST_CHECK;

/* @ret borrows a string that ends with a NUL inside the bounds; moves past the NUL. */
bool cursor_cstr(struct cursor *c, const char **ret) CURSOR_MUST_CHECK;

/* @ret reads the next @n bytes and cannot leave them; @c moves past them. */
bool cursor_sub(struct cursor *c, size_t n, struct cursor *ret) CURSOR_MUST_CHECK;

#endif
