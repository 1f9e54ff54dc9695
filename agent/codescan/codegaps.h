/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CODESCAN_CODEGAPS_H
#define PODPROF_CODESCAN_CODEGAPS_H

/* The code of a file that no row describes. A program has a million rows and a few hundred gaps, so
 * all questions go to the gaps. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elffile.h"
#include "unwind/rows.h"

/* Of a word of @parts. */
#define CODEGAPS_WORD_BITS 64u

/* [start, end) in virtual addresses, inside one executable segment. */
struct codegap {
	uint64_t start;
	uint64_t end;
	uint32_t segment; /* its index */
};

/**
 * struct codegaps - ascending, without overlaps
 * @code:  bytes of the code (unwind/coderanges.h)
 * @parts: a bit for each part of 1 << @shift bytes from @low on: whether it has bytes of a gap
 */
struct codegaps {
	struct codegap *items;
	size_t n, cap;
	uint64_t code;
	uint64_t *parts;
	uint64_t low;
	unsigned int shift;
};

/**
 * codegaps_find() - the gaps of @known, which are finished rows
 *
 * Return: 0; ELFFILE_ABANDONED; -ENOMEM. @ret must be deinited after any result.
 */
int codegaps_find(const struct elffile *file, const struct rows *known, struct codegaps *ret);
void codegaps_deinit(struct codegaps *gaps);

/* The first gap that ends after @vaddr; n if there is none. */
size_t codegaps_at(const struct codegaps *gaps, uint64_t vaddr);
bool codegaps_has(const struct codegaps *gaps, uint64_t vaddr);

/* False if no gap is near the place @off bytes behind the beginning of the first gap and before the
 * end of the last. */
static inline bool codegaps_near(const struct codegaps *gaps, uint64_t off)
{
	const uint64_t part = off >> gaps->shift;

	return gaps->parts[part / CODEGAPS_WORD_BITS] >> part % CODEGAPS_WORD_BITS & 1;
}

#endif
