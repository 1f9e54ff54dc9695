// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarfwire.h"

#include <string.h>

#include "base/utf8.h"
#include "symbolize/symbolizer.h"

/* Bytes of the strings in memory, with NULs and pointers. A longer answer is malformed:
 * the strings are empty. Reached: `podprof_dwarf_requests_total{outcome="malformed"}`. */
#define DWARFWIRE_MEMORY_MAX (4 * (size_t)DWARFWIRE_ANSWER_MAX)

_Static_assert(SYMBOL_LINES_MAX < DWARFWIRE_LEFT, "a number of lines");

static int outcome_of(int r)
{
	return r > 0 ? DWARFWIRE_MALFORMED : r;
}

static int read_string(struct dwarfwire_reader *reader, char **ret)
{
	const void *bytes;
	uint16_t n;
	char *copy;
	int r;

	if (!cursor_u16(&reader->left, &n) || n > DWARFWIRE_STRING_MAX ||
	    !cursor_bytes(&reader->left, n, &bytes) || memchr(bytes, '\0', n))
		return DWARFWIRE_MALFORMED;
	r = arena_alloc(&reader->memory, n + 1ul, &copy);
	if (r)
		return outcome_of(r);
	memcpy(copy, bytes, n);
	*ret = copy;
	return 0;
}

static int read_strings(struct dwarfwire_reader *reader)
{
	char *string;
	uint32_t n;
	int r;

	if (!cursor_u32(&reader->left, &n) || !n ||
	    n > cursor_left(&reader->left) / sizeof(uint16_t))
		return DWARFWIRE_MALFORMED;
	r = arena_array(&reader->memory, n, sizeof(*reader->strings), &reader->strings);
	for (reader->n_strings = 0; !r && reader->n_strings < n; reader->n_strings++) {
		r = read_string(reader, &string);
		if (r)
			break;
		utf8_repair(string, strlen(string));
		reader->strings[reader->n_strings] = string;
	}
	if (!r && reader->strings[0][0])
		r = DWARFWIRE_MALFORMED;
	return outcome_of(r);
}

int dwarfwire_reader_init(struct dwarfwire_reader *reader, const void *bytes, size_t n)
{
	int r;

	*reader = (struct dwarfwire_reader){0};
	arena_init(&reader->memory, DWARFWIRE_MEMORY_MAX);
	cursor_init(&reader->left, bytes, n);
	r = read_strings(reader);
	if (r)
		dwarfwire_reader_deinit(reader);
	return r;
}

void dwarfwire_reader_deinit(struct dwarfwire_reader *reader)
{
	arena_deinit(&reader->memory);
}

static bool read_line(struct dwarfwire_reader *reader, struct symbol_line *ret)
{
	struct dwarfwire_line line;
	const void *bytes;

	if (!cursor_bytes(&reader->left, sizeof(line), &bytes))
		return false;
	memcpy(&line, bytes, sizeof(line));
	if (line.function >= reader->n_strings || line.file >= reader->n_strings)
		return false;
	*ret = (struct symbol_line){
		.function = reader->strings[line.function],
		.system_name = reader->strings[line.function],
		.file = reader->strings[line.file],
		.line = line.line,
		.column = line.column,
		.start_line = line.start_line,
	};
	return true;
}

int dwarfwire_next(struct dwarfwire_reader *reader, struct symbol_line *ret, size_t *ret_n)
{
	uint8_t n;

	if (!cursor_u8(&reader->left, &n))
		return DWARFWIRE_MALFORMED;
	if (n == DWARFWIRE_LEFT)
		return DWARFWIRE_NOT_ASKED;
	if (n > SYMBOL_LINES_MAX)
		return DWARFWIRE_MALFORMED;
	for (size_t i = 0; i < n; i++) {
		if (!read_line(reader, &ret[i]))
			return DWARFWIRE_MALFORMED;
		ret[i].inlined = i + 1 < n;
		/* only the outermost function may have its name elsewhere */
		if (!ret[i].function[0] && ret[i].inlined)
			return DWARFWIRE_MALFORMED;
	}
	*ret_n = n;
	return 0;
}

bool dwarfwire_wanted(struct dwarfwire_reader *reader, struct dwarfwire_wanted *ret)
{
	char *path;

	if (!cursor_u32(&reader->left, &ret->unit) || !cursor_u64(&reader->left, &ret->id) ||
	    read_string(reader, &path) != 0 || (path[0] && path[0] != '/'))
		return false;
	ret->path = path;
	return true;
}
