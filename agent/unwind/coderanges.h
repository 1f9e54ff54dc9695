/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_CODERANGES_H
#define PODPROF_UNWIND_CODERANGES_H

/*
 * The code of a file: its executable segments, as far as they hold code. Many linkers put headers,
 * names, constants and the unwind tables into the executable segment, too. In LLVM's libraries that
 * is half of the segment.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elffile.h"

/* [start, end) in virtual addresses, inside the bytes that one segment has in the file. */
struct coderange {
	uint64_t start;
	uint64_t end;
	uint32_t segment; /* its index */
};

/**
 * struct coderanges - ascending, without overlaps
 * @bytes: of all ranges
 */
struct coderanges {
	struct coderange *items;
	size_t n, cap;
	uint64_t bytes;
};

/**
 * coderanges_find() - the executable sections of each executable segment
 *
 * Sections with at most CODERANGES_PADDING bytes between them are one range. A segment without such
 * sections is one range as a whole. Executable segments ascend and do not overlap in linked files;
 * bytes below the end of an earlier range are left out.
 *
 * Return: 0; ELFFILE_ABANDONED; -ENOMEM. @ret must be deinited after any result.
 */
int coderanges_find(const struct elffile *file, struct coderanges *ret);
void coderanges_deinit(struct coderanges *ranges);

/* Bytes between two sections for alignment. */
#define CODERANGES_PADDING 64u

#endif
