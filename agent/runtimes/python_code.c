// SPDX-License-Identifier: Apache-2.0
/*
 * A code object never changes, but may be freed, and another code object may take the address. The
 * check of a sample distinguishes the two: a hash of the object's pointers to the strings and the
 * table, and from 3.12 on of its number. Up to 3.11 a function that is made and freed all the time
 * can have all of these again, so the strings' contents are in the check: the hashes that CPython
 * caches in strings, or the last characters of a string without one.
 */
#include "runtimes/python_code.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "procmap/memory.h"
#include "runtimes/python_image.h"
#include "runtimes/python_line.h"
#include "runtimes/python_string.h"
#include "runtimes/python_threads.h"

/* Bytes of a string read, for 4-byte characters. */
#define NAME_BYTES (RUNTIMES_NAME_MAX * 4)
#define FILE_BYTES (RUNTIMES_FILE_MAX * 4)

#define CHECK_FACTOR 0x9e3779b97f4a7c15ull

void python_code_deinit(struct python_code *code)
{
	free(code->name);
	*code = (struct python_code){0};
}

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * CHECK_FACTOR;
	return h ^ h >> 29;
}

/* @was_hashed: the hash, if there is one, was there for the walker. */
static uint64_t string_value(const struct python_code_string *s, bool was_hashed)
{
	const uint64_t hash = was_hashed ? s->hash : UINT64_MAX;
	uint64_t sum = 0, factor = PYTHON_TAIL_FACTOR;

	for (size_t i = 0; hash == UINT64_MAX && i < array_size(s->tail); i++) {
		sum += s->tail[i] * factor;
		factor *= PYTHON_TAIL_FACTOR;
	}
	return mix(mix(mix(0, s->length), hash), sum);
}

static uint32_t check_of(const struct python_code_key *key, bool name_was_hashed,
			 bool file_was_hashed)
{
	const uint64_t words[] = {key->file, key->name, key->qualname, key->lines, key->first_line};
	uint64_t h = 0;

	for (size_t i = 0; i < array_size(words); i++)
		h = mix(h, words[i]);
	if (key->has_strings) {
		h = mix(h, string_value(&key->name_string, name_was_hashed));
		h = mix(h, string_value(&key->file_string, file_was_hashed));
	}
	return (uint32_t)(h >> 32);
}

uint32_t python_code_check(const struct python_code_key *key)
{
	return check_of(key, true, true);
}

bool python_code_is(const struct python_code_key *key, uint32_t check)
{
	return check_of(key, true, true) == check || check_of(key, true, false) == check ||
	       check_of(key, false, true) == check || check_of(key, false, false) == check;
}

/* ---------------------------------------------------------------- reading */

struct reading {
	struct memory *m;
	const struct python_layout *layout;
	uint64_t address;
	const uint32_t *check;
	struct python_code_key key;
	struct python_string name, file;
	uint64_t n_lines;
	uint8_t *lines; /* owned; NULL: not read */
	uint8_t name_chars[NAME_BYTES], file_chars[FILE_BYTES];
};

static int read_ranges(struct memory *m, const struct memory_range *ranges, size_t n)
{
	return python_outcome_of_memory(memory_read_ranges(m, ranges, n));
}

/* What the check has of the strings at @at. */
static int read_check_strings(const struct reading *r, const uint64_t at[2],
			      struct python_code_string *const *ret)
{
	struct memory_range ranges[6];
	uint32_t states[2];
	int result;

	for (size_t i = 0; i < 2; i++) {
		ranges[i * 3] =
			(struct memory_range){at[i] + PYTHON_STRING_LENGTH, &ret[i]->length, 8};
		ranges[i * 3 + 1] =
			(struct memory_range){at[i] + PYTHON_STRING_HASH, &ret[i]->hash, 8};
		ranges[i * 3 + 2] =
			(struct memory_range){at[i] + PYTHON_STRING_STATE, &states[i], 4};
	}
	result = read_ranges(r->m, ranges, 6);
	for (size_t i = 0; !result && i < 2; i++) {
		const uint64_t n = (ret[i]->length & 0xffffff) * (states[i] >> 2 & 7);
		const uint64_t words = (n + 7) / 8;
		const uint64_t before =
			words > PYTHON_TAIL_WORDS ? (words - PYTHON_TAIL_WORDS) * 8 : 0;
		const uint64_t chars =
			states[i] >> 6 & 1 ? PYTHON_STRING_ASCII : PYTHON_STRING_WIDE;

		ranges[i] = (struct memory_range){at[i] + chars + before, ret[i]->tail,
						  (size_t)(words * 8 - before)};
	}
	return result ? result : read_ranges(r->m, ranges, 2);
}

/* One call for the five words, which lie within 128 bytes, and two for the strings. */
static int read_key(const struct reading *r, struct python_code_key *ret)
{
	const struct python_process *p = &r->layout->process;
	const struct memory_range ranges[] = {
		{r->address + p->code_filename, &ret->file, 8},
		{r->address + p->code_name, &ret->name, 8},
		{r->address + p->code_qualname, &ret->qualname, 8},
		{r->address + p->code_lines, &ret->lines, 8},
		{r->address + p->code_first_line, &ret->first_line, 4},
	};
	int result;

	*ret = (struct python_code_key){.has_strings = p->has_strings};
	result = read_ranges(r->m, ranges, array_size(ranges));
	if (!result && ret->has_strings)
		result = read_check_strings(
			r, (const uint64_t[]){ret->qualname, ret->file},
			(struct python_code_string *[]){&ret->name_string, &ret->file_string});
	if (!result && r->check && !python_code_is(ret, *r->check))
		return PYTHON_ODD;
	return result;
}

