// SPDX-License-Identifier: Apache-2.0
/*
 * Functions are in the order of their code, and each record has the offset of its name among all
 * names, which stand one after the other with a NUL behind each. So first the names are searched,
 * all at once in one pass, and then the records for the offsets that were found.
 */
#include "gofile/gofuncs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gofile/gofunc.h"
#include "gofile/gomodule.h"
#include "procmap/elffile.h"
#include "procmap/elfwindow.h"

#define NAMES_CHUNK    (64u << 10)
#define RECORDS_WINDOW (64u << 10)
#define ENTRIES_WINDOW (16u << 10)

struct search {
	const struct elffile *file;
	const struct gomodule *module;
	const char *const *names;
	size_t n;
	struct gofuncs_one *ret;
	uint32_t offs[GOFUNCS_NAMES_MAX]; /* of those that are named, from module->names */
};

/* ---------------------------------------------------------------- names */

/* One of the names at the beginning of @bytes, of which there are @n. */
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

/* Names that begin among the first @n of @have bytes; @off is the offset of the first byte. */
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

/* Chunks begin with a name: what is cut at the end of one is read again with the next. */
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

struct functions {
	struct elfwindow entries;
	struct elfwindow records;
};

static void functions_deinit(struct functions *f)
{
	elfwindow_deinit(&f->entries);
	elfwindow_deinit(&f->records);
}

static int functions_init(struct functions *f, const struct search *s)
{
	const struct gomodule *m = s->module;
	uint64_t off = m->off + m->funcs, size = m->size - m->funcs;
	int r = elfwindow_init(&f->entries, s->file, off, size, ENTRIES_WINDOW);

	return r ? r : elfwindow_init(&f->records, s->file, off, size, RECORDS_WINDOW);
}

static int window_outcome(int r)
{
	return r > 0 ? GOMODULE_MALFORMED : r;
}

/* Function @i begins at @ret_entry; the last entry is where the last one ends, and no more. */
static int read_entry(struct functions *f, const struct gomodule *m, uint64_t i,
		      uint64_t *ret_entry, uint64_t *ret_record)
{
	uint8_t padded[GOFUNC_ENTRY_BYTES_MAX] = {0};
	size_t n = gofunc_entry_bytes(m);
	const uint8_t *bytes;
	int r = elfwindow_get(&f->entries, i * n, i == m->n_funcs ? n / 2 : n, &bytes);

	if (r)
		return window_outcome(r);
	memcpy(padded, bytes, i == m->n_funcs ? n / 2 : n);
	gofunc_parse_entry(m, padded, ret_entry, ret_record);
	return 0;
}

static int read_name(struct functions *f, const struct gomodule *m, uint64_t record, uint64_t entry,
		     uint32_t *ret)
{
	struct gofunc func = {.entry = entry};
	const uint8_t *bytes;
	int r = elfwindow_get(&f->records, record, gofunc_bytes(m), &bytes);

	if (r)
		return window_outcome(r);
	if (!gofunc_parse(m, bytes, &func))
		return GOMODULE_MALFORMED;
	*ret = func.name;
	return 0;
}

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

static int search_functions(struct search *s)
{
	_cleanup_(functions_deinit) struct functions f = {0};
	const struct gomodule *m = s->module;
	size_t left = s->n - n_unnamed(s);
	uint64_t entry, record, end, next;
	uint32_t name;
	int r = functions_init(&f, s);

	if (!r)
		r = read_entry(&f, m, 0, &entry, &record);
	for (uint64_t i = 0; !r && i < m->n_funcs && left; i++) {
		r = read_name(&f, m, record, entry, &name);
		if (!r)
			r = read_entry(&f, m, i + 1, &end, &next);
		if (r)
			break;
		if (end > entry && match_function(s, name, entry, end))
			left--;
		entry = end;
		record = next;
	}
	return r;
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
