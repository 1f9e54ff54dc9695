/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_EHFRAME_H
#define PODPROF_UNWIND_EHFRAME_H

/* Rows from the unwind tables of the linker, .eh_frame and .debug_frame. */

#include <stdbool.h>
#include <stdint.h>

#include "elf/elffile.h"
#include "unwind/described.h"
#include "unwind/ehentry.h"
#include "unwind/rows.h"

/* Added to by each function below. */
struct ehframe_stats {
	uint64_t bytes; /* of the sections */
	uint64_t fdes;	/* with rows */
	uint64_t skipped[EHFRAME_SKIP_MAX];
};

/* The start of the first and the end of the last executable segment. 0, or ELFFILE_ABSENT without
 * executable segments. */
int ehframe_text(const struct elffile *file, uint64_t *ret_start, uint64_t *ret_end);

/**
 * ehframe_add() - the rows of a file's .eh_frame
 * @file:  linked, of x86-64 or AArch64
 * @rows:  made for the file's text; gets a range for each good FDE
 * @stats: counts bad FDEs by reason
 *
 * Reads the section front to back in pieces. A malformed entry loses only its own rows.
 *
 * Return: 0, also for a file without the section; ELFFILE_UNSUPPORTED for another machine or an
 * unlinked file; ELFFILE_TRUNCATED if the file changes meanwhile; -errno; -ENOSPC for more than
 * ROWS_MAX rows. After ELFFILE_TRUNCATED and errors @rows is incomplete.
 */
int ehframe_add(const struct elffile *file, struct rows *rows, struct ehframe_stats *stats);

/* The same of .debug_frame, without its functions that other tables describe: those inside of
 * @described. */
int ehframe_add_debug(const struct elffile *file, const struct described *described,
		      struct rows *rows, struct ehframe_stats *stats);
bool ehframe_has_debug(const struct elffile *file);

/**
 * ehframe_add_functions() - the rows of the functions around some addresses, by .eh_frame alone
 * @vaddrs: @n addresses, ascending. An address outside of all functions adds nothing
 *
 * Takes microseconds for each function, in a file of any size.
 *
 * Return: as ehframe_add(); ELFFILE_ABSENT for a file without the linker's index.
 */
int ehframe_add_functions(const struct elffile *file, const uint64_t *vaddrs, size_t n,
			  struct rows *rows, struct ehframe_stats *stats);

#endif
