/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFRANGES_H
#define PODPROF_SYMBOLIZE_DWARFRANGES_H

/*
 * Ranges of addresses of DWARF's units and functions, and lists to search in. Documentation:
 * DWARF 5, 2.17.3; DWARF 4, 2.17.3.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

struct dwarfentry;
struct dwarffile;
struct dwarfunit;

struct dwarfrange {
	uint64_t start;
	uint64_t end;
	uint64_t index; /* of the unit; of a function: offset of its entry */
};

struct dwarfranges {
	struct dwarfrange *items;
	size_t n;
	size_t cap;
};

/* Ranges of addresses of an entry, one after the other. */
struct dwarfrange_reader {
	struct dwarffile *file;
	const struct dwarfunit *unit;
	struct cursor list;
	uint64_t base;
	struct dwarfrange pair;
	enum { DWARFRANGE_END, DWARFRANGE_PAIR, DWARFRANGE_LIST } kind;
};

void dwarfrange_begin(struct dwarfrange_reader *r, struct dwarffile *f,
		      const struct dwarfunit *unit, const struct dwarfentry *entry);
/* False at the end. */
bool dwarfrange_next(struct dwarfrange_reader *r, uint64_t *ret_start, uint64_t *ret_end);
/* Whether a pass over the entries of @f has met the ceiling of entries of lists. */
bool dwarfranges_exhausted(const struct dwarffile *f);
/* Adds a range; removed code, at 0 or 1, is left out. 0, 1 without room, -ENOMEM. */
int dwarfranges_put(struct dwarfranges *ranges, uint64_t start, uint64_t end, uint64_t index);
/* Adds all ranges of the entry, as @index. 0 or -ENOMEM. */
int dwarfranges_add(struct dwarfranges *ranges, struct dwarfrange_reader *reader, uint64_t index);
void dwarfranges_sort(struct dwarfranges *ranges);
/* The range that begins last at or before @vaddr; NULL if there is none. */
const struct dwarfrange *dwarfranges_before(const struct dwarfranges *ranges, uint64_t vaddr);
/* The range with @vaddr that begins last; NULL if there is none. */
const struct dwarfrange *dwarfranges_find(const struct dwarfranges *ranges, uint64_t vaddr);

#endif
