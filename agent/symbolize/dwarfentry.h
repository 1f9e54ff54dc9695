/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFENTRY_H
#define PODPROF_SYMBOLIZE_DWARFENTRY_H

/*
 * The entries (DIEs) of a unit of DWARF, and the values of their attributes. Documentation: DWARF
 * 5, 7.5.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/dwarffile.h"

/* The value of an attribute: a number as in the file, or a string in the entry itself. */
struct dwarfvalue {
	uint16_t form; /* 0: none */
	uint64_t number;
	const char *string;
};

/* An entry with the attributes that a search for addresses needs. */
struct dwarfentry {
	uint64_t off;			  /* in .debug_info */
	const struct dwarfabbrev *abbrev; /* NULL: the end of the children of an entry */
	struct dwarfvalue low_pc;
	struct dwarfvalue high_pc;
	struct dwarfvalue ranges;
	uint64_t sibling; /* offset; 0: unknown */
};

/* The entries of @unit from @off on, up to the end of the unit. The unit's abbreviations are
 * read. None if @off is outside. */
struct cursor dwarfentry_cursor(struct dwarffile *f, const struct dwarfunit *unit, uint64_t off);
/* The next entry; @c moves to the one behind, which may be its child. False at the end of the unit,
 * if the entry is malformed, or at the ceiling of work. */
bool dwarfentry_next(struct dwarffile *f, const struct dwarfunit *unit, struct cursor *c,
		     struct dwarfentry *ret);
/* From the first child of @entry to the entry behind its children. */
bool dwarfentry_skip_children(struct dwarffile *f, const struct dwarfunit *unit, struct cursor *c,
			      const struct dwarfentry *entry);
/* Calls @each for the attributes of the entry at @off, until false. False if the entry is
 * malformed. */
bool dwarfentry_attributes(struct dwarffile *f, struct dwarfunit *unit, uint64_t off,
			   bool (*each)(void *ctx, uint16_t name, const struct dwarfvalue *value),
			   void *ctx);
/* The value as a string, borrowed; NULL if it is none. */
const char *dwarfvalue_string(struct dwarffile *f, const struct dwarfunit *unit,
			      const struct dwarfvalue *value);
/* The entry that @value refers to; also in another unit, or in the alternate file. False: none. */
bool dwarfentry_reference(struct dwarffile *f, struct dwarfunit *unit,
			  const struct dwarfvalue *value, struct dwarffile **ret_file,
			  struct dwarfunit **ret_unit, uint64_t *ret_off);

/* The value of an attribute; the bytes of blocks are skipped. False if the value is malformed. */
bool dwarfvalue_read(struct cursor *c, const struct dwarfabbrev_attr *attr, struct dwarfvalue *ret);
/* A number of @size bytes, 1 to 8. */
bool dwarfvalue_number(struct cursor *c, size_t size, uint64_t *ret);
/* The length at the begin of a table, and the size of offsets, 4 or 8. */
bool dwarfvalue_length(struct cursor *c, uint64_t *ret, uint8_t *ret_offset_size);
/* Number @i of a table of @size-byte numbers at @base. */
bool dwarfvalue_indexed(struct dwarffile *f, enum dwarfsection section, uint64_t base, uint64_t i,
			size_t size, uint64_t *ret);
bool dwarfvalue_is_address(uint16_t form);
bool dwarfvalue_address(struct dwarffile *f, const struct dwarfunit *unit,
			const struct dwarfvalue *value, uint64_t *ret);

#endif
