/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_GOIMAGE_H
#define PODPROF_UNWINDTABLE_GOIMAGE_H

/* Joins the reader of Go's stack tables (gofile/gopcsp) with what makes unwind rows of them
 * (unwind/gorows). */

#include "unwind/gorows.h"

struct elffile;
struct rows;

/**
 * goimage_rows() - add the rows of a file's Go code
 * @rows:      that image's, not finished
 * @ret_stats: NULL if not wanted
 *
 * Costs about 1 ns for each byte of the file on a worker thread, and memory for its stack tables
 * while it runs.
 *
 * Return: 0, also if some functions have no rows (@ret_stats); an outcome of enum gopcsp_outcome if
 * the file is not Go or its tables cannot be read: nothing was added; -ENOSPC if @rows is full;
 * -errno.
 */
int goimage_rows(const struct elffile *file, struct rows *rows, struct gorows_stats *ret_stats);

/* The same for compile_image() (unwindtable/compile.h): its opts' "more", with the file (const
 * struct elffile *) as context. A file that is not Go, or odd, has no such rows. */
int goimage_more(void *file, struct rows *rows);

#endif
