/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CODESCAN_CODEENTRIES_H
#define PODPROF_CODESCAN_CODEENTRIES_H

/* Where functions begin of which no unwind table tells: by the file's symbols, its entry, and the
 * pointers in its data. */

#include <stdbool.h>

#include "elf/elffile.h"
#include "unwind/rows.h"

/* Bytes of each table that is looked through; those of libraries of 100 MB are larger, and such
 * have unwind tables. Reached: not looked at. */
#define CODEENTRIES_TABLE_MAX (16u << 20)
/* From the first to the last described byte of a program whose calls are looked through. Reached:
 * not looked at. */
#define CODEENTRIES_CODE_MAX  (32u << 20)
/* Of one image: 16 bytes each. Reached: the others are guessed. */
#define CODEENTRIES_MAX	      (1u << 18)

/* Ascending virtual addresses, some more than once. */
struct codeentries {
	struct codeentry {
		uint64_t vaddr;
		bool pointed; /* data points there: it may be a place inside a function, too */
	} * items;
	size_t n, cap;
};

/* Those in the gaps of @known. 0; ELFFILE_TRUNCATED; -errno. To be deinited whatever is returned.
 */
int codeentries_read(const struct elffile *file, const struct rows *known, struct codeentries *ret);
void codeentries_deinit(struct codeentries *entries);
/* The first one that is not below @vaddr. */
size_t codeentries_find(const struct codeentries *entries, uint64_t vaddr);

#endif
