/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_LINES_H
#define PODPROF_BASE_LINES_H

/* A file line by line in bounded memory, for files in /proc that may be of any size. */

#include <stddef.h>

#include "base/strview.h"

/* Bytes of one line. The longest honest one is in /proc/PID/maps, with a path of PATH_MAX
 * characters that take four each; a longer one is skipped and counted. Reached: skipped, counted by
 * the reader. */
#define LINES_MAX ((size_t)64 << 10)

/* Not 0 ends the reading. The line borrows, and has no newline. */
typedef int (*lines_fn)(void *ctx, struct strview line);

/**
 * lines_read() - give each line of @fd, from its position on, to @fn
 * @ret_skipped: lines that were too long, counted as they are skipped: what @fn may look at to
 *               know which line it has
 *
 * Return: 0; what @fn returned, if not 0; an outcome of root.h or -errno where reading fails.
 */
int lines_read(int fd, lines_fn fn, void *ctx, size_t *ret_skipped);

#endif
