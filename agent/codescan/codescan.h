/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CODESCAN_CODESCAN_H
#define PODPROF_CODESCAN_CODESCAN_H

/*
 * Rows of code without tables, from the code itself: disassembling the functions shows the stack
 * pointer at each instruction. The main case is musl, built without tables and without frame
 * pointers, as a library or as part of a static program.
 */

#include "elf/elffile.h"
#include "unwind/rows.h"

/* Undescribed code of an image. Below the minimum it is not worth the work (the few functions at
 * every program's start and end); above the maximum it is left alone. musl has 500 KB. Larger
 * libraries keep frame pointers instead of tables, and walking by these is good enough. */
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

/* Results, for people. */
struct codescan_stats {
	uint64_t bytes;	    /* undescribed */
	uint64_t functions; /* with rows now */
	uint64_t dropped;   /* not understood */
	uint64_t described; /* bytes with rows now */
	uint64_t steps;	    /* of CODESCAN_STEPS_MAX; the rows end with the steps */
};

/**
 * codescan_add() - add rows for the gaps of an image
 * @known: its finished rows
 * @rows:  receives the rows: another list of the same image, not finished
 *
 * Return: 0; ELFFILE_TRUNCATED; ELFFILE_ABANDONED; -ENOSPC for too many rows; -errno.
 */
int codescan_add(const struct elffile *file, const struct rows *known, struct rows *rows,
		 struct codescan_stats *ret);

/* *@ret: bytes of code in the gaps between @known's rows; 0 if a scan is not worthwhile. 0;
 * ELFFILE_ABANDONED; -ENOMEM. */
int codescan_wanted(const struct elffile *file, const struct rows *known, uint64_t *ret);

#endif
