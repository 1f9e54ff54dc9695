// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarfentry.h"

#include <dwarf.h>
#include <string.h>

/* ---------------------------------------------------------------- values */

bool dwarfvalue_number(struct cursor *c, size_t size, uint64_t *ret)
{
	uint64_t number = 0;

	if (size > sizeof(number) || size > cursor_left(c))
		return false;
	memcpy(&number, c->pos, size); /* little-endian, as cursor.h asserts */
	*ret = number;
	c->pos += size;
	return true;
}

static bool skip_block(struct cursor *c, size_t size_bytes)
{
	uint64_t n;

	return (size_bytes ? dwarfvalue_number(c, size_bytes, &n) : cursor_uleb(c, &n)) &&
	       cursor_skip(c, n);
}

bool dwarfvalue_length(struct cursor *c, uint64_t *ret, uint8_t *ret_offset_size)
{
	uint32_t length;

	if (!cursor_u32(c, &length))
		return false;
	*ret = length;
	*ret_offset_size = length == UINT32_MAX ? 8 : 4;
	return length != UINT32_MAX || cursor_u64(c, ret);
}

/* A number that is not read may be signed or not. */
static bool skip_leb(struct cursor *c)
{
	uint8_t byte;

	do
		if (!cursor_u8(c, &byte))
			return false;
	while (byte & 0x80);
	return true;
}

static bool read_string(struct cursor *c, struct dwarfvalue *ret)
{
	return cursor_cstr(c, &ret->string);
}

static bool read_leb(struct cursor *c, bool is_signed, uint64_t *ret)
{
	int64_t number;

	if (!is_signed)
		return cursor_uleb(c, ret);
	if (!cursor_sleb(c, &number))
		return false;
	*ret = (uint64_t)number;
	return true;
}

bool dwarfvalue_read(struct cursor *c, const struct dwarfabbrev_attr *attr, struct dwarfvalue *ret)
{
	ret->form = attr->form;
	ret->number = (uint64_t)attr->value;
	switch ((enum dwarfabbrev_step)attr->step) {
	case DWARFABBREV_SKIP:
		return attr->n - 1u < 8 ? dwarfvalue_number(c, attr->n, &ret->number)
					: cursor_skip(c, attr->n);
	case DWARFABBREV_LEB:
		return read_leb(c, attr->form == DW_FORM_sdata, &ret->number);
	case DWARFABBREV_STRING:
		return read_string(c, ret);
	case DWARFABBREV_BLOCK:
		return skip_block(c, attr->n);
	default:
		return false;
	}
}

/* Most values are numbers. Eight bytes are loaded where the section has them, so that no branch
 * depends on the size. */
static inline __attribute__((always_inline)) bool
read_value(struct cursor *c, const struct dwarfabbrev_attr *attr, struct dwarfvalue *ret)
{
	if (attr->step != DWARFABBREV_SKIP || attr->n - 1u >= 8 || cursor_left(c) < 8)
		return dwarfvalue_read(c, attr, ret);
	ret->form = attr->form;
	memcpy(&ret->number, c->pos, 8);
	ret->number &= UINT64_MAX >> (64 - 8 * attr->n);
	c->pos += attr->n;
	return true;
}

bool dwarfvalue_is_address(uint16_t form)
{
	return form == DW_FORM_addr || form == DW_FORM_addrx || form == DW_FORM_GNU_addr_index ||
	       (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4);
}

/* Number @i of a table of @size-byte numbers at @base. */
bool dwarfvalue_indexed(struct dwarffile *f, enum dwarfsection section, uint64_t base, uint64_t i,
			size_t size, uint64_t *ret)
{
	struct cursor c;
	uint64_t off;

	if (__builtin_mul_overflow(i, size, &off) || __builtin_add_overflow(off, base, &off))
		return false;
	c = dwarfsections_at(f->sections, section, off);
	return dwarfvalue_number(&c, size, ret);
}

