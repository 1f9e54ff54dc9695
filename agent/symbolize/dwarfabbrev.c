// SPDX-License-Identifier: Apache-2.0
#include "symbolize/dwarfabbrev.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

#define VARIABLE UINT32_MAX

/* Room at first: a usual table has 100 declarations with 500 attributes. */
#define ITEMS_FIRST 64
#define ATTRS_FIRST 256

bool dwarfabbrev_attr_step(struct dwarfabbrev_attr *attr, const struct dwarfabbrev_sizes *sizes)
{
	attr->step = DWARFABBREV_SKIP;
	attr->n = 0;
	switch (attr->form) {
	case DW_FORM_flag_present:
		attr->value = 1;
		return true;
	case DW_FORM_implicit_const:
		return true;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		attr->n = 1;
		return true;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		attr->n = 2;
		return true;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		attr->n = 3;
		return true;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		attr->n = 4;
		return true;
	case DW_FORM_addr:
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		attr->n = 8;
		return true;
	case DW_FORM_data16:
		attr->n = 16;
		return true;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_sec_offset:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		attr->n = sizes->offset;
		return true;
	case DW_FORM_ref_addr:
		attr->n = sizes->ref_addr;
		return true;
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		attr->step = DWARFABBREV_LEB;
		return true;
	case DW_FORM_string:
		attr->step = DWARFABBREV_STRING;
		return true;
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
		attr->step = DWARFABBREV_BLOCK;
		attr->n = attr->form == DW_FORM_block1 ? 1 : attr->form == DW_FORM_block2 ? 2 : 4;
		return true;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		attr->step = DWARFABBREV_BLOCK;
		return true;
	default:
		return false;
	}
}

static bool has_code(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return true;
	default:
		return false;
	}
}

/* The step of an attribute that is read, not skipped. */
static void set_read(const struct dwarfabbrev *item, uint16_t name, uint16_t *step)
{
	if (!item->has_code && name != DW_AT_sibling)
		return;
	switch (name) {
	case DW_AT_low_pc:
		*step = DWARFABBREV_LOW_PC;
		break;
	case DW_AT_high_pc:
		*step = DWARFABBREV_HIGH_PC;
		break;
	case DW_AT_ranges:
		*step = DWARFABBREV_RANGES;
		break;
	case DW_AT_sibling:
		*step = DWARFABBREV_SIBLING;
		break;
	}
}

/* Room for one more in a table of @n items. 0, DWARFABBREV_UNSUPPORTED, -ENOMEM. */
static inline int grow(void *items, size_t *cap, size_t n, size_t first, size_t size, size_t max)
{
	int r;

	if (n < *cap)
		return 0;
	r = vec_grow(items, cap, n < first ? first : n + 1, size, max);
	return r > 0 ? DWARFABBREV_UNSUPPORTED : r;
}

/* Neighbouring fixed sizes become one step. */
static int add_op(struct dwarfabbrevs *a, struct dwarfabbrev *item, struct dwarfabbrev_op op)
{
	struct dwarfabbrev_op *last = item->n_ops ? &a->ops[a->n_ops - 1] : NULL;
	int r;

	if (op.step == DWARFABBREV_SKIP && !op.n)
		return 0;
	if (op.step == DWARFABBREV_SKIP && last && last->step == DWARFABBREV_SKIP &&
	    last->n + op.n <= UINT16_MAX) {
		last->n = (uint16_t)(last->n + op.n);
		return 0;
	}
	r = grow(&a->ops, &a->cap_ops, a->n_ops, ATTRS_FIRST, sizeof(*a->ops),
		 DWARFABBREV_ATTRS_MAX);
	if (r)
		return r;
	a->ops[a->n_ops++] = op;
	item->n_ops++;
	return 0;
}

static int add_attr(struct dwarfabbrevs *a, const struct dwarfabbrev_sizes *sizes,
		    struct dwarfabbrev *item, struct dwarfabbrev_attr *attr)
{
	struct dwarfabbrev_op op;
	int r;

	if (!dwarfabbrev_attr_step(attr, sizes))
		return DWARFABBREV_UNSUPPORTED;
	r = grow(&a->attrs, &a->cap_attrs, a->n_attrs, ATTRS_FIRST, sizeof(*a->attrs),
		 DWARFABBREV_ATTRS_MAX);
	if (r)
		return r;
	op = (struct dwarfabbrev_op){attr->step, attr->n, (uint32_t)a->n_attrs};
	a->attrs[a->n_attrs++] = *attr;
	item->n_attrs++;
	if (attr->name == DW_AT_sibling && attr->form == DW_FORM_ref4 && item->fixed != VARIABLE)
		item->sibling = item->fixed + 1;
	if (attr->step != DWARFABBREV_SKIP)
		item->fixed = VARIABLE;
	else if (item->fixed != VARIABLE)
		item->fixed += attr->n;
	set_read(item, attr->name, &op.step);
	return add_op(a, item, op);
}

