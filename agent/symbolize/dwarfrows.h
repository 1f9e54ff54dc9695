/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DWARFROWS_H
#define PODPROF_SYMBOLIZE_DWARFROWS_H

/*
 * The line table of a unit, DWARF 2 to 5: from an address to a file, a line and a column.
 * Documentation: DWARF 5, 6.2.
 */

#include <stddef.h>
#include <stdint.h>

struct dwarffile;
struct dwarfunit;
struct dwarfrows;

/* Rows of a unit: 32 MB of the process's memory. Reached: the unit has no lines. */
#define DWARFROWS_MAX	    ((size_t)1 << 21)
/* Files, and directories, of a unit. Reached: further ones have no names. */
#define DWARFROWS_FILES_MAX ((size_t)UINT16_MAX)

/* A row is 16 bytes: a program has millions. A larger column is 0. */
struct dwarfrow {
	uint64_t vaddr;
	uint32_t line;
	uint16_t file; /* UINT16_MAX: no code from here on */
	uint16_t column;
};

/* The table of @unit; empty if it is malformed. 0 or -ENOMEM. */
int dwarfrows_read(struct dwarffile *f, const struct dwarfunit *unit, struct dwarfrows **ret);
/* NULL is fine. */
void dwarfrows_free(struct dwarfrows *rows);
/* The last row at or before @vaddr; NULL if there is no code. */
const struct dwarfrow *dwarfrows_find(const struct dwarfrows *rows, uint64_t vaddr);
/* The path of a file: the name in @ret_name, relative to *@ret_directory, which may be NULL.
 * Without the number: NULL. Borrowed. */
const char *dwarfrows_file(const struct dwarfrows *rows, uint64_t number,
			   const char **ret_directory);

#endif
