/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_LINE_READER_H
#define PODPROF_BASE_LINE_READER_H

/* Reads a file line by line in bounded memory, for files in /proc of any size. */

#include <stddef.h>

#include "base/strview.h"

/* Bytes of one line. The longest honest line is in /proc/PID/maps: a path of PATH_MAX characters,
 * four bytes each. Reached: skipped, counted by the reader. */
#define LINE_READER_MAX ((size_t)64 << 10)

/* Not 0 ends the reading. The line borrows, and has no newline. */
typedef int (*line_reader_fn)(void *ctx, struct strview line);

/**
 * line_reader_read() - pass each line of @fd, from its position on, to @fn
 * @ret_skipped: number of lines skipped for their length, updated as reading goes on, so @fn can
 *               compute the current line's number
 *
 * Return: 0; a result of @fn other than 0; an outcome of root.h or -errno if reading fails.
 */
int line_reader_read(int fd, line_reader_fn fn, void *ctx, size_t *ret_skipped);

#endif