static int read_attrs(struct cursor *c, const struct dwarfabbrev_sizes *sizes,
		      struct dwarfabbrevs *a, struct dwarfabbrev *item)
{
	for (;;) {
		struct dwarfabbrev_attr attr = {.value = 0};
		uint64_t name, form;
		int r;

		if (!cursor_uleb(c, &name) || !cursor_uleb(c, &form))
			return DWARFABBREV_MALFORMED;
		if (!name && !form)
			return 0;
		if (form == DW_FORM_implicit_const && !cursor_sleb(c, &attr.value))
			return DWARFABBREV_MALFORMED;
		if (name > UINT16_MAX || form > UINT16_MAX)
			return DWARFABBREV_UNSUPPORTED;
		attr.name = (uint16_t)name;
		attr.form = (uint16_t)form;
		r = add_attr(a, sizes, item, &attr);
		if (r)
			return r;
	}
}

static int add_item(struct dwarfabbrevs *a, const struct dwarfabbrev *item)
{
	int r = grow(&a->items, &a->cap, a->n, ITEMS_FIRST, sizeof(*a->items), DWARFABBREV_MAX);

	if (r)
		return r;
	a->items[a->n++] = *item;
	a->is_dense = a->is_dense && item->code == a->n;
	return 0;
}

/* Moves to the declaration of @code, over others. False if there is none. */
static bool seek(struct cursor *c, uint64_t code)
{
	struct cursor begin;
	uint64_t found, name, form;
	int64_t unused;
	uint8_t children;

	for (;;) {
		begin = *c;
		if (!cursor_uleb(c, &found) || !found)
			return false;
		if (found == code)
			break;
		if (!cursor_uleb(c, &name) || !cursor_u8(c, &children))
			return false;
		do {
			if (!cursor_uleb(c, &name) || !cursor_uleb(c, &form) ||
			    (form == DW_FORM_implicit_const && !cursor_sleb(c, &unused)))
				return false;
		} while (name || form);
	}
	*c = begin;
	return true;
}

static int by_code(const void *a, const void *b)
{
	const struct dwarfabbrev *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

static int read_items(struct cursor *c, const struct dwarfabbrev_sizes *sizes, uint64_t only,
		      struct dwarfabbrevs *a)
{
	uint64_t tag;
	uint8_t children;

	do {
		struct dwarfabbrev item;
		int r;

		item = (struct dwarfabbrev){.first_attr = (uint32_t)a->n_attrs,
					    .first_op = (uint32_t)a->n_ops};
		if (!cursor_uleb(c, &item.code))
			return DWARFABBREV_MALFORMED;
		if (!item.code)
			return 0;
		if (!cursor_uleb(c, &tag) || !cursor_u8(c, &children) || tag > UINT16_MAX)
			return DWARFABBREV_MALFORMED;
		item.tag = (uint16_t)tag;
		item.has_children = children != 0;
		item.has_code = has_code(tag);
		r = read_attrs(c, sizes, a, &item);
		if (!r)
			r = add_item(a, &item);
		if (r)
			return r;
	} while (!only);
	return 0;
}

int dwarfabbrevs_read(struct cursor *c, const struct dwarfabbrev_sizes *sizes, uint64_t only,
		      struct dwarfabbrevs *ret)
{
	int r;

	ret->n = ret->n_attrs = ret->n_ops = 0;
	ret->is_dense = true;
	if (only && !seek(c, only))
		return DWARFABBREV_MALFORMED;
	r = read_items(c, sizes, only, ret);
	if (!ret->is_dense)
		qsort(ret->items, ret->n, sizeof(*ret->items), by_code);
	return r;
}

void dwarfabbrevs_deinit(struct dwarfabbrevs *a)
{
	free(a->items);
	free(a->attrs);
	free(a->ops);
	*a = (struct dwarfabbrevs){.n = 0};
}

const struct dwarfabbrev *dwarfabbrevs_search(const struct dwarfabbrevs *a, uint64_t code)
{
	const struct dwarfabbrev key = {.code = code};

	return a->n ? bsearch(&key, a->items, a->n, sizeof(*a->items), by_code) : NULL;
}
