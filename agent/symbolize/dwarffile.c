// SPDX-License-Identifier: Apache-2.0
/*
 * All units are listed when the file is opened: the header of each, and its first entry, which has
 * the unit's addresses. Of the unit's abbreviations only that of the first entry is read then; gcc
 * puts it anywhere in the table.
 */
#include "symbolize/dwarffile.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "symbolize/dwarfentry.h"

struct dwarfabbrev_sizes dwarffile_sizes(const struct dwarfunit *unit)
{
	return (struct dwarfabbrev_sizes){
		.offset = unit->offset_size,
		.ref_addr = unit->version == 2 ? 8 : unit->offset_size,
	};
}

static void free_abbrevs(struct dwarfabbrevs *a)
{
	if (a)
		dwarfabbrevs_deinit(a);
	free(a);
}

int dwarffile_read_abbrevs(struct dwarffile *f, struct dwarfunit *unit)
{
	const struct dwarfabbrev_sizes sizes = dwarffile_sizes(unit);
	struct cursor c;
	int r;

	if (unit->abbrevs)
		return unit->abbrevs->n ? 0 : DWARFABBREV_MALFORMED;
	unit->abbrevs = calloc(1, sizeof(*unit->abbrevs));
	if (!unit->abbrevs)
		return -ENOMEM;
	c = dwarfsections_at(f->sections, DWARFSECTION_ABBREV, unit->abbrevs_at);
	r = dwarfabbrevs_read(&c, &sizes, 0, unit->abbrevs);
	if (!r && !dwarffile_spend(f, unit->abbrevs->n + unit->abbrevs->n_attrs))
		r = DWARFABBREV_MALFORMED;
	if (r)
		dwarfabbrevs_deinit(unit->abbrevs);
	return r;
}

/* ---------------------------------------------------------------- units */

/* The first entry of a unit. */
struct first {
	struct dwarfentry entry;
	struct dwarfvalue lines;
	struct dwarfvalue directory;
	struct dwarfvalue str_offsets;
	struct dwarfvalue addresses;
	struct dwarfvalue rnglists;
	struct dwarfvalue language;
	bool is_split;
};

static void keep_first(struct first *first, uint16_t name, const struct dwarfvalue *value)
{
	switch (name) {
	case DW_AT_low_pc:
		first->entry.low_pc = *value;
		break;
	case DW_AT_high_pc:
		first->entry.high_pc = *value;
		break;
	case DW_AT_ranges:
		first->entry.ranges = *value;
		break;
	case DW_AT_stmt_list:
		first->lines = *value;
		break;
	case DW_AT_comp_dir:
		first->directory = *value;
		break;
	case DW_AT_str_offsets_base:
		first->str_offsets = *value;
		break;
	case DW_AT_addr_base:
		first->addresses = *value;
		break;
	case DW_AT_language:
		first->language = *value;
		break;
	case DW_AT_rnglists_base:
		first->rnglists = *value;
		break;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
	case DW_AT_GNU_dwo_id:
		first->is_split = true;
		break;
	}
}

/* 0, DWARFFILE_UNSUPPORTED, -ENOMEM; an unreadable entry has no attributes. */
static int read_first(struct dwarffile *f, const struct dwarfunit *unit, struct first *ret)
{
	const struct dwarfabbrev_sizes sizes = dwarffile_sizes(unit);
	struct dwarfabbrevs *abbrevs = &f->first;
	const struct dwarfabbrev *abbrev = NULL;
	struct cursor c = dwarfentry_cursor(f, unit, unit->first);
	struct cursor table = dwarfsections_at(f->sections, DWARFSECTION_ABBREV, unit->abbrevs_at);
	const size_t n_table = cursor_left(&table);
	uint64_t code;
	int r = 0;

	if (f->work && cursor_uleb(&c, &code) && code) {
		r = dwarfabbrevs_read(&table, &sizes, code, abbrevs);
		if (!dwarffile_spend(f, n_table - cursor_left(&table)))
			f->work = 0; /* many units may share a table without their declaration */
		else if (!r)
			abbrev = dwarfabbrevs_get(abbrevs, code);
	}
	for (uint32_t i = 0; abbrev && i < abbrev->n_attrs; i++) {
		const struct dwarfabbrev_attr *attr = &abbrevs->attrs[abbrev->first_attr + i];
		struct dwarfvalue value;

		if (!dwarfvalue_read(&c, attr, &value))
			break;
		keep_first(ret, attr->name, &value);
	}
	return r < 0					       ? r
	       : r == DWARFABBREV_UNSUPPORTED || ret->is_split ? DWARFFILE_UNSUPPORTED
							       : 0;
}

