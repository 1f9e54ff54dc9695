/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_ELF_ELFSYM_H
#define PODPROF_ELF_ELFSYM_H

/*
 * A few symbols of an ELF file by name. For "what is at this address" see symbolize/symtab.h.
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

/* Names that can be asked for at once. Reached: -. */
#define ELFSYM_NAMES_MAX 16

/* What has one of the names. */
struct elfsym {
	uint64_t vaddr;
	uint64_t size;
	uint32_t section; /* index, for elffile_section_at() */
	uint32_t n;	  /* different addresses that have the name; the others are of the first */
};

/**
 * elfsym_find() - the variables that have these names
 * @ret: one for each name, in their order; n is 0 where there is none
 *
 * Reads .symtab, local symbols included, and not .dynsym. Only defined data symbols count. The
 * tables are read piece by piece and not kept.
 *
 * Return: 0, an outcome, -errno. On everything but 0 @ret is not touched.
 */
int elfsym_find(const struct elffile *ef, const char *const *names, size_t n, struct elfsym *ret);

const char *elfsym_outcome_name(int outcome);

#endif
