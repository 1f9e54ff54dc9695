// SPDX-License-Identifier: Apache-2.0
/*
 * An entry of the function table has two numbers: the position of the code (an address in 1.16,
 * else an offset from the text's base) and the position of the record (an offset from the table).
 * The table is sorted by code. The last entry has only the first number, the end of the last
 * function.
 *
 * A function record, in 32-bit words unless said otherwise:
 *
 *   entry (64 bits in 1.16), name, args, deferreturn, pcsp, pcfile, pcln, n_pcdata, cu,
 *   start_line (since 1.20), u8 func_id, u8 flag, u8 pad, u8 n_funcdata
 *
 * Sources: the Go project's src/runtime/runtime2.go (_func), src/internal/abi/symtab.go, of the
 * releases in goversion.c.
 */
#include "gofile/gofunc.h"

#include <string.h>

#include "base/cursor.h"

/* pcdata or funcdata offsets of a function; 1.27 has 5 and 8. Reached: the record is
 * `malformed`. */
#define GOFUNC_DATA_MAX 64u

size_t gofunc_entry_bytes(const struct gomodule *m)
{
	return m->form == GOMODULE_1_16 ? 16 : 8;
}

size_t gofunc_bytes(const struct gomodule *m)
{
	return m->form == GOMODULE_1_18 ? 40 : 44;
}

void gofunc_parse_entry(const struct gomodule *m, const uint8_t *bytes, uint64_t *ret_entry,
			uint64_t *ret_record)
{
	uint64_t wide[2];
	uint32_t narrow[2];

	if (m->form == GOMODULE_1_16) {
		memcpy(wide, bytes, sizeof(wide));
		*ret_entry = wide[0];
		*ret_record = wide[1];
		return;
	}
	memcpy(narrow, bytes, sizeof(narrow));
	*ret_entry = m->text + narrow[0];
	*ret_record = narrow[1];
}

/* The begin of the code according to the record, as a vaddr. */
static bool parse_start(const struct gomodule *m, struct cursor *c, uint64_t *ret)
{
	uint32_t off;

	if (m->form == GOMODULE_1_16)
		return cursor_u64(c, ret);
	if (!cursor_u32(c, &off))
		return false;
	*ret = m->text + off;
	return true;
}

bool gofunc_parse(const struct gomodule *m, const uint8_t *bytes, struct gofunc *f)
{
	struct cursor c;
	uint64_t start;

	cursor_init(&c, bytes, gofunc_bytes(m));
	f->start_line = 0;
	return parse_start(m, &c, &start) && start == f->entry && cursor_u32(&c, &f->name) &&
	       cursor_skip(&c, 8) && /* args, deferreturn */
	       cursor_u32(&c, &f->pc_sp) && cursor_u32(&c, &f->pc_file) &&
	       cursor_u32(&c, &f->pc_line) && cursor_u32(&c, &f->n_pcdata) &&
	       cursor_u32(&c, &f->cu) &&
	       (m->form != GOMODULE_1_20 || cursor_u32(&c, &f->start_line)) &&
	       cursor_u8(&c, &f->func_id) && cursor_u8(&c, &f->flags) && cursor_skip(&c, 1) &&
	       cursor_u8(&c, &f->n_funcdata) && f->n_pcdata <= GOFUNC_DATA_MAX &&
	       f->n_funcdata <= GOFUNC_DATA_MAX;
}

/* ---- the walk */

/*
 * Entries and records are both in the order of the code, so the walk reads both through windows
 * that move forward.
 *
 * Functions of Go's linker do not overlap. A damaged entry makes one function longer and some
 * others malformed. But a forged table may have a million functions over the same code, each with
 * the same long tables. So all functions together have at most twice the bytes of their code, and
 * the others are malformed.
 */

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
