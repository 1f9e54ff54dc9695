/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_LINE_READER_H
#define PODPROF_BASE_LINE_READER_H

/* A file line by line in bounded memory, for files in /proc that may be of any size. */

#include <stddef.h>

#include "base/strview.h"

/* Bytes of one line. The longest honest one is in /proc/PID/maps, with a path of PATH_MAX
 * characters that take four each; a longer one is skipped and counted. Reached: skipped, counted by
 * the reader. */
#define LINE_READER_MAX ((size_t)64 << 10)

/* Not 0 ends the reading. The line borrows, and has no newline. */
typedef int (*line_reader_fn)(void *ctx, struct strview line);

/**
 * line_reader_read() - give each line of @fd, from its position on, to @fn
 * @ret_skipped: lines that were too long, counted as they are skipped: what @fn may look at to
 *               know which line it has
 *
 * Return: 0; what @fn returned, if not 0; an outcome of root.h or -errno where reading fails.
 */
int line_reader_read(int fd, line_reader_fn fn, void *ctx, size_t *ret_skipped);

#endif
