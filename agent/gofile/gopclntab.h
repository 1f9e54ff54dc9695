/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOPCLNTAB_H
#define PODPROF_GOFILE_GOPCLNTAB_H

/*
 * Go's line table (.gopclntab), since Go 1.16: function names, files, lines and inlining, in
 * binaries without any symbol table too. The table is up to 37 MB, so it is never copied: it is
 * read in place through elffile_read() and a small cache of blocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elffile;
struct gopclntab;

/* Bytes of a name or path that are kept, with the NUL; the rest is cut off. Reached: cut. */
#define GOPCLNTAB_NAME_MAX 512

enum gopclntab_outcome {
	GOPCLNTAB_OK = 0,
	GOPCLNTAB_ABSENT,      /* the file has none: not Go */
	GOPCLNTAB_UNSUPPORTED, /* an unknown magic, or a text base that cannot be found */
	GOPCLNTAB_MALFORMED,   /* an offset leaves the table, or does not lead where it should */
	GOPCLNTAB_NOT_FOUND,   /* no function has this address, or this name */
	GOPCLNTAB_OUTCOME_MAX,
};

/*
 * @file is borrowed and must outlive the table. 0, an outcome, -errno.
 * A table is used by one thread at a time, since each question moves its cache.
 */
int gopclntab_open(const struct elffile *file, struct gopclntab **ret);
void gopclntab_free(struct gopclntab *t);
/* From now on names of generic functions as they are stored: since Go 1.21 with the types' names,
 * "F[go.shape.int]", which is how a program's own profiles have them, unlike its traces. */
void gopclntab_keep_type_arguments(struct gopclntab *t);

/* Memory held now, which grows with use up to a bit over 256 KiB. */
size_t gopclntab_bytes(const struct gopclntab *t);
/* Reads of the file since gopclntab_open(). */
uint64_t gopclntab_reads(const struct gopclntab *t);
/* Whether inlined functions can be told. If not, gopclntab_find() names the physical function, and
 * gives no line where that would be another function's. */
bool gopclntab_has_inlining(const struct gopclntab *t);

/* One function at an address, as values: the caller interns what it keeps. */
struct gopclntab_line {
	char function[GOPCLNTAB_NAME_MAX]; /* generic arguments as Go prints them, F[...] */
	char file[GOPCLNTAB_NAME_MAX];	   /* "" if not known, as for C code in a Go program */
	uint32_t line;			   /* 0 if not known */
	uint32_t start_line;		   /* of the function, Go 1.20 and later; else 0 */
	uint64_t entry;			   /* vaddr of the physical function */
	int32_t parent_pc; /* offset from @entry of the call it is inlined at; -1: not inlined */
	uint8_t func_id; /* the runtime's mark for special functions; its numbers differ by release
			  */
	bool wrapper;	 /* made by the compiler; Go's own traces leave it out */
};

/**
 * gopclntab_find() - the innermost function at an address
 * @vaddr: of the instruction: subtract 1 from a return address first
 * @ret:   for the enclosing function ask again at its entry + parent_pc, while parent_pc >= 0; a
 *         hostile table can make that go in circles, so count
 *
 * An address between two functions belongs to the one before it, as the runtime has it.
 *
 * Return: 0, GOPCLNTAB_NOT_FOUND, GOPCLNTAB_MALFORMED, -errno.
 */
int gopclntab_find(struct gopclntab *t, uint64_t vaddr, struct gopclntab_line *ret);

/**
 * gopclntab_sp() - how far the stack pointer is from where it was when its function was entered
 * @vaddr: of the instruction that is executed next: a return address as it is
 * @ret:   bytes
 *
 * Return: 0; GOPCLNTAB_NOT_FOUND, also where the table says nothing about the place, or something
 * that cannot be; GOPCLNTAB_MALFORMED; -errno.
 */
int gopclntab_sp(struct gopclntab *t, uint64_t vaddr, uint32_t *ret);

const char *gopclntab_outcome_name(int outcome);

#endif
