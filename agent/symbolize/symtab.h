/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_SYMTAB_H
#define PODPROF_SYMBOLIZE_SYMTAB_H

/*
 * The functions of an ELF file's .symtab and .dynsym, by address. Names stay in the file and are
 * read on request.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elffile;
struct symtab;

/* Bytes of a name, with the NUL. C++ has some of several KiB. Reached: cut. */
#define SYMTAB_NAME_MAX 4096

enum symtab_outcome {
	SYMTAB_OK = 0,
	SYMTAB_ABSENT,	  /* no functions in either table */
	SYMTAB_NOT_FOUND, /* no function has this address, or the name is unreadable */
	SYMTAB_ABANDONED, /* the file takes too much work */
	SYMTAB_OUTCOME_MAX,
};

struct symtab_symbol {
	char name[SYMTAB_NAME_MAX]; /* the name in the file, without a version */
	uint64_t vaddr;
	uint64_t size;	  /* 0 if the file does not say */
	bool from_symtab; /* the table of all functions, not only of those for other files */
};

/* @file is borrowed; look-ups are charged to the same budget. 0, SYMTAB_ABSENT, SYMTAB_ABANDONED,
 * -errno. With SYMTAB_ABANDONED, @ret is the table within the budget, and untouched without one. A
 * malformed table counts up to the first unreadable part. */
int symtab_open(const struct elffile *file, struct symtab **ret);
void symtab_free(struct symtab *t);
/* Memory. */
size_t symtab_bytes(const struct symtab *t);
/* Frees the blocks of the file that are held for further look-ups. */
void symtab_drop_blocks(struct symtab *t);

/* The function around @vaddr; an address after a function's end does not belong to the function.
 * The latest start wins, and of several names the most public. 0, SYMTAB_NOT_FOUND, -errno. */
int symtab_find(const struct symtab *t, uint64_t vaddr, struct symtab_symbol *ret);

#endif
