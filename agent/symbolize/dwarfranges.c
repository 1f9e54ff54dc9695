// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarfranges.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/vec.h"
#include "symbolize/dwarfentry.h"
#include "symbolize/dwarffile.h"

/* Ranges of addresses of a file, and of the functions of a unit. Reached: no names of the others.
 */
#define DWARFRANGES_MAX		((size_t)1 << 24)
/* Entries of lists of ranges that are read in a pass over the units of a file, or over the entries
 * of a unit, besides one for each byte of the lists: compilers let blocks inside of each other
 * share a list. Without the ceiling, entries that share a long list cost the product of both.
 * Reached: the rest of the pass finds no ranges in lists. */
#define DWARFRANGES_ENTRIES_MAX ((size_t)1 << 16)
/* Ranges that begin before an address and may hold it. Ranges of removed code overlap others.
 * Reached: no name. */
#define DWARFRANGES_TRIES_MAX	64

/* ---------------------------------------------------------------- lists of ranges */

/* The list of DWARF 5 may be the number of a list. */
static bool begin_list(struct dwarfrange_reader *r, const struct dwarfvalue *ranges)
{
	const enum dwarfsection section =
		r->unit->version < 5 ? DWARFSECTION_RANGES : DWARFSECTION_RNGLISTS;
	uint64_t off = ranges->number;

	switch (ranges->form) {
	case DW_FORM_rnglistx:
		if (!dwarfvalue_indexed(r->file, section, r->unit->rnglists, ranges->number,
					r->unit->offset_size, &off) ||
		    __builtin_add_overflow(off, r->unit->rnglists, &off))
			return false;
		break;
	case DW_FORM_sec_offset:
	case DW_FORM_data4:
	case DW_FORM_data8:
		break;
	default:
		return false;
	}
	r->list = dwarfsections_at(r->file->sections, section, off);
	return true;
}

void dwarfrange_begin(struct dwarfrange_reader *r, struct dwarffile *f,
		      const struct dwarfunit *unit, const struct dwarfentry *entry)
{
	*r = (struct dwarfrange_reader){.file = f, .unit = unit, .base = unit->base};
	if (entry->high_pc.form && dwarfvalue_address(f, unit, &entry->low_pc, &r->pair.start)) {
		if (dwarfvalue_is_address(entry->high_pc.form)) {
			if (dwarfvalue_address(f, unit, &entry->high_pc, &r->pair.end))
				r->kind = DWARFRANGE_PAIR;
		} else if (!__builtin_add_overflow(r->pair.start, entry->high_pc.number,
						   &r->pair.end)) {
			r->kind = DWARFRANGE_PAIR;
		}
	} else if (entry->ranges.form && begin_list(r, &entry->ranges)) {
		r->kind = DWARFRANGE_LIST;
	}
}

/* For an entry of the list. False at a ceiling. */
static bool spend(struct dwarfrange_reader *r)
{
	const size_t n_bytes = (size_t)(r->list.end - r->list.start);

	return r->file->n_list_entries++ < DWARFRANGES_ENTRIES_MAX + n_bytes &&
	       dwarffile_spend(r->file, 1);
}

bool dwarfranges_exhausted(const struct dwarffile *f)
{
	return f->n_list_entries >= DWARFRANGES_ENTRIES_MAX;
}

/* DWARF 2 to 4. */
static bool next_old(struct dwarfrange_reader *r, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start, end;

	while (spend(r) && cursor_u64(&r->list, &start) && cursor_u64(&r->list, &end)) {
		if (!start && !end)
			return false;
		if (start == UINT64_MAX) {
			r->base = end;
			continue;
		}
		*ret_start = r->base + start;
		*ret_end = r->base + end;
		return true;
	}
	return false;
}

static bool read_index(struct dwarfrange_reader *r, uint64_t *ret)
{
	uint64_t i;

	return cursor_uleb(&r->list, &i) &&
	       dwarfvalue_indexed(r->file, DWARFSECTION_ADDR, r->unit->addresses, i, 8, ret);
}