static bool is_c(const struct dwarfvalue *language)
{
	if (!language->form)
		return false;
	switch (language->number) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
		return true;
	default:
		return false;
	}
}

static uint64_t or_else(const struct dwarfvalue *value, uint64_t otherwise)
{
	return value->form ? value->number : otherwise;
}

static void take_first(struct dwarffile *f, struct dwarfunit *unit, const struct first *first)
{
	/* tables begin with a header */
	const uint64_t lists = unit->offset_size == 4 ? 12 : 20, others = lists - 4;
	const bool has_header = unit->version >= 5;

	unit->is_c = is_c(&first->language);
	unit->lines = or_else(&first->lines, DWARF_NONE);
	unit->str_offsets = or_else(&first->str_offsets, has_header ? others : 0);
	unit->addresses = or_else(&first->addresses, has_header ? others : 0);
	unit->rnglists = or_else(&first->rnglists, lists);
	unit->directory = dwarfvalue_string(f, unit, &first->directory);
	if (!dwarfvalue_address(f, unit, &first->entry.low_pc, &unit->base))
		unit->base = 0;
}

/* The header at @c, which moves behind the unit. False at the end. */
static bool read_header(struct cursor *c, struct dwarfunit *ret, uint8_t *ret_type,
			uint8_t *ret_address_size)
{
	struct cursor unit;
	uint64_t n;
	uint16_t version;
	bool is_new;

	*ret = (struct dwarfunit){.start = cursor_pos(c)};
	if (!dwarfvalue_length(c, &n, &ret->offset_size))
		return false;
	unit = *c;
	if (!cursor_skip(c, n))
		return false;
	ret->end = cursor_pos(c);
	unit.end = c->pos;
	if (!cursor_u16(&unit, &version) || version < 2 || version > 5)
		return false;
	ret->version = (uint8_t)version;
	is_new = version == 5;
	*ret_type = DW_UT_compile;
	if (is_new && (!cursor_u8(&unit, ret_type) || !cursor_u8(&unit, ret_address_size)))
		return false;
	if (!dwarfvalue_number(&unit, ret->offset_size, &ret->abbrevs_at) ||
	    (!is_new && !cursor_u8(&unit, ret_address_size)))
		return false;
	ret->first = cursor_pos(&unit);
	return true;
}

static int add_unit(struct dwarffile *f, struct dwarfunit *unit, uint8_t type)
{
	struct first first = {.is_split = false};
	struct dwarfrange_reader ranges;
	int r = vec_grow(&f->units, &f->cap_units, f->n_units + 1, sizeof(*f->units),
			 DWARFFILE_UNITS_MAX);

	if (!r)
		r = read_first(f, unit, &first);
	if (r)
		return r;
	take_first(f, unit, &first);
	if (type == DW_UT_compile) {
		dwarfrange_begin(&ranges, f, unit, &first.entry);
		r = dwarfranges_add(&f->ranges, &ranges, f->n_units);
	}
	f->units[f->n_units++] = *unit;
	return r;
}

static int read_units(struct dwarffile *f)
{
	struct cursor c = dwarfsections_get(f->sections, DWARFSECTION_INFO);
	struct cursor types = dwarfsections_get(f->sections, DWARFSECTION_TYPES);
	struct dwarfunit unit;
	uint8_t type, address_size;
	int r = cursor_left(&types) ? DWARFFILE_UNSUPPORTED : 0;

	while (!r && read_header(&c, &unit, &type, &address_size)) {
		if ((type != DW_UT_compile && type != DW_UT_partial) || address_size != 8)
			r = DWARFFILE_UNSUPPORTED;
		else
			r = add_unit(f, &unit, type);
	}
	dwarfranges_sort(&f->ranges);
	return r;
}

int dwarffile_open(struct dwarfsections *sections, struct dwarffile *alternate,
		   struct dwarffile **ret)
{
	struct dwarffile *f = calloc(1, sizeof(*f));
	int r;

	if (!f) {
		dwarfsections_free(sections);
		return -ENOMEM;
	}
	f->sections = sections;
	f->alternate = alternate;
	f->work = DWARFFILE_WORK_MAX;
	r = read_units(f);
	if (r)
		dwarffile_free(f);
	else
		*ret = f;
	return r;
}

void dwarffile_free(struct dwarffile *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_units; i++)
		free_abbrevs(f->units[i].abbrevs);
	dwarfabbrevs_deinit(&f->first);
	free(f->units);
	free(f->ranges.items);
	dwarfsections_free(f->sections);
	free(f);
}