bool dwarfvalue_address(struct dwarffile *f, const struct dwarfunit *unit,
			const struct dwarfvalue *value, uint64_t *ret)
{
	if (!dwarfvalue_is_address(value->form))
		return false;
	if (value->form != DW_FORM_addr)
		return dwarfvalue_indexed(f, DWARFSECTION_ADDR, unit->addresses, value->number, 8,
					  ret);
	*ret = value->number;
	return true;
}

const char *dwarfvalue_string(struct dwarffile *f, const struct dwarfunit *unit,
			      const struct dwarfvalue *value)
{
	uint64_t off;

	switch (value->form) {
	case DW_FORM_string:
		return value->string;
	case DW_FORM_strp:
		return dwarfsections_string(f->sections, DWARFSECTION_STR, value->number);
	case DW_FORM_line_strp:
		return dwarfsections_string(f->sections, DWARFSECTION_LINE_STR, value->number);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return f->alternate ? dwarfsections_string(f->alternate->sections, DWARFSECTION_STR,
							   value->number)
				    : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return dwarfvalue_indexed(f, DWARFSECTION_STR_OFFSETS, unit->str_offsets,
					  value->number, unit->offset_size, &off)
			       ? dwarfsections_string(f->sections, DWARFSECTION_STR, off)
			       : NULL;
	default:
		return NULL;
	}
}

/* ---------------------------------------------------------------- entries */

struct cursor dwarfentry_cursor(struct dwarffile *f, const struct dwarfunit *unit, uint64_t off)
{
	struct cursor c = dwarfsections_get(f->sections, DWARFSECTION_INFO);

	if (off < unit->first || off > unit->end || unit->end > cursor_left(&c)) {
		c.pos = c.end;
		return c;
	}
	c.end = c.start + unit->end;
	c.pos = c.start + off;
	return c;
}

static bool read_sibling(struct cursor *c, const struct dwarfunit *unit,
			 const struct dwarfabbrev_attr *attr, struct dwarfentry *ret)
{
	struct dwarfvalue value;

	if (!read_value(c, attr, &value))
		return false;
	switch (attr->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		ret->sibling =
			value.number < unit->end - unit->start ? unit->start + value.number : 0;
	}
	return true;
}

static bool do_step(struct cursor *c, const struct dwarfunit *unit, const struct dwarfabbrev_op *op,
		    struct dwarfentry *ret)
{
	const struct dwarfabbrev_attr *attr = &unit->abbrevs->attrs[op->attr];
	struct dwarfvalue unused;

	switch ((enum dwarfabbrev_step)op->step) {
	case DWARFABBREV_SKIP:
		return cursor_skip(c, op->n);
	case DWARFABBREV_LEB:
		return skip_leb(c);
	case DWARFABBREV_STRING:
		return read_string(c, &unused);
	case DWARFABBREV_BLOCK:
		return skip_block(c, op->n);
	case DWARFABBREV_LOW_PC:
		return read_value(c, attr, &ret->low_pc);
	case DWARFABBREV_HIGH_PC:
		return read_value(c, attr, &ret->high_pc);
	case DWARFABBREV_RANGES:
		return read_value(c, attr, &ret->ranges);
	case DWARFABBREV_SIBLING:
		return read_sibling(c, unit, attr, ret);
	}
	return false;
}

/* The abbreviation of the entry at @c. False: malformed; *@ret is NULL for the end of children. */
static inline __attribute__((always_inline)) bool begin_entry(struct dwarffile *f,
							      const struct dwarfunit *unit,
							      struct cursor *c,
							      const struct dwarfabbrev **ret)
{
	uint64_t code;

	*ret = NULL;
	if (!cursor_uleb(c, &code) || !dwarffile_spend(f, 1))
		return false;
	if (code)
		*ret = dwarfabbrevs_get(unit->abbrevs, code);
	return !code || *ret;
}

/* Skips an entry without its children, if it has a fixed size. */
static bool skip_fixed(const struct dwarfunit *unit, struct cursor *c,
		       const struct dwarfabbrev *abbrev, uint64_t *ret_sibling)
{
	uint32_t sibling = 0;

	if (abbrev->fixed > cursor_left(c))
		return false;
	if (abbrev->sibling)
		memcpy(&sibling, c->pos + abbrev->sibling - 1, sizeof(sibling));
	c->pos += abbrev->fixed;
	*ret_sibling = sibling ? unit->start + sibling : 0;
	return true;
}