/* The end from a length. */
static bool read_length(struct dwarfrange_reader *r, uint64_t start, uint64_t *ret_end)
{
	uint64_t n;

	if (!cursor_uleb(&r->list, &n))
		return false;
	*ret_end = start + n;
	return true;
}

static bool next_new(struct dwarfrange_reader *r, uint64_t *ret_start, uint64_t *ret_end)
{
	uint8_t kind;

	while (spend(r) && cursor_u8(&r->list, &kind)) {
		switch (kind) {
		case DW_RLE_base_addressx:
			if (!read_index(r, &r->base))
				return false;
			break;
		case DW_RLE_base_address:
			if (!cursor_u64(&r->list, &r->base))
				return false;
			break;
		case DW_RLE_startx_endx:
			return read_index(r, ret_start) && read_index(r, ret_end);
		case DW_RLE_startx_length:
			return read_index(r, ret_start) && read_length(r, *ret_start, ret_end);
		case DW_RLE_offset_pair:
			if (!cursor_uleb(&r->list, ret_start) || !cursor_uleb(&r->list, ret_end))
				return false;
			*ret_start += r->base;
			*ret_end += r->base;
			return true;
		case DW_RLE_start_end:
			return cursor_u64(&r->list, ret_start) && cursor_u64(&r->list, ret_end);
		case DW_RLE_start_length:
			return cursor_u64(&r->list, ret_start) &&
			       read_length(r, *ret_start, ret_end);
		default:
			return false;
		}
	}
	return false;
}

bool dwarfrange_next(struct dwarfrange_reader *r, uint64_t *ret_start, uint64_t *ret_end)
{
	switch (r->kind) {
	case DWARFRANGE_PAIR:
		*ret_start = r->pair.start;
		*ret_end = r->pair.end;
		r->kind = DWARFRANGE_END;
		return true;
	case DWARFRANGE_LIST:
		return r->unit->version < 5 ? next_old(r, ret_start, ret_end)
					    : next_new(r, ret_start, ret_end);
	case DWARFRANGE_END:
		break;
	}
	return false;
}

/* ---------------------------------------------------------------- sorted ranges */

int dwarfranges_put(struct dwarfranges *ranges, uint64_t start, uint64_t end, uint64_t index)
{
	int r;

	if (start <= 1 || start >= end)
		return 0;
	r = vec_grow(&ranges->items, &ranges->cap, ranges->n + 1, sizeof(*ranges->items),
		     DWARFRANGES_MAX);
	if (r)
		return r < 0 ? r : 1;
	ranges->items[ranges->n++] = (struct dwarfrange){start, end, index};
	return 0;
}

int dwarfranges_add(struct dwarfranges *ranges, struct dwarfrange_reader *reader, uint64_t index)
{
	uint64_t start, end;
	int r = 0;

	while (!r && dwarfrange_next(reader, &start, &end))
		r = dwarfranges_put(ranges, start, end, index);
	return r < 0 ? r : 0;
}

static int by_start(const void *a, const void *b)
{
	const struct dwarfrange *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end; /* the inner function comes last */
}

/* Compilers write most tables in order, and qsort() is slow with these. */
void dwarfranges_sort(struct dwarfranges *ranges)
{
	for (size_t i = 1; i < ranges->n; i++)
		if (by_start(&ranges->items[i - 1], &ranges->items[i]) > 0) {
			qsort(ranges->items, ranges->n, sizeof(*ranges->items), by_start);
			return;
		}
}

/* The number of ranges that begin at or before @vaddr. */
static size_t count_up_to(const struct dwarfranges *ranges, uint64_t vaddr)
{
	size_t low = 0, high = ranges->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct dwarfrange *dwarfranges_before(const struct dwarfranges *ranges, uint64_t vaddr)
{
	size_t n = count_up_to(ranges, vaddr);

	return n ? &ranges->items[n - 1] : NULL;
}

const struct dwarfrange *dwarfranges_find(const struct dwarfranges *ranges, uint64_t vaddr)
{
	size_t n = count_up_to(ranges, vaddr);

	for (size_t i = 0; i < DWARFRANGES_TRIES_MAX && n > 0; i++)
		if (vaddr < ranges->items[--n].end)
			return &ranges->items[n];
	return NULL;
}