/* The headers of the strings and of the table. */
static int read_headers(struct reading *r)
{
	const size_t n_header = python_string_header_bytes(r->layout);
	uint8_t name[PYTHON_STRING_HEADER_BYTES] = {0}, file[PYTHON_STRING_HEADER_BYTES] = {0};
	int64_t n_lines;
	const struct memory_range ranges[] = {
		{r->key.qualname, name, n_header},
		{r->key.file, file, n_header},
		{r->key.lines + r->layout->bytes_length, &n_lines, sizeof(n_lines)},
	};
	int result = read_ranges(r->m, ranges, array_size(ranges));

	if (result)
		return result;
	if (!python_string_parse(r->layout, name, &r->name) ||
	    !python_string_parse(r->layout, file, &r->file) || n_lines < 0)
		return PYTHON_ODD;
	r->n_lines = (uint64_t)n_lines;
	return 0;
}

/* Characters of a string that are read, of at most @max. */
static size_t n_chars(const struct python_string *s, size_t max)
{
	return s->n < max ? (size_t)s->n : max;
}

static void drop_lines(struct reading *r)
{
	free(r->lines);
	r->lines = NULL;
	r->n_lines = 0;
}

/* The strings, and the table if there is room for it. */
static int read_contents(struct reading *r)
{
	const size_t n_name = n_chars(&r->name, RUNTIMES_NAME_MAX);
	const size_t n_file = n_chars(&r->file, RUNTIMES_FILE_MAX);
	const struct memory_range ranges[] = {
		{r->key.qualname + r->name.offset, r->name_chars, n_name * r->name.width},
		{r->key.file + r->file.offset, r->file_chars, n_file * r->file.width},
		{r->key.lines + r->layout->bytes_data, r->lines, (size_t)r->n_lines},
	};
	const size_t n_strings = array_size(ranges) - 1;
	int result = read_ranges(r->m, ranges, r->lines ? array_size(ranges) : n_strings);

	/* an excerpt lacks long tables */
	if (result == PYTHON_UNREADABLE && r->lines) {
		drop_lines(r);
		result = read_ranges(r->m, ranges, n_strings);
	}
	return result;
}

static int read_all(struct reading *r)
{
	struct python_code_key again;
	int result = read_key(r, &r->key);

	if (!result)
		result = read_headers(r);
	if (result)
		return result;
	if (r->n_lines <= PYTHON_LINES_BYTES_MAX) {
		r->lines = malloc(r->n_lines ? r->n_lines : 1);
		if (!r->lines)
			return -ENOMEM;
	}
	result = read_contents(r);
	if (!result)
		result = read_key(r, &again);
	/* computed since */
	again.name_string.hash = r->key.name_string.hash;
	again.file_string.hash = r->key.file_string.hash;
	if (!result && memcmp(&again, &r->key, sizeof(again)) != 0)
		return PYTHON_ODD;
	return result;
}

/* What was read, without the room that it did not need: a process has thousands of functions. */
static int pack(const struct reading *r, struct python_code *ret)
{
	const size_t n_lines = r->lines ? (size_t)r->n_lines : 0;
	char name[RUNTIMES_NAME_MAX], file[RUNTIMES_FILE_MAX];
	size_t n_name, n_file;
	char *bytes;

	python_string_utf8(r->name_chars, n_chars(&r->name, RUNTIMES_NAME_MAX), r->name.width, name,
			   sizeof(name));
	python_string_utf8(r->file_chars, n_chars(&r->file, RUNTIMES_FILE_MAX), r->file.width, file,
			   sizeof(file));
	/* the code that runs below a constructor's __init__(), since 3.13 */
	if (r->key.file == r->key.qualname && !(int32_t)r->key.first_line)
		name[0] = 0;
	n_name = strlen(name) + 1;
	n_file = strlen(file) + 1;
	bytes = malloc(n_name + n_file + n_lines);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, name, n_name);
	memcpy(bytes + n_name, file, n_file);
	if (n_lines)
		memcpy(bytes + n_name + n_file, r->lines, n_lines);
	*ret = (struct python_code){
		.name = bytes,
		.file = bytes + n_name,
		.first_line = (int32_t)r->key.first_line,
		.shape = r->layout->lines,
		.lines = r->lines ? (const uint8_t *)bytes + n_name + n_file : NULL,
		.n_lines = n_lines,
		.n_bytes = n_name + n_file + n_lines,
	};
	return 0;
}

int python_code_read(struct memory *m, const struct python_layout *layout, uint64_t address,
		     const uint32_t *check, struct python_code *ret)
{
	struct reading r = {.m = m, .layout = layout, .address = address, .check = check};
	int result = read_all(&r);

	if (!result)
		result = pack(&r, ret);
	free(r.lines);
	return result;
}

uint32_t python_code_line(const struct python_code *code, int32_t place)
{
	if (!code->lines)
		return 0;
	return python_line(code->shape, code->lines, code->n_lines, code->first_line, place);
}
