/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFLINES_H
#define PODPROF_SYMBOLIZE_DWARFLINES_H

/*
 * Functions and lines at an address, read with libdw. libdw trusts files: a hostile file can
 * crash libdw, or keep libdw busy for ever. Only for the process without rights (dwarfchild.h).
 * Documentation: DWARF 5, 2.17 (code addresses), 3.3.8 (inlined functions), 6.2 (lines).
 */

#include <stdbool.h>
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
/* A file of split DWARF, for the compile unit with the number @unit. */
struct dwarflines_split {
	uint32_t unit;
	int fd;
};
/* Borrows @splits while the reader lives. libdw opens files by name: after lend(), the next calls
 * of open() must give @fd, or fail if @fd is -1. */
void dwarflines_set_splits(struct dwarflines *lines, const struct dwarflines_split *splits,
			   size_t n, void (*lend)(int fd));
/* The @i-th file of split DWARF that has been missed since dwarflines_set_splits(): the number of
 * the unit, the unit's id, and the path, of PATH_MAX bytes. False: no more. */
bool dwarflines_wanted(const struct dwarflines *lines, size_t i, uint32_t *ret_unit,
		       uint64_t *ret_id, char *ret_path);
/* NULL is fine. */
void dwarflines_free(struct dwarflines *lines);

/* The functions at @vaddr, innermost first; @ret has SYMBOL_LINES_MAX items. The last item is the
 * function that the others are inlined into; the name is "" if DWARF has only the line. Names are
 * the linker's where there are such. The strings are borrowed until the next call.
 * Returns the number of functions, or -ENOMEM. */
int dwarflines_find(struct dwarflines *lines, uint64_t vaddr, struct symbol_line *ret);
/* Parts of units read so far: memory grows with these. */
size_t dwarflines_reads(const struct dwarflines *lines);

#endif
