/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_DESCRIBED_H
#define PODPROF_UNWIND_DESCRIBED_H

/*
 * The code that rows describe, while they are still collected: the union of their ranges. A table
 * that most files have twice is read for the rest only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elffile;
struct rows;

struct described_range {
	uint64_t start; /* virtual addresses */
	uint64_t end;
};

/* Ascending, without overlaps. Padding of up to ROWS_PADDING_MAX bytes between functions counts as
 * described. */
struct described {
	struct described_range *memory; /* owned */
	struct described_range *items;	/* in it */
	size_t n;
};

/* 0 or -ENOMEM. @ret must be deinited after any result. */
int described_init(struct described *ret, const struct rows *rows);
void described_deinit(struct described *d);

/* Whether all of [@start, @end) is described, padding excepted. */
bool described_has(const struct described *d, uint64_t start, uint64_t end);

/**
 * described_leaves() - whether a file has code outside that is worth another table
 * @ret: the file's sections of code have at least DESCRIBED_LEFT_MIN bytes outside, or a 16th of
 *       their own. Padding between functions does not count.
 *
 * Return: 0; ELFFILE_ABANDONED.
 */
int described_leaves(const struct described *d, const struct elffile *file, bool *ret);

/* Bytes: the few functions at every program's start and end have no table at all. */
#define DESCRIBED_LEFT_MIN 256u

#endif
