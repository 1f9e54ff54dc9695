// SPDX-License-Identifier: Apache-2.0
#include "runtimes/v8_lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/v8_string.h"

/* Bytes of a read of the source. */
#define CHUNK_BYTES	 65536
/* Entries of an array of lines, a read. */
#define ENDS_A_READ	 1024
/* Lines of a script. Reached: `odd`, so its functions have no lines. */
#define SCRIPT_LINES_MAX (64u << 20)

void v8_lines_deinit(struct v8_lines *lines)
{
	free(lines->ends);
	*lines = (struct v8_lines){0};
}

uint32_t v8_lines_find(const struct v8_lines *lines, uint32_t position)
{
	size_t low = 0, high = lines->n;

	if (position < lines->from)
		return 0;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (lines->ends[middle] < position)
			low = middle + 1;
		else
			high = middle;
	}
	/* behind the last line that was read? */
	return low < lines->n && lines->first ? lines->first + (uint32_t)low : 0;
}

/* False if all lines are there. */
static bool add(struct v8_lines *lines, uint32_t end)
{
	lines->ends[lines->n++] = end;
	return lines->n < V8_LINES_MAX;
}

/* ---------------------------------------------------------------- counted by V8 */

struct ends {
	uint64_t at; /* of the first, a small integer */
	uint32_t n;
};

static int read_end(const struct v8_heap *heap, const struct ends *ends, uint32_t i, uint32_t *ret)
{
	uint64_t word;
	int r = v8_outcome_of_memory(
		memory_read(heap->memory, ends->at + i * 8ull, &word, sizeof(word)));

	if (!r && (!v8_is_integer(word) || v8_integer(word) < 0))
		return V8_ODD;
	*ret = (uint32_t)v8_integer(word);
	return r;
}

/* The first line that ends at @position or later. */
static int find_end(const struct v8_heap *heap, const struct ends *ends, uint32_t position,
		    uint32_t *ret)
{
	uint32_t low = 0, high = ends->n;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		uint32_t end;
		int r = read_end(heap, ends, middle, &end);

		if (r)
			return r;
		if (end < position)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return 0;
}

static int take_ends(const struct v8_heap *heap, const struct ends *ends, uint32_t first,
		     uint32_t to, struct v8_lines *ret)
{
	uint64_t words[ENDS_A_READ];
	bool more = true;

	while (more && first < ends->n) {
		const uint32_t n = ends->n - first < ENDS_A_READ ? ends->n - first : ENDS_A_READ;
		int r = v8_outcome_of_memory(
			memory_read(heap->memory, ends->at + first * 8ull, words, n * 8ull));

		if (r)
			return r;
		for (uint32_t i = 0; more && i < n; i++) {
			const uint32_t end = (uint32_t)v8_integer(words[i]);

			if (!v8_is_integer(words[i]) || (ret->n && end <= ret->ends[ret->n - 1]))
				return V8_ODD;
			more = add(ret, end) && end < to;
		}
		first += n;
	}
	return 0;
}

static int read_array(const struct v8_heap *heap, uint64_t array, uint32_t from, uint32_t to,
		      struct v8_lines *ret)
{
	struct ends ends = {array - 1 + (uint64_t)heap->constants[V8_ARRAY_DATA], 0};
	uint32_t line = 0;
	int r = v8_array_read(heap, array, &ends.n);

	if (r)
		return r;
	if (ends.n > SCRIPT_LINES_MAX)
		return V8_ODD;
	r = find_end(heap, &ends, from, &line);
	if (!r)
		r = take_ends(heap, &ends, line, to, ret);
	ret->first = line + 1;
	return r;
}

/* ---------------------------------------------------------------- counted here */

/* The end of a line, as the language has it. */
static bool is_end(uint32_t c, uint32_t next)
{
	return c == '\n' || (c == '\r' && next != '\n') || c == 0x2028 || c == 0x2029;
}

