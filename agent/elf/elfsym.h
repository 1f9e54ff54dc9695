/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_ELF_ELFSYM_H
#define PODPROF_ELF_ELFSYM_H

/*
 * Finds a few symbols of an ELF file by name. symbolize/symtab.h finds symbols by address.
 */

#include <stddef.h>
#include <stdint.h>

struct elffile;

enum elfsym_outcome {
	ELFSYM_OK = 0,
	ELFSYM_ABSENT,	  /* the file has no such table */
	ELFSYM_MALFORMED, /* a table leaves the file, or is longer than the ceilings in elfsym.c */
	ELFSYM_OUTCOME_MAX,
};

/* Names in one request. Reached: -. */
#define ELFSYM_NAMES_MAX 16

/* The symbols with one of the names. */
struct elfsym {
	uint64_t vaddr;
	uint64_t size;
	uint32_t section; /* index, for elffile_section_at() */
	uint32_t n; /* number of different addresses of the name; the other fields describe the
		       first */
};

enum elfsym_table {
	ELFSYM_SYMTAB, /* local symbols included; strip(1) removes it */
	ELFSYM_DYNSYM, /* of the dynamic linker */
};

enum elfsym_kind {
	ELFSYM_DATA = 1,
	ELFSYM_CODE = 2,
};

/**
 * elfsym_find() - find symbols by name
 * @kinds: enum elfsym_kind, bits; a symbol without type is of both. Only defined symbols count
 * @ret:   an entry for each name, in the same order; n is 0 without a match
 *
 * The tables are read piece by piece and not kept. In .dynsym the linker's hash table is used, if
 * there is one.
 *
 * Return: 0, an outcome, -errno. On everything but 0 @ret is not touched.
 */
int elfsym_find(const struct elffile *ef, enum elfsym_table table, uint32_t kinds,
		const char *const *names, size_t n, struct elfsym *ret);

/* The entries of a table. Likewise. */
int elfsym_count(const struct elffile *ef, enum elfsym_table table, uint64_t *ret);

#endif
