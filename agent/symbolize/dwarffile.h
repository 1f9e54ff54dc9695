/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFFILE_H
#define PODPROF_SYMBOLIZE_DWARFFILE_H

/*
 * The compile units of a file with DWARF 2 to 5, and the entries (DIEs) of a unit. The file's owner
 * chooses all numbers: each is checked, and work is charged to a ceiling. Documentation: DWARF 5,
 * 7.5 (units, entries, forms), 2.17.3 (ranges).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/dwarfabbrev.h"
#include "symbolize/dwarfranges.h"
#include "symbolize/dwarfsections.h"

/* Units of a file. Reached: libdw reads the file. */
#define DWARFFILE_UNITS_MAX ((size_t)1 << 22)
/* Steps for opening a file, and for the addresses of a request: an entry, an attribute, a range or
 * an instruction of a line table each, about 5 ns. Reached: no names of further code. */
#define DWARFFILE_WORK_MAX  ((uint64_t)1 << 29)

#define DWARF_NONE UINT64_MAX

struct dwarfrows;

/**
 * struct dwarfunit - a unit, with the attributes of its first entry
 * @start, @end: in .debug_info, with the header
 * @first:       offset of the first entry
 * @base:        address that ranges are relative to
 * @lines:       offset in .debug_line; DWARF_NONE: none
 * @abbrevs:     NULL: not read; of this unit or an earlier one
 * @rows, @functions: see dwarfcode.c
 */
struct dwarfunit {
	uint64_t start;
	uint64_t end;
	uint64_t first;
	uint64_t abbrevs_at;
	uint64_t base;
	uint64_t lines;
	uint64_t str_offsets;
	uint64_t addresses;
	uint64_t rnglists;
	const char *directory; /* of the compiler; NULL: unknown */
	struct dwarfabbrevs *abbrevs;
	struct dwarfrows *rows;
	struct dwarfranges functions;
	uint8_t version;
	uint8_t offset_size; /* 4 or 8 */
	uint8_t depth;
	bool is_c; /* types hold no functions */
	bool is_used;
};

struct dwarffile {
	struct dwarfsections *sections;
	struct dwarfunit *units;
	size_t n_units;
	size_t cap_units;
	struct dwarfranges ranges; /* of the units, sorted */
	struct dwarffile *alternate;
	struct dwarfabbrevs first; /* of the last unit's first entry */
	uint64_t work;		   /* left */
	size_t n_list_entries;	   /* of ranges, read in this pass (dwarfranges.c) */
};

enum dwarffile_outcome {
	DWARFFILE_OK = 0,
	DWARFFILE_UNSUPPORTED, /* split DWARF, type units, addresses of other than 8 bytes */
};

/* Takes @sections in any case. @alternate is borrowed, or NULL. 0, DWARFFILE_UNSUPPORTED,
 * -ENOMEM. */
int dwarffile_open(struct dwarfsections *sections, struct dwarffile *alternate,
		   struct dwarffile **ret);
/* NULL is fine. */
void dwarffile_free(struct dwarffile *f);
/* False at the ceiling. */
static inline bool dwarffile_spend(struct dwarffile *f, uint64_t steps)
{
	if (f->work < steps)
		return false;
	f->work -= steps;
	return true;
}

struct dwarfabbrev_sizes dwarffile_sizes(const struct dwarfunit *unit);
/* The abbreviations of the unit. 0, or above 0 if they are not usable, -ENOMEM. */
int dwarffile_read_abbrevs(struct dwarffile *f, struct dwarfunit *unit);

#endif
