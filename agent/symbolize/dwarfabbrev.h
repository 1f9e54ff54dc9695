/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFABBREV_H
#define PODPROF_SYMBOLIZE_DWARFABBREV_H

/*
 * Abbreviations of DWARF: the tag and the attributes of all entries (DIEs) with the same number.
 * Most entries of a unit are only skipped. So each declaration is compiled: an entry whose
 * attributes all have a fixed size is skipped with one addition. Documentation: DWARF 5, 7.5.3.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

/* Declarations of a table. Reached: the unit has no functions. */
#define DWARFABBREV_MAX	      (1u << 16)
/* Attributes of all declarations of a table. Reached: the same. */
#define DWARFABBREV_ATTRS_MAX (1u << 20)

/* Sizes of forms that depend on the unit: DWARF 32 or 64, and DWARF 2. */
struct dwarfabbrev_sizes {
	uint8_t offset;	  /* of an offset: 4 or 8 */
	uint8_t ref_addr; /* of DW_FORM_ref_addr */
};

/* A step over the attributes of an entry. */
enum dwarfabbrev_step {
	DWARFABBREV_SKIP, /* @n bytes */
	DWARFABBREV_LEB,
	DWARFABBREV_STRING,
	DWARFABBREV_BLOCK,  /* @n bytes of length, or 0: LEB128 */
	DWARFABBREV_LOW_PC, /* the attribute is read, as below */
	DWARFABBREV_HIGH_PC,
	DWARFABBREV_RANGES,
	DWARFABBREV_SIBLING,
};

/* @step and @n are those of the form: up to DWARFABBREV_BLOCK. */
struct dwarfabbrev_attr {
	uint16_t name;
	uint16_t form;
	uint16_t step;
	uint16_t n;
	int64_t value; /* of a form without bytes */
};

struct dwarfabbrev_op {
	uint16_t step;
	uint16_t n;
	uint32_t attr; /* index in the table */
};

/**
 * struct dwarfabbrev - a declaration
 * @fixed:   size of all attributes; UINT32_MAX: not fixed
 * @sibling: of an entry with a fixed size: offset of the attribute DW_AT_sibling, of 4 bytes,
 *           plus 1; 0: none
 */
struct dwarfabbrev {
	uint64_t code;
	uint32_t first_attr;
	uint32_t n_attrs;
	uint32_t first_op;
	uint32_t n_ops;
	uint32_t fixed;
	uint32_t sibling;
	uint16_t tag;
	bool has_children;
	bool has_code; /* entries may have addresses that are searched for */
};

struct dwarfabbrevs {
	struct dwarfabbrev *items;
	size_t n;
	size_t cap;
	struct dwarfabbrev_attr *attrs;
	size_t n_attrs;
	size_t cap_attrs;
	struct dwarfabbrev_op *ops;
	size_t n_ops;
	size_t cap_ops;
	bool is_dense;
};

enum dwarfabbrev_outcome {
	DWARFABBREV_OK = 0,
	DWARFABBREV_MALFORMED,
	DWARFABBREV_UNSUPPORTED, /* DW_FORM_indirect, or an unknown form */
};

/* Sets the step of the attribute's form. False if the form is unknown. */
bool dwarfabbrev_attr_step(struct dwarfabbrev_attr *attr, const struct dwarfabbrev_sizes *sizes);

/* Reads the table at @c, or the declaration @only alone if @only is not 0. @ret is zeroed, or has
 * another table, whose memory is used again. 0, an outcome, -ENOMEM; @ret needs
 * dwarfabbrevs_deinit() in any case. */
int dwarfabbrevs_read(struct cursor *c, const struct dwarfabbrev_sizes *sizes, uint64_t only,
		      struct dwarfabbrevs *ret);
void dwarfabbrevs_deinit(struct dwarfabbrevs *a);
/* NULL if there is none. */
const struct dwarfabbrev *dwarfabbrevs_search(const struct dwarfabbrevs *a, uint64_t code);

static inline const struct dwarfabbrev *dwarfabbrevs_get(const struct dwarfabbrevs *a,
							 uint64_t code)
{
	if (!a->is_dense)
		return dwarfabbrevs_search(a, code);
	return code - 1 < a->n ? &a->items[code - 1] : NULL;
}

#endif
