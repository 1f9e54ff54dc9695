// SPDX-License-Identifier: Apache-2.0
/*
 * Entries and records are both in the order of the code, so the walk reads both through windows
 * that move forward.
 *
 * Functions of Go's linker do not overlap. A damaged entry makes one function longer and some
 * others malformed. But a forged table may have a million functions over the same code, each with
 * the same long tables. So all functions together have at most twice the bytes of their code, and
 * the others are malformed.
 */
#include "gofile/gofuncwalk.h"

#include <string.h>

/* A read beyond the file is an offset beyond the table, so it is malformed. */
static int read_outcome(int r)
{
	return r > 0 ? GOMODULE_MALFORMED : r;
}

/* Read entry @i. The last entry has only an address; @ret_record is undefined then. */
static int read_entry(struct gofuncwalk *w, uint64_t i, uint64_t *ret_entry, uint64_t *ret_record)
{
	size_t whole = gofunc_entry_bytes(w->module), n = whole;
	uint8_t padded[GOFUNC_ENTRY_BYTES_MAX] = {0};
	const uint8_t *bytes;
	int r;

	if (i == w->module->n_funcs)
		n /= 2;
	r = elfwindow_get(&w->entries, i * whole, n, &bytes);
	if (r)
		return read_outcome(r);
	memcpy(padded, bytes, n);
	gofunc_parse_entry(w->module, padded, ret_entry, ret_record);
	return 0;
}

/* Whether the functions so far, with this one, have at most twice the bytes of their code. */
static bool is_new_code(struct gofuncwalk *w, uint64_t start, uint64_t end)
{
	uint64_t lowest = !w->bytes || start < w->lowest ? start : w->lowest;
	uint64_t highest = !w->bytes || end > w->highest ? end : w->highest, bytes;

	if (__builtin_add_overflow(w->bytes, end - start, &bytes) || bytes / 2 > highest - lowest)
		return false;
	w->lowest = lowest;
	w->highest = highest;
	w->bytes = bytes;
	return true;
}

/* Read the function between @w->entry and @end, with the record at @w->record. */
static int read_func(struct gofuncwalk *w, uint64_t end, struct gofunc *ret)
{
	const uint8_t *bytes;
	int r;

	*ret = (struct gofunc){.entry = w->entry, .end = end};
	if (end <= w->entry || !is_new_code(w, w->entry, end))
		return GOMODULE_MALFORMED;
	r = elfwindow_get(&w->records, w->record, gofunc_bytes(w->module), &bytes);
	if (r)
		return read_outcome(r);
	return gofunc_parse(w->module, bytes, ret) ? 0 : GOMODULE_MALFORMED;
}

int gofuncwalk_next(struct gofuncwalk *w, struct gofunc *ret)
{
	uint64_t end, record;
	int r;

	if (w->i >= w->module->n_funcs)
		return GOFUNCWALK_END;
	r = read_entry(w, w->i + 1, &end, &record);
	if (r) {
		w->i = w->module->n_funcs;
		return r;
	}
	r = read_func(w, end, ret);
	w->i++;
	w->entry = end;
	w->record = record;
	return r;
}

int gofuncwalk_init(struct gofuncwalk *w, const struct elffile *file, const struct gomodule *module,
		    size_t window)
{
	uint64_t off = module->off + module->funcs, size = module->size - module->funcs;
	int r;

	*w = (struct gofuncwalk){.module = module};
	r = elfwindow_init(&w->entries, file, off, size, window / 4);
	if (!r)
		r = elfwindow_init(&w->records, file, off, size, window);
	if (!r)
		r = read_entry(w, 0, &w->entry, &w->record);
	return r;
}

void gofuncwalk_deinit(struct gofuncwalk *w)
{
	elfwindow_deinit(&w->entries);
	elfwindow_deinit(&w->records);
}

size_t gofuncwalk_bytes(const struct gofuncwalk *w)
{
	return w->entries.room + w->records.room;
}
