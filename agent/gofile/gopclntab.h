/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOPCLNTAB_H
#define PODPROF_GOFILE_GOPCLNTAB_H

/*
 * Go's line table (.gopclntab), since Go 1.16: function names, files, lines and inlining, also in
 * binaries without a symbol table. The table has up to 37 MB and is never copied: all reads are in
 * place, through elffile_read() and a small cache of blocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elffile;
struct gopclntab;

/* Bytes kept of a name or path, with the NUL. Reached: cut. */
#define GOPCLNTAB_NAME_MAX 512

enum gopclntab_outcome {
	GOPCLNTAB_OK = 0,
	GOPCLNTAB_ABSENT,      /* no line table: not Go */
	GOPCLNTAB_UNSUPPORTED, /* an unknown magic, or an unknown text base */
	GOPCLNTAB_MALFORMED,   /* an offset outside of the table, or to a wrong place */
	GOPCLNTAB_NOT_FOUND,   /* no function has this address or name */
	GOPCLNTAB_ABANDONED,   /* the file takes too much work */
	GOPCLNTAB_OUTCOME_MAX,
};

/*
 * @file is borrowed and must outlive the table. 0, an outcome, -errno. A table is for one thread at
 * a time, because each question changes the cache.
 */
int gopclntab_open(const struct elffile *file, struct gopclntab **ret);
void gopclntab_free(struct gopclntab *t);
/* From now on, return names of generic functions as stored: since Go 1.21 with the types' names,
 * "F[go.shape.int]", as in a program's own profiles but unlike its traces. */
void gopclntab_keep_type_arguments(struct gopclntab *t);

/* Memory held now; grows with use to slightly more than 128 KiB. */
size_t gopclntab_bytes(const struct gopclntab *t);
/* Frees the blocks of the file that are held for further look-ups. */
void gopclntab_drop_blocks(struct gopclntab *t);
/* Reads of the file since gopclntab_open(). */
uint64_t gopclntab_reads(const struct gopclntab *t);
/* Whether inlined functions can be resolved. If not, gopclntab_find() names the physical
 * function, and gives no line if the line would be another function's. */
bool gopclntab_has_inlining(const struct gopclntab *t);

/* A function at an address, as values: the caller interns the parts to keep. */
struct gopclntab_line {
	char function[GOPCLNTAB_NAME_MAX]; /* generic arguments as Go prints them, F[...] */
	char file[GOPCLNTAB_NAME_MAX];	   /* "" if unknown, as for C code in a Go program */
	uint32_t line;			   /* 0 if unknown */
	uint32_t start_line;		   /* of the function, Go 1.20 and later; else 0 */
	uint64_t entry;			   /* vaddr of the physical function */
	int32_t parent_pc; /* offset from @entry of the inlined call; -1: not inlined */
	uint8_t func_id;   /* the runtime's mark for special functions; numbers differ by release */
	bool wrapper;	   /* made by the compiler; Go's own traces omit wrappers */
};

/**
 * gopclntab_find() - the innermost function at an address
 * @vaddr: of the instruction: subtract 1 from a return address first
 * @ret:   for the enclosing function, ask again at entry + parent_pc while parent_pc >= 0; limit
 *         the number of repetitions, because a hostile table can contain cycles
 *
 * An address between two functions belongs to the function before, as in the runtime.
 *
 * Return: 0, GOPCLNTAB_NOT_FOUND, GOPCLNTAB_MALFORMED, -errno.
 */
int gopclntab_find(struct gopclntab *t, uint64_t vaddr, struct gopclntab_line *ret);

/**
 * gopclntab_sp() - the distance of the stack pointer from its value at the function's entry
 * @vaddr: of the next instruction to execute: an unchanged return address
 * @ret:   bytes
 *
 * Return: 0; GOPCLNTAB_NOT_FOUND, also if the table has no entry or an impossible value for the
 * place; GOPCLNTAB_MALFORMED; -errno.
 */
int gopclntab_sp(struct gopclntab *t, uint64_t vaddr, uint32_t *ret);

#endif
