// SPDX-License-Identifier: Apache-2.0
/*
 * The crate appends "-rusty" to V8's version. V8's objects hardly changed from 12.9 to 15.0; the
 * numbers of their types did. The values were read from processes of Deno 2.0 to 2.9: the objects
 * of a function whose frame is known, and those that they refer to.
 */
#include "runtimes/v8_rusty.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "elf/elfsym.h"
#include "runtimes/v8_layout.h"

/* A function of Node's interface for addons. Programs export it that can load addons, so other
 * files are not searched. */
#define EXPORTED      "napi_create_function"
#define SUFFIX	      "-rusty"
/* Bytes of the longest version in front of the suffix. */
#define VERSION_BYTES 24
/* Read at a time. */
#define PIECE	      ((size_t)32 << 10)

/* ---------------------------------------------------------------- the version */

static bool is_of_version(char c)
{
	return (c >= '0' && c <= '9') || c == '.';
}

/* Major, minor and build from the text that ends at @end: "15.0.245.2". False for another text. */
static bool parse_version(const char *begin, const char *end, uint32_t ret[3])
{
	char text[VERSION_BYTES + 1] = {0};
	const char *at = end;
	char *next = text;
	uint32_t numbers[3];

	while (at > begin && is_of_version(at[-1]))
		if (end - at-- == VERSION_BYTES)
			return false;
	memcpy(text, at, (size_t)(end - at));
	for (size_t i = 0; i < 3; i++, next++) {
		if (*next < '0' || *next > '9')
			return false;
		numbers[i] = (uint32_t)strtoul(next, &next, 10);
		if (*next != '.')
			return false;
	}
	memcpy(ret, numbers, sizeof(numbers));
	return true;
}

/* In the first of the versions in the @n bytes. */
static bool find_version(const char *bytes, size_t n, uint32_t ret[3])
{
	const char *end = bytes + n, *at = bytes;

	while ((at = memmem(at, (size_t)(end - at), SUFFIX, sizeof(SUFFIX) - 1))) {
		if (parse_version(bytes, at, ret))
			return true;
		at++;
	}
	return false;
}

/* Pieces overlap by a version. */
static int search_version(const struct elffile *ef, const struct elffile_section *section,
			  uint32_t ret[3])
{
	const size_t overlap = VERSION_BYTES + sizeof(SUFFIX);
	_cleanup_(freep) char *piece = malloc(PIECE);
	uint64_t at = 0;

	if (!piece)
		return -ENOMEM;
	for (; at < section->size && at < V8_RUSTY_SEARCH_MAX; at += PIECE - overlap) {
		const size_t n = section->size - at < PIECE ? section->size - at : PIECE;
		int r = elffile_read(ef, section->off + at, piece, n);

		if (r)
			return r < 0 ? r : V8_MALFORMED;
		if (find_version(piece, n, ret))
			return 0;
	}
	return V8_ABSENT;
}

static int read_version(const struct elffile *ef, uint32_t ret[3])
{
	static const char *const names[] = {EXPORTED};
	struct elffile_section section;
	struct elfsym symbol = {0};
	int r = elfsym_find(ef, ELFSYM_DYNSYM, ELFSYM_CODE, names, 1, &symbol);

	if (r)
		return r < 0 ? r : r == ELFSYM_ABSENT ? V8_ABSENT : V8_MALFORMED;
	if (!symbol.n || elffile_section(ef, ".rodata", &section))
		return V8_ABSENT;
	return search_version(ef, &section, ret);
}

/* ---------------------------------------------------------------- constants */

