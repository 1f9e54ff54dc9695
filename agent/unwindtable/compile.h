/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_COMPILE_H
#define PODPROF_UNWINDTABLE_COMPILE_H

/* All rows of one image: those of its file's tables and those that others know. */

#include <stdbool.h>

#include "elf/elffile.h"
#include "unwind/ehframe.h"
#include "unwindtable/rowfile.h"
#include "unwind/rows.h"

struct compile_opts {
	/* Adds ranges of other sources (Go's tables); NULL for none. 0, or an error with which
	 * compile_image() returns. */
	int (*more)(void *ctx, struct rows *rows);
	void *ctx;
	/* What the file's tables say, whatever is known better (synthetic.h), and nothing of code
	 * that they do not describe (codescan.h). */
	bool described_only;
	/* The folder with the user's row files (rowfile.h); NULL for none. */
	const char *rows_dir;
	/* What became of the image's, if there is a folder; NULL if not wanted. */
	struct rowfile_report *rowfile;
};

/**
 * compile_image() - the finished rows of a file
 * @opts:  NULL for the defaults
 * @stats: set: what was read and what was left out
 *
 * Pure but for the user's file: nothing but its arguments, so it may run on any thread. Costs some
 * 10 ms for each million bytes of table; memory is what @ret has, and as much again while it sorts.
 *
 * Return: 0, also for a file that has no tables (no rows then, or those of @opts);
 * ELFFILE_UNSUPPORTED for a machine or file type that has no rows; ELFFILE_ABSENT if it has no
 * code; ELFFILE_TRUNCATED if it changes meanwhile; -ENOSPC for more than ROWS_MAX rows; -errno.
 */
int compile_image(const struct elffile *file, const struct compile_opts *opts,
		  struct ehframe_stats *stats, struct rows **ret);

#endif
