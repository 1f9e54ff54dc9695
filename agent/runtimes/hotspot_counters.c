// SPDX-License-Identifier: Apache-2.0
/*
 * The area begins with 32 bytes: a magic number, the byte order, the version, the bytes in use, and
 * the place and number of the entries. An entry has its length, the places of its name and its
 * data, both from the entry's beginning, and the data's type. An array has a length; a counter has
 * none.
 */
#include "runtimes/hotspot_counters.h"

#include <string.h>

#include "base/cursor.h"

#define MAGIC	  "\xca\xfe\xc0\xc0"
#define LITTLE	  1
#define MAJOR	  2
#define TYPE_LONG 'J'

struct entry {
	uint32_t bytes, name, length, data;
	uint8_t type;
};

static bool read_header(struct cursor *c, uint32_t *ret_first, uint32_t *ret_n)
{
	const void *magic;
	uint8_t order, major;

	return cursor_bytes(c, 4, &magic) && memcmp(magic, MAGIC, 4) == 0 && cursor_u8(c, &order) &&
	       order == LITTLE && cursor_u8(c, &major) && major == MAJOR && cursor_seek(c, 24) &&
	       cursor_u32(c, ret_first) && cursor_u32(c, ret_n);
}

static bool read_entry(struct cursor c, struct entry *ret)
{
	return cursor_u32(&c, &ret->bytes) && cursor_u32(&c, &ret->name) &&
	       cursor_u32(&c, &ret->length) && cursor_u8(&c, &ret->type) && cursor_skip(&c, 3) &&
	       cursor_u32(&c, &ret->data);
}

/* @c has the entry. */
static bool is_counter(struct cursor c, const struct entry *e, const char *name)
{
	struct cursor data = c;
	const char *text;
	uint64_t value;

	return e->type == TYPE_LONG && !e->length && cursor_seek(&c, e->name) &&
	       cursor_cstr(&c, &text) && strcmp(text, name) == 0 && cursor_seek(&data, e->data) &&
	       cursor_u64(&data, &value);
}

bool hotspot_counters_find(const uint8_t *bytes, size_t n, const char *name, size_t *ret)
{
	struct cursor all, one;
	uint32_t first, n_entries;
	struct entry e;

	cursor_init(&all, bytes, n);
	if (!read_header(&all, &first, &n_entries) || !cursor_seek(&all, first))
		return false;
	for (; n_entries; n_entries--) {
		const size_t at = cursor_pos(&all);

		/* each entry is longer than nothing: at most n steps */
		if (!read_entry(all, &e) || !e.bytes || !cursor_sub(&all, e.bytes, &one))
			return false;
		if (is_counter(one, &e, name) && (at + e.data) % 8 == 0) {
			*ret = at + e.data;
			return true;
		}
	}
	return false;
}