/* The same in all releases below. */
static const struct {
	enum v8_constant constant;
	int32_t value;
} common[] = {
	{V8_TAG_MASK, 1},	    {V8_TAG, 1},
	{V8_SMI_SHIFT, 31},	    {V8_FRAME_MARKER, -8},
	{V8_FRAME_FUNCTION, -16},   {V8_FRAME_ARRAY, -32},
	{V8_FRAME_OFFSET, -40},	    {V8_FUNCTION_SHARED, 32},
	{V8_SHARED_DATA, 8},	    {V8_SHARED_NAME, 24},
	{V8_SHARED_SCRIPT, 40},	    {V8_SHARED_LENGTH, 48},
	{V8_MAP_TYPE, 12},	    {V8_TYPE_ARRAY, 205},
	{V8_SCRIPT_NAME, 16},	    {V8_SCRIPT_SOURCE, 8},
	{V8_SCRIPT_LINES, 56},	    {V8_ARRAY_N, 8},
	{V8_ARRAY_DATA, 16},	    {V8_SCOPE_LOCALS, 2},
	{V8_SCOPE_FIRST, 5},	    {V8_NO_STRING, 128},
	{V8_STRING_KINDS, 7},	    {V8_STRING_FLAT, 0},
	{V8_STRING_CONS, 1},	    {V8_STRING_EXTERNAL, 2},
	{V8_STRING_SLICED, 3},	    {V8_STRING_THIN, 5},
	{V8_STRING_BYTES, 8},	    {V8_STRING_N, 12},
	{V8_STRING_CHARS, 16},	    {V8_CONS_FIRST, 16},
	{V8_CONS_SECOND, 24},	    {V8_SLICED_PARENT, 16},
	{V8_SLICED_OFFSET, 24},	    {V8_THIN_ACTUAL, 16},
	{V8_EXTERNAL_RESOURCE, 16}, {V8_BYTECODE_DATA, 64},
	{V8_KIND_MASK, 15},
};

/* @shared, @script, ...: numbers of types. The scope's is two below @shared, the one of code one
 * above @bytecode. */
static const struct release {
	uint32_t version[2];
	int32_t shared, script, bytecode, stream, wrapper;
	int32_t baseline; /* kind of code */
} releases[] = {
	/* clang-format off */
	{{12, 9}, 281, 167, 185, 190, 192, 10},
	{{13, 0}, 280, 167, 185, 190, 192, 10},
	{{13, 4}, 282, 167, 186, 192, 195, 10},
	{{13, 5}, 282, 167, 186, 192, 195, 10},
	{{13, 7}, 284, 165, 184, 190, 193, 10},
	{{14, 0}, 286, 165, 184, 191, 194, 10},
	{{14, 2}, 286, 165, 184, 191, 194, 11},
	{{14, 5}, 288, 166, 185, 192, 195, 11},
	{{14, 7}, 288, 166, 185, 192, 195, 11},
	{{14, 9}, 278, 167, 185, 192, 195, 11},
	{{15, 0}, 278, 166, 185, 192, 195, 11},
	/* clang-format on */
};
static void set(enum v8_constant constant, int32_t value, struct v8_image *ret, bool *ret_known)
{
	ret->constants[constant] = value;
	ret_known[constant] = true;
}

static const struct release *find_release(const uint32_t *version)
{
	for (size_t i = 0; i < array_size(releases); i++)
		if (memcmp(releases[i].version, version, sizeof(releases[i].version)) == 0)
			return &releases[i];
	return NULL;
}

int v8_rusty_read(const struct elffile *ef, struct v8_image *ret, bool *ret_known)
{
	const struct release *release;
	int r = read_version(ef, ret->version);

	if (r)
		return r;
	release = find_release(ret->version);
	if (!release)
		return V8_VERSION;
	for (size_t i = 0; i < array_size(common); i++)
		set(common[i].constant, common[i].value, ret, ret_known);
	set(V8_TYPE_SHARED, release->shared, ret, ret_known);
	set(V8_TYPE_SCOPE, release->shared - 2, ret, ret_known);
	set(V8_TYPE_SCRIPT, release->script, ret, ret_known);
	set(V8_TYPE_BYTECODE, release->bytecode, ret, ret_known);
	set(V8_TYPE_CODE, release->bytecode + 1, ret, ret_known);
	set(V8_TYPE_STREAM, release->stream, ret, ret_known);
	set(V8_TYPE_WRAPPER, release->wrapper, ret, ret_known);
	set(V8_KIND_BASELINE, release->baseline, ret, ret_known);
	return 0;
}
