/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_COMPILE_H
#define PODPROF_UNWINDTABLE_COMPILE_H

/* All rows of one image: those of its tables, those of known trampolines, and those that its code
 * shows. */

#include "elf/elffile.h"
#include "unwind/ehframe.h"
#include "unwind/rows.h"

/**
 * compile_image() - the finished rows of a file
 * @stats: set: what was read and what was left out
 *
 * Pure, so it may run on any thread. Costs some 10 ms for each million bytes of table; memory is
 * what @ret has, and as much again while it sorts.
 *
 * Return: 0, also for a file that has no tables (no rows then); ELFFILE_UNSUPPORTED for a machine
 * or file type that has no rows; ELFFILE_ABSENT if it has no code; ELFFILE_TRUNCATED if it changes
 * meanwhile; -ENOSPC for more than ROWS_MAX rows; -errno.
 */
int compile_image(const struct elffile *file, struct ehframe_stats *stats, struct rows **ret);

#endif