static uint32_t char_at(const uint8_t *chars, size_t i, uint32_t width)
{
	uint16_t c;

	if (width == 1)
		return chars[i];
	memcpy(&c, chars + i * 2, sizeof(c));
	return c;
}

struct counting {
	uint32_t from, to;
	uint32_t before; /* lines that end before @from */
	struct v8_lines *ret;
};

/* The ends in @n characters from @position on, with one character more behind. False at the end. */
static bool count(struct counting *c, const uint8_t *chars, uint32_t n, uint32_t width,
		  uint32_t position)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!is_end(char_at(chars, i, width), char_at(chars, i + 1, width)))
			continue;
		if (position + i < c->from)
			c->before++;
		else if (!add(c->ret, position + i) || position + i >= c->to)
			return false;
	}
	return true;
}

static int read_source(const struct v8_heap *heap, uint64_t source, struct counting *c)
{
	_cleanup_(freep) uint8_t *chars = malloc(CHUNK_BYTES + 2);
	struct v8_text text;
	uint32_t at = 0;
	int r = v8_string_find(heap, source, &text);

	if (r)
		return r;
	if (!chars)
		return -ENOMEM;
	if (c->from > text.n || c->from > V8_SOURCE_MAX)
		return V8_ODD;
	while (at < text.n && at < V8_SOURCE_MAX) {
		const uint32_t most = CHUNK_BYTES / text.width;
		const uint32_t n = text.n - at < most ? text.n - at : most;
		/* the next character, too, but for the last */
		const uint32_t more = n < text.n - at ? n + 1 : n;

		memset(chars + (size_t)n * text.width, 0, text.width);
		r = v8_outcome_of_memory(memory_read(heap->memory,
						     text.at + (uint64_t)at * text.width, chars,
						     (size_t)more * text.width));
		if (r)
			return r;
		if (!count(c, chars, n, text.width, at))
			break;
		at += n;
	}
	/* the last line has no end of its own */
	if (at >= text.n && c->ret->n < V8_LINES_MAX)
		(void)add(c->ret, text.n);
	c->ret->first = c->before + 1;
	return 0;
}

/* ---------------------------------------------------------------- a script */

/* How many lines of another file are before the script's first; 0 if the word is something else. */
static int read_line_offset(const struct v8_heap *heap, uint64_t script, int32_t *ret)
{
	uint64_t word;
	int r = v8_word_read(heap, script, (uint64_t)heap->constants[V8_SCRIPT_NAME] + 8, &word);

	*ret = !r && v8_is_integer(word) ? v8_integer(word) : 0;
	return r;
}

static int read_lines(const struct v8_heap *heap, uint64_t script, uint32_t from, uint32_t to,
		      struct v8_lines *ret)
{
	struct counting c = {from, to, 0, ret};
	int32_t offset = 0;
	uint64_t word;
	int r = v8_word_read(heap, script, (uint64_t)heap->constants[V8_SCRIPT_LINES], &word);

	if (!r && v8_is_object(word) && !v8_type_check(heap, word, V8_TYPE_ARRAY)) {
		r = read_array(heap, word, from, to, ret);
	} else if (!r) {
		r = v8_word_read(heap, script, (uint64_t)heap->constants[V8_SCRIPT_SOURCE], &word);
		if (!r)
			r = read_source(heap, word, &c);
	}
	if (!r)
		r = read_line_offset(heap, script, &offset);
	ret->first += (uint32_t)offset;
	return r;
}

int v8_lines_read(const struct v8_heap *heap, uint64_t script, uint32_t from, uint32_t to,
		  struct v8_lines *ret)
{
	int r;

	ret->ends = calloc(V8_LINES_MAX, sizeof(*ret->ends));
	if (!ret->ends)
		return -ENOMEM;
	ret->from = from;
	r = read_lines(heap, script, from, to, ret);
	if (r)
		v8_lines_deinit(ret);
	return r;
}
