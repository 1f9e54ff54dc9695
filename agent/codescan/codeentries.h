/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CODESCAN_CODEENTRIES_H
#define PODPROF_CODESCAN_CODEENTRIES_H

/* Entries of functions without unwind tables: from the symbols of the file, the entry, and the
 * pointers in the data. */

#include <stdbool.h>

#include "codescan/codegaps.h"
#include "elf/elffile.h"
#include "unwind/rows.h"

/* Bytes of each searched table, and of all writable data. Libraries of 100 MB have larger tables,
 * and also have unwind tables. Reached: not looked at. */
#define CODEENTRIES_TABLE_MAX (16u << 20)
/* Bytes from the first to the last described byte of a program whose calls are searched. Reached:
 * not looked at. */
#define CODEENTRIES_CODE_MAX  (32u << 20)
/* Entries of one image: 16 bytes each. Reached: the others are guessed. */
#define CODEENTRIES_MAX	      (1u << 18)

/* Ascending virtual addresses, some more than once. */
struct codeentries {
	struct codeentry {
		uint64_t vaddr;
		bool pointed; /* data points there, perhaps inside a function */
	} * items;
	size_t n, cap;
};

/* The entries in the gaps of @known. 0; ELFFILE_TRUNCATED; ELFFILE_ABANDONED; -errno. Must be
 * deinited after any result. */
int codeentries_read(const struct elffile *file, const struct rows *known,
		     const struct codegaps *gaps, struct codeentries *ret);
void codeentries_deinit(struct codeentries *entries);
/* The first entry at or above @vaddr. */
size_t codeentries_find(const struct codeentries *entries, uint64_t vaddr);

#endif
