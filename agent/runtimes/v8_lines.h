/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_LINES_H
#define PODPROF_RUNTIMES_V8_LINES_H

/* Lines of a script: from positions, numbers of characters, to lines. */

#include <stddef.h>
#include <stdint.h>

#include "runtimes/v8_object.h"

/* Characters of a script in which lines are counted, for each function anew, 64 KB a read: 2 ms. V8
 * has counted the lines itself once the script has made a stack trace. Reached: functions behind
 * have no lines. */
#define V8_SOURCE_MAX (1u << 20)
/* Lines of one function. Reached: its later lines are not known. */
#define V8_LINES_MAX  8192

/**
 * struct v8_lines - lines around a function
 * @first: line of the first position asked for; 0: no lines are known
 * @from:  this position
 * @ends:  positions of the ends of @n lines, this one first; owned
 */
struct v8_lines {
	uint32_t first;
	uint32_t from;
	uint32_t *ends;
	size_t n;
};

void v8_lines_deinit(struct v8_lines *lines);

/**
 * v8_lines_read() - the lines of the positions from @from to @to
 * @script: an object of this type
 * @ret:    must be empty; stays empty on failure
 *
 * V8 counts the lines of a script when it needs them, in an array. Without the array, podprof
 * counts in the source.
 *
 * Return: 0; V8_ODD; an outcome of memory; -errno.
 */
int v8_lines_read(const struct v8_heap *heap, uint64_t script, uint32_t from, uint32_t to,
		  struct v8_lines *ret);

/* The line of a position in the range; 0: not known. */
uint32_t v8_lines_find(const struct v8_lines *lines, uint32_t position);

#endif
