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
	ELFSYM_ABSENT,	  /* the file has no .symtab */
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

/**
 * elfsym_find() - find variables by name
 * @ret: an entry for each name, in the same order; n is 0 without a match
 *
 * Reads .symtab, local symbols included, and not .dynsym. Only defined data symbols count. The
 * tables are read piece by piece and not kept.
 *
 * Return: 0, an outcome, -errno. On everything but 0 @ret is not touched.
 */
int elfsym_find(const struct elffile *ef, const char *const *names, size_t n, struct elfsym *ret);

#endif
