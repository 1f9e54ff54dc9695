/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_GOPCLNTAB_H
#define PODPROF_SYMBOLIZE_GOPCLNTAB_H

/*
 * Go's line table (.gopclntab), Go 1.16 to 1.27: function names, files, lines and inlining, in
 * binaries without any symbol table too. The table is up to 37 MB, so it is never copied: it is
 * read in place through elffile_read() and a small cache of blocks.
 */

#include <stddef.h>
#include <stdint.h>

#include "symbolize/symbolizer.h"

struct elffile;
struct gopclntab;

enum gopclntab_outcome {
	GOPCLNTAB_OK = 0,
	GOPCLNTAB_ABSENT,      /* the file has none: not Go */
	GOPCLNTAB_UNSUPPORTED, /* an unknown magic, or a text base that cannot be found */
	GOPCLNTAB_MALFORMED,   /* an offset leaves the table */
	GOPCLNTAB_NOT_FOUND,   /* no function has this address */
	GOPCLNTAB_OUTCOME_MAX,
};

/* @file is borrowed. 0, an outcome, -errno. */
int gopclntab_open(const struct elffile *file, struct gopclntab **ret);
void gopclntab_free(struct gopclntab *t);
size_t gopclntab_bytes(const struct gopclntab *t);

/* One function at an address, as values: the caller interns what it keeps. */
struct gopclntab_line {
	char function[512]; /* cut there; generic arguments as Go prints them, F[...] */
	char file[512];
	uint32_t line;
	uint32_t start_line; /* of the function, Go 1.20 and later; else 0 */
	uint64_t entry;	     /* vaddr of the physical function */
	int32_t parent_pc;   /* offset from @entry of the call it is inlined at; -1: not inlined */
	uint8_t func_id;
	bool wrapper; /* made by the compiler; not shown to people */
};

/* The innermost function at @vaddr (of the instruction; subtract 1 from a return address first).
 * For the enclosing one ask again at entry + parent_pc while parent_pc >= 0. */
int gopclntab_find(struct gopclntab *t, uint64_t vaddr, struct gopclntab_line *ret);
/* The entry of a function by its full name; a linear search, for finding runtime functions. */
int gopclntab_find_function(struct gopclntab *t, const char *name, uint64_t *ret_vaddr);

#endif
