// SPDX-License-Identifier: Apache-2.0
/*
 * A string is flat, outside of the heap (external), or refers to other strings: thin strings to an
 * equal string, sliced strings to a longer string, cons strings to two parts. After V8 has read a
 * cons string once, the first part has all characters.
 */
#include "runtimes/v8_string.h"

#include <stdbool.h>
#include <string.h>

#include "procmap/memory.h"
#include "runtimes/python_string.h"

/* Characters of one piece that are read for a name. */
#define PIECE_CHARS 512
/* A bit of the type of external strings that do not know their characters. */
#define UNCACHED    16

static uint64_t offset_of(const struct v8_heap *heap, enum v8_constant constant)
{
	return (uint64_t)heap->constants[constant];
}

/* One string on the way to the characters. */
struct link {
	uint64_t at;
	uint32_t n;
	uint32_t width;
	int kind; /* of heap->constants */
	bool is_uncached;
};

static int read_link(const struct v8_heap *heap, uint64_t string, struct link *ret)
{
	const int32_t *c = heap->constants;
	uint16_t type = 0;
	int r = v8_type_read(heap, string, &type);

	if (!r && type >= c[V8_NO_STRING])
		return V8_ODD;
	ret->at = string;
	ret->width = type & c[V8_STRING_BYTES] ? 1 : 2;
	ret->kind = type & c[V8_STRING_KINDS];
	ret->is_uncached = type & UNCACHED;
	return r ? r : v8_bytes_read(heap, string, offset_of(heap, V8_STRING_N), &ret->n, 4);
}

/* The two parts of a cons string; @ret_n: characters of the second. */
static int read_cons(const struct v8_heap *heap, uint64_t string, uint64_t ret[2], uint32_t *ret_n)
{
	int r = v8_word_read(heap, string, offset_of(heap, V8_CONS_FIRST), &ret[0]);

	if (!r)
		r = v8_word_read(heap, string, offset_of(heap, V8_CONS_SECOND), &ret[1]);
	return r ? r : v8_bytes_read(heap, ret[1], offset_of(heap, V8_STRING_N), ret_n, 4);
}

/* The string that @link refers to, into *@ret; its first character is @ret_skip further. */
static int follow(const struct v8_heap *heap, const struct link *link, uint64_t *ret,
		  uint64_t *ret_skip)
{
	const int32_t *c = heap->constants;
	uint64_t parts[2], offset;
	uint32_t n = 0;
	int r;

	if (link->kind == c[V8_STRING_THIN])
		return v8_word_read(heap, link->at, offset_of(heap, V8_THIN_ACTUAL), ret);
	if (link->kind == c[V8_STRING_CONS]) {
		r = read_cons(heap, link->at, parts, &n);
		*ret = parts[0];
		return !r && n ? V8_ODD : r;
	}
	if (link->kind != c[V8_STRING_SLICED])
		return V8_ODD;
	r = v8_word_read(heap, link->at, offset_of(heap, V8_SLICED_OFFSET), &offset);
	if (!r && (!v8_is_integer(offset) || v8_integer(offset) < 0))
		return V8_ODD;
	if (!r)
		*ret_skip += (uint64_t)v8_integer(offset);
	return r ? r : v8_word_read(heap, link->at, offset_of(heap, V8_SLICED_PARENT), ret);
}

int v8_string_find(const struct v8_heap *heap, uint64_t string, struct v8_text *ret)
{
	const int32_t *c = heap->constants;
	struct link link;
	uint64_t skip = 0, at = 0;
	uint32_t n = 0;

	for (int i = 0; i < V8_STRING_LINKS_MAX; i++) {
		int r = read_link(heap, string, &link);

		if (r)
			return r;
		if (!i)
			n = link.n;
		if (skip + n > link.n)
			return V8_ODD;
		if (link.kind == c[V8_STRING_FLAT])
			at = string - 1 + offset_of(heap, V8_STRING_CHARS);
		else if (link.kind == c[V8_STRING_EXTERNAL] && link.is_uncached)
			r = V8_ODD;
		else if (link.kind == c[V8_STRING_EXTERNAL])
			/* the characters' address follows that of their owner */
			r = v8_word_read(heap, string, offset_of(heap, V8_EXTERNAL_RESOURCE) + 8,
					 &at);
		else
			r = follow(heap, &link, &string, &skip);
		if (r)
			return r;
		if (at) {
			*ret = (struct v8_text){at + skip * link.width, n, link.width};
			return 0;
		}
	}
	return V8_ODD;
}

/* Adds one piece. *@at: bytes in @ret. */
static int add(const struct v8_heap *heap, const struct v8_text *text, char *ret, size_t size,
	       size_t *at)
{
	uint8_t chars[PIECE_CHARS * 2];
	const size_t n = text->n < PIECE_CHARS ? text->n : PIECE_CHARS;
	int r = v8_outcome_of_memory(memory_read(heap->memory, text->at, chars, n * text->width));

	if (r)
		return r;
	python_string_utf8(chars, n, (uint8_t)text->width, ret + *at, size - *at);
	*at += strlen(ret + *at);
	return 0;
}

int v8_string_read(const struct v8_heap *heap, uint64_t string, char *ret, size_t size)
{
	uint64_t parts[V8_STRING_LINKS_MAX + 1] = {string};
	size_t n_parts = 1, at = 0;

	*ret = 0;
	for (int i = 0; i < V8_STRING_PARTS_MAX && n_parts && at < size - 1; i++) {
		const uint64_t next = parts[--n_parts];
		struct v8_text text;
		struct link link;
		uint64_t both[2];
		uint32_t n = 0;
		int r = read_link(heap, next, &link);

		if (!r && link.kind == heap->constants[V8_STRING_CONS])
			r = read_cons(heap, next, both, &n);
		if (r)
			return r;
		if (n) {
			if (n_parts + 2 > V8_STRING_LINKS_MAX + 1)
				return V8_ODD;
			parts[n_parts++] = both[1];
			parts[n_parts++] = both[0];
			continue;
		}
		r = v8_string_find(heap, next, &text);
		if (!r)
			r = add(heap, &text, ret, size, &at);
		if (r)
			return r;
	}
	return 0;
}
