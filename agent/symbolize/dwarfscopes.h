/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFSCOPES_H
#define PODPROF_SYMBOLIZE_DWARFSCOPES_H

/*
 * The functions inlined into a function, and its blocks, with their addresses: a tree, in the order
 * of the entries. A profile often has several addresses of a function, and most entries below a
 * function are variables, parameters and calls. The tree is read once, and then asked for each
 * address.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/dwarfentry.h"

/* Inlined functions and blocks of a function. Reached: the entries are read for each address. */
#define DWARFSCOPES_MAX	       ((size_t)1 << 16)
/* Their ranges of addresses. Reached: the same. */
#define DWARFSCOPES_RANGES_MAX ((size_t)1 << 16)
/* Depth of the tree. Reached: the same. */
#define DWARFSCOPES_DEPTH_MAX  256

/**
 * struct dwarfscope
 * @off:         of the entry
 * @next:        index of the scope behind its children
 * @first_range: in the table of ranges
 * @is_inlined:  else a block
 * @is_open:     a block without addresses of its own has those of the code around it
 */
struct dwarfscope {
	uint64_t off;
	uint32_t next;
	uint32_t first_range;
	uint32_t n_ranges;
	bool is_inlined;
	bool is_open;
};

struct dwarfscope_range {
	uint64_t start;
	uint64_t end;
};

/* Begins zeroed; the memory is used again for the next function. */
struct dwarfscopes {
	struct dwarfscope *items;
	size_t n;
	size_t cap;
	struct dwarfscope_range *ranges;
	size_t n_ranges;
	size_t cap_ranges;
};

enum dwarfscopes_outcome {
	DWARFSCOPES_OK = 0,
	DWARFSCOPES_PARTIAL, /* malformed, or a ceiling is reached: not to be used */
};

/* Whether the entry is an inlined function or a block. */
bool dwarfscope_is_one(const struct dwarfentry *entry);
/* Whether it has the addresses of the code around it. */
bool dwarfscope_is_open(const struct dwarfentry *entry);

/* Reads the tree below the function's entry at @function. 0, DWARFSCOPES_PARTIAL, -ENOMEM. */
int dwarfscopes_read(struct dwarfscopes *scopes, struct dwarffile *f, const struct dwarfunit *unit,
		     uint64_t function);
void dwarfscopes_deinit(struct dwarfscopes *scopes);
/* The entries of the functions inlined at @vaddr, the outermost first, at most @max. Returns their
 * number. Charged to @f; at the ceiling there are fewer. */
size_t dwarfscopes_find(const struct dwarfscopes *scopes, struct dwarffile *f, uint64_t vaddr,
			uint64_t *ret, size_t max);

#endif
