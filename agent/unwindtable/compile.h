/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_COMPILE_H
#define PODPROF_UNWINDTABLE_COMPILE_H

/* All rows of one image: the rows of the file's tables, of known trampolines, and of the code scan.
 */

#include "base/nsec.h"
#include "elf/elffile.h"
#include "unwind/ehframe.h"
#include "unwind/rows.h"

/* CPU time for one file, where units of work do not describe the work. */
#define COMPILE_CPU_NS (5 * NSEC_PER_SEC)

/**
 * compile_image() - the finished rows of a file
 * @stats: set: the entries that were read and skipped
 *
 * Pure, so it may run on any thread. Costs some 10 ms for each million bytes of table. Memory is
 * the size of @ret, and as much again during the sort. The work on a file has a budget, besides
 * that of @file's.
 *
 * Return: 0, also for a file without tables (then without rows); ELFFILE_UNSUPPORTED for an
 * unsupported machine or file type; ELFFILE_ABSENT without code; ELFFILE_TRUNCATED if the file
 * changes meanwhile; ELFFILE_ABANDONED if a budget has ended; -ENOSPC for more than ROWS_MAX rows;
 * -errno.
 */
int compile_image(const struct elffile *file, struct ehframe_stats *stats, struct rows **ret);

#endif
