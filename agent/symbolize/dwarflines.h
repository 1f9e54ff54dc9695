/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFLINES_H
#define PODPROF_SYMBOLIZE_DWARFLINES_H

/*
 * Functions and lines at an address, read with libdw. libdw trusts files: a hostile file can
 * crash libdw, or keep libdw busy for ever. Only for the process without rights (dwarfchild.h).
 * Documentation: DWARF 5, 2.17 (code addresses), 3.3.8 (inlined functions), 6.2 (lines).
 */

#include <stddef.h>
#include <stdint.h>

struct dwarflines;
struct symbol_line;

enum dwarflines_outcome {
	DWARFLINES_OK = 0,
	DWARFLINES_UNREADABLE,
};

/* @fds: the file with DWARF; behind it its alternate file (DWZ), if @n_fds is 2. Borrowed while the
 * reader lives. @no_memory is called in the middle of libdw, and must end the process. 0,
 * DWARFLINES_UNREADABLE, -ENOMEM. */
int dwarflines_open(const int *fds, size_t n_fds, __attribute__((noreturn)) void (*no_memory)(void),
		    struct dwarflines **ret);
/* NULL is fine. */
void dwarflines_free(struct dwarflines *lines);

/* The functions at @vaddr, innermost first; @ret has SYMBOL_LINES_MAX items. The last item is the
 * function that the others are inlined into; the name is "" if DWARF has only the line. Names are
 * the linker's where there are such. The strings are borrowed until the next call.
 * Returns the number of functions, or -ENOMEM. */
int dwarflines_find(struct dwarflines *lines, uint64_t vaddr, struct symbol_line *ret);

#endif