bool dwarfentry_next(struct dwarffile *f, const struct dwarfunit *unit, struct cursor *c,
		     struct dwarfentry *ret)
{
	const struct dwarfabbrev *abbrev;

	ret->off = cursor_pos(c);
	if (!begin_entry(f, unit, c, &abbrev))
		return false;
	ret->abbrev = abbrev;
	ret->low_pc.form = ret->high_pc.form = ret->ranges.form = 0;
	ret->sibling = 0;
	if (!abbrev || (!abbrev->has_code && skip_fixed(unit, c, abbrev, &ret->sibling)))
		return true;
	for (uint32_t i = 0; i < abbrev->n_ops; i++)
		if (!do_step(c, unit, &unit->abbrevs->ops[abbrev->first_op + i], ret))
			return false;
	return true;
}

/* To @sibling, if it is ahead. */
static bool jump(struct cursor *c, uint64_t sibling)
{
	if (sibling < cursor_pos(c) || sibling > (uint64_t)(c->end - c->start))
		return false;
	c->pos = c->start + sibling;
	return true;
}

bool dwarfentry_skip_children(struct dwarffile *f, const struct dwarfunit *unit, struct cursor *c,
			      const struct dwarfentry *entry)
{
	struct dwarfentry skipped;
	uint64_t sibling;
	size_t depth = 1;

	if (!entry->abbrev->has_children || jump(c, entry->sibling))
		return true;
	while (depth) {
		const struct cursor begin = *c;
		const struct dwarfabbrev *abbrev;

		if (!begin_entry(f, unit, c, &abbrev))
			return false;
		if (!abbrev) {
			depth--;
			continue;
		}
		if (!skip_fixed(unit, c, abbrev, &sibling)) {
			*c = begin;
			if (!dwarfentry_next(f, unit, c, &skipped))
				return false;
			sibling = skipped.sibling;
		}
		if (abbrev->has_children && !jump(c, sibling))
			depth++;
	}
	return true;
}

bool dwarfentry_attributes(struct dwarffile *f, struct dwarfunit *unit, uint64_t off,
			   bool (*each)(void *ctx, uint16_t name, const struct dwarfvalue *value),
			   void *ctx)
{
	struct cursor c;
	const struct dwarfabbrev *abbrev;

	if (dwarffile_read_abbrevs(f, unit))
		return false;
	c = dwarfentry_cursor(f, unit, off);
	if (!begin_entry(f, unit, &c, &abbrev) || !abbrev || !dwarffile_spend(f, abbrev->n_attrs))
		return false;
	for (uint32_t i = 0; i < abbrev->n_attrs; i++) {
		const struct dwarfabbrev_attr *attr = &unit->abbrevs->attrs[abbrev->first_attr + i];
		struct dwarfvalue value;

		if (!read_value(&c, attr, &value))
			return false;
		if (!each(ctx, attr->name, &value))
			return true;
	}
	return true;
}

static struct dwarfunit *unit_at(struct dwarffile *f, uint64_t off)
{
	size_t low = 0, high = f->n_units;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->units[middle].end <= off)
			low = middle + 1;
		else
			high = middle;
	}
	return low < f->n_units && f->units[low].first <= off ? &f->units[low] : NULL;
}

bool dwarfentry_reference(struct dwarffile *f, struct dwarfunit *unit,
			  const struct dwarfvalue *value, struct dwarffile **ret_file,
			  struct dwarfunit **ret_unit, uint64_t *ret_off)
{
	uint64_t off;

	*ret_file = f;
	switch (value->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		if (__builtin_add_overflow(unit->start, value->number, &off) || off < unit->first ||
		    off >= unit->end)
			return false;
		*ret_unit = unit;
		*ret_off = off;
		return true;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		*ret_file = f->alternate;
		/* fall through */
	case DW_FORM_ref_addr:
		*ret_off = value->number;
		*ret_unit = *ret_file ? unit_at(*ret_file, value->number) : NULL;
		return *ret_unit;
	default:
		return false;
	}
}
