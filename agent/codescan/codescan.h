/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CODESCAN_CODESCAN_H
#define PODPROF_CODESCAN_CODESCAN_H

/*
 * Rows of code that no table describes, from the code itself: where its functions have the stack
 * pointer at each instruction, as disassembling them tells. For musl above all, which is built
 * without tables and without frame pointers, be it the library or part of a static program.
 */

#include "elf/elffile.h"
#include "unwind/rows.h"

/* Undescribed code of an image: below, it is not worth it (the few functions that every program
 * begins and ends with); above, it is left alone. musl has 500 KB; libraries that keep frame
 * pointers instead of tables are larger, and what is found by those is not bad either. */
#define CODESCAN_BYTES_MIN    256u
/* Bytes of code without unwind tables that are disassembled in one image; musl has 500 KB. Reached:
 * the code has no rows. */
#define CODESCAN_BYTES_MAX    (4u << 20)
/* Different states of the stack in one image; libc.so of musl has 600. Reached: the functions
 * behind have no rows. */
#define CODESCAN_STATES_MAX   16384u
/* Bytes of one function. Reached: what is behind has no rows. */
#define CODESCAN_FUNCTION_MAX (256u << 10)
/* Instructions looked at, some several times: a second. libc.so of musl takes 2.8 million, 0.1 s.
 * Reached: the functions behind have no rows. */
#define CODESCAN_STEPS_MAX    16000000u

/* What was found, for people. */
struct codescan_stats {
	uint64_t bytes;	    /* undescribed */
	uint64_t functions; /* that have rows now */
	uint64_t dropped;   /* that were not understood */
	uint64_t described; /* bytes that have rows now */
	uint64_t steps;	    /* of CODESCAN_STEPS_MAX; where it ends, so do the rows */
};

/**
 * codescan_add() - add rows for the gaps of an image
 * @known: its finished rows
 * @rows:  where to: another one of the same image, not finished
 *
 * Return: 0; ELFFILE_TRUNCATED; -ENOSPC for too many rows; -errno.
 */
int codescan_add(const struct elffile *file, const struct rows *known, struct rows *rows,
		 struct codescan_stats *ret);

/* Bytes of code in the gaps between @known's rows; 0 if it is not worth a look. */
uint64_t codescan_wanted(const struct elffile *file, const struct rows *known);

#endif
