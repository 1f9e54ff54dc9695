// SPDX-License-Identifier: Apache-2.0
/*
 * The function table is in the order of the code. Each record has the offset of the function's name
 * in the part with all names, NUL-terminated and consecutive. So the first pass searches the part
 * for all requested names, and the second pass searches the records for the offsets found.
 */
#include "gofile/gofuncs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "gofile/gofunc.h"
#include "gofile/gomodule.h"

#define NAMES_CHUNK    (64u << 10)
#define RECORDS_WINDOW (64u << 10)

struct search {
	const struct elffile *file;
	const struct gomodule *module;
	const char *const *names;
	size_t n;
	struct gofuncs_one *ret;
	uint32_t offs[GOFUNCS_NAMES_MAX]; /* of the names found, from module->names */
};

/* ---------------------------------------------------------------- names */

/* Match the beginning of the @n bytes with the requested names. */
static void match_name(struct search *s, const uint8_t *bytes, size_t n, uint64_t off)
{
	for (size_t i = 0; i < s->n; i++) {
		size_t length = strlen(s->names[i]) + 1;

		if (s->ret[i].named || length > n || memcmp(bytes, s->names[i], length) != 0)
			continue;
		s->ret[i].named = true;
		s->offs[i] = (uint32_t)off;
		return;
	}
}

static size_t n_unnamed(const struct search *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += !s->ret[i].named;
	return n;
}

/* Match names that begin in the first @n of @have bytes; @off is the offset of the first byte. */
static void search_chunk(struct search *s, const uint8_t *bytes, size_t n, size_t have,
			 uint64_t off)
{
	for (size_t i = 0; i < n;) {
		const uint8_t *nul = memchr(bytes + i, '\0', have - i);

		match_name(s, bytes + i, have - i, off + i);
		if (!nul)
			return;
		i = (size_t)(nul - bytes) + 1;
	}
}

/* Each chunk begins with a name: a name cut at the end of a chunk is read again with the next. */
static int search_names(struct search *s)
{
	_cleanup_(freep) uint8_t *chunk = malloc(NAMES_CHUNK);
	uint64_t size = s->module->cus - s->module->names, off = 0;

	if (!chunk)
		return -ENOMEM;
	while (off < size && n_unnamed(s)) {
		size_t have = size - off < NAMES_CHUNK ? (size_t)(size - off) : NAMES_CHUNK;
		const uint8_t *last;
		size_t n = have;
		int r = elffile_read(s->file, s->module->off + s->module->names + off, chunk, have);

		if (r)
			return r < 0 ? r : GOMODULE_MALFORMED;
		if (have < size - off) {
			last = memrchr(chunk, '\0', have);
			n = last ? (size_t)(last - chunk) + 1 : have;
		}
		search_chunk(s, chunk, n, n, off);
		off += n;
	}
	return 0;
}

/* ---------------------------------------------------------------- functions */

static bool match_function(struct search *s, uint32_t name, uint64_t entry, uint64_t end)
{
	for (size_t i = 0; i < s->n; i++) {
		if (!s->ret[i].named || s->ret[i].entry || s->offs[i] != name)
			continue;
		s->ret[i].entry = entry;
		s->ret[i].end = end;
		return true;
	}
	return false;
}

/* Broken records are skipped. */
static int search_functions(struct search *s)
{
	_cleanup_(gofuncwalk_deinit) struct gofuncwalk walk = {0};
	size_t left = s->n - n_unnamed(s);
	struct gofunc f;
	int r = gofuncwalk_init(&walk, s->file, s->module, RECORDS_WINDOW);

	while (r >= 0 && left) {
		r = gofuncwalk_next(&walk, &f);
		if (r == GOFUNCWALK_END)
			return 0;
		if (r == 0 && match_function(s, f.name, f.entry, f.end))
			left--;
	}
	return r < 0 ? r : 0;
}

int gofuncs_find(const struct elffile *file, const struct gomodule *module,
		 const char *const *names, size_t n, struct gofuncs_one *ret)
{
	struct search s = {.file = file, .module = module, .names = names, .n = n, .ret = ret};
	int r;

	if (n > GOFUNCS_NAMES_MAX)
		return -EINVAL;
	memset(ret, 0, n * sizeof(*ret));
	r = search_names(&s);
	return r ? r : search_functions(&s);
}
