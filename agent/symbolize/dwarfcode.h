/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFCODE_H
#define PODPROF_SYMBOLIZE_DWARFCODE_H

/*
 * Functions and lines at an address, for most files: without split DWARF and type units. The module
 * gives the same answers as dwarflines.h, which reads the other files, in a small part of the time
 * and memory. Only for the process without rights (dwarfchild.h), because files are mapped.
 */

#include <stddef.h>
#include <stdint.h>

#include "symbolize/dwarfsections.h"

struct dwarfcode;
struct symbol_line;

enum dwarfcode_outcome {
	DWARFCODE_OK = 0,
	DWARFCODE_UNSUPPORTED, /* for dwarflines_open() */
};

/* @fds: the file with DWARF; behind it its alternate file (DWZ), if @n_fds is 2. Borrowed while the
 * reader lives. 0, DWARFCODE_UNSUPPORTED, -ENOMEM. */
int dwarfcode_open(const int *fds, size_t n_fds, struct dwarfcode **ret);
/* Takes @sections (fuzzers, tests). */
int dwarfcode_open_sections(struct dwarfsections *sections, struct dwarfcode **ret);
/* NULL is fine. */
void dwarfcode_free(struct dwarfcode *code);
/* Begins a request: the ceiling of work is one of the addresses until the next call. */
void dwarfcode_renew(struct dwarfcode *code);

/* The functions at @vaddr, innermost first; @ret has SYMBOL_LINES_MAX items. The last item is the
 * function that the others are inlined into; the name is "" if DWARF has only the line. Names are
 * the linker's where there are such. The strings are borrowed until the next call.
 * Returns the number of functions, or -ENOMEM. */
int dwarfcode_find(struct dwarfcode *code, uint64_t vaddr, struct symbol_line *ret);
/* Parts of units read so far: memory grows with these. */
size_t dwarfcode_reads(const struct dwarfcode *code);

#endif
