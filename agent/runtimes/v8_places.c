// SPDX-License-Identifier: Apache-2.0
#include "runtimes/v8_places.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "procmap/memory.h"
#include "runtimes/v8_lines.h"

/* Of the longest number, of 64 bits. */
#define NUMBER_BYTES 10

struct table {
	struct cursor at;
	int32_t shift;
};

static struct table table_of(const uint8_t *bytes, size_t n, int32_t shift)
{
	struct table t = {.shift = shift};

	cursor_init(&t.at, bytes, n);
	return t;
}

/* The sign is the lowest bit. False at the end of the table. */
static bool next_number(struct table *t, int64_t *ret)
{
	const size_t before = cursor_pos(&t->at);
	uint64_t bits;

	if (!cursor_uleb(&t->at, &bits) || cursor_pos(&t->at) - before > NUMBER_BYTES)
		return false;
	*ret = (int64_t)(bits >> 1 ^ -(bits & 1));
	return true;
}

/* Moves @at and @source to the next entry; @at is one above the entry's place in the code. False at
 * the end. */
static bool next_entry(struct table *t, uint64_t *at, uint64_t *source)
{
	int64_t code, position;

	if (!next_number(t, &code) || !next_number(t, &position))
		return false;
	/* the sign is a flag, the lowest bit, if shifted out, another one */
	*at += (uint64_t)(code < 0 ? -(code + 1) : code) >> t->shift;
	*source += (uint64_t)position;
	return *at <= UINT32_MAX;
}

uint64_t v8_position_find(const uint8_t *table, size_t n, int32_t shift, uint32_t at,
			  uint32_t *ret_from)
{
	struct table t = table_of(table, n, shift);
	uint64_t next = 0, source = 0, found = 0;

	*ret_from = 0;
	while (next_entry(&t, &next, &source) && next <= (uint64_t)at + 1) {
		found = source;
		*ret_from = next ? (uint32_t)(next - 1) : 0;
	}
	return found;
}

size_t v8_places_parse(const uint8_t *table, size_t n, int32_t shift, uint32_t base,
		       const struct v8_lines *lines, struct v8_place *ret)
{
	struct table t = table_of(table, n, shift);
	uint64_t at = base, source = 0;
	size_t n_places = 0;

	while (n_places < V8_PLACES_MAX && next_entry(&t, &at, &source)) {
		const uint32_t character = v8_position_character(source);
		uint32_t line;

		if (character == V8_NO_POSITION)
			continue;
		/* 0 behind the known lines: not the line before */
		line = v8_lines_find(lines, character);
		if (n_places ? ret[n_places - 1].line == line : !line)
			continue;
		ret[n_places++] = (struct v8_place){(uint32_t)(at - 1), line};
	}
	return n_places;
}

uint32_t v8_places_find(const struct v8_place *places, size_t n, uint32_t at)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (places[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? places[low - 1].line : 0;
}

/* ---------------------------------------------------------------- the table of a function */

/* Words of a code object that may refer to the bytecode. */
#define CODE_WORDS 5

int v8_bytecode_find(const struct v8_heap *heap, uint64_t data, uint64_t *ret)
{
	uint64_t words[CODE_WORDS];
	int r = v8_is_object(data) ? v8_type_check(heap, data, V8_TYPE_BYTECODE) : V8_ODD;

	*ret = data;
	if (r != V8_ODD)
		return r;
	*ret = 0;
	if (!v8_is_object(data))
		return 0;
	r = v8_bytes_read(heap, data, 8, words, sizeof(words));
	for (size_t i = 0; !r && !*ret && i < CODE_WORDS; i++)
		if (v8_is_object(words[i]) && !v8_type_check(heap, words[i], V8_TYPE_BYTECODE))
			*ret = words[i];
	return r;
}

int v8_table_read(const struct v8_heap *heap, uint64_t table, size_t most, uint8_t **ret,
		  size_t *ret_n)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	uint32_t n_bytes;
	size_t n;
	int r;

	if (!v8_is_object(table))
		return 0;
	r = v8_array_read(heap, table, &n_bytes);
	if (r || !n_bytes)
		return r == V8_ODD ? 0 : r;
	n = n_bytes < most ? n_bytes : most;
	bytes = malloc(n);
	if (!bytes)
		return -ENOMEM;
	r = v8_bytes_read(heap, table, (uint64_t)heap->constants[V8_ARRAY_DATA], bytes, n);
	if (r)
		return r;
	*ret = take_ptr(bytes);
	*ret_n = n;
	return 0;
}

/* The lines of @table in memory of the right size. */
static int keep_places(const struct v8_heap *heap, const uint8_t *table, size_t n,
		       const struct v8_lines *lines, struct v8_place **ret, size_t *ret_n)
{
	/* places count from the word of the array */
	const uint32_t base = (uint32_t)heap->constants[V8_BYTECODE_DATA] - 1;
	_cleanup_(freep) struct v8_place *places = calloc(V8_PLACES_MAX, sizeof(*places));
	size_t n_places;

	if (!places)
		return -ENOMEM;
	n_places = v8_places_parse(table, n, heap->constants[V8_TABLE_SHIFT], base, lines, places);
	if (!n_places)
		return 0;
	*ret = malloc(n_places * sizeof(*places));
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, places, n_places * sizeof(*places));
	*ret_n = n_places;
	return 0;
}

int v8_places_read(const struct v8_heap *heap, uint64_t data, const struct v8_lines *lines,
		   struct v8_place **ret, size_t *ret_n)
{
	_cleanup_(freep) uint8_t *table = NULL;
	uint64_t bytecode, word;
	size_t n = 0;
	int r;

	if (!heap->constants[V8_BYTECODE_TABLE])
		return 0;
	r = v8_bytecode_find(heap, data, &bytecode);
	if (r || !bytecode)
		return r;
	r = v8_word_read(heap, bytecode, (uint64_t)heap->constants[V8_BYTECODE_TABLE], &word);
	if (!r)
		r = v8_table_read(heap, word, V8_TABLE_BYTES_MAX, &table, &n);
	return r || !table ? r : keep_places(heap, table, n, lines, ret, ret_n);
}
