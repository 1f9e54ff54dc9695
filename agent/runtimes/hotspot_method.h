/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_HOTSPOT_METHOD_H
#define PODPROF_RUNTIMES_HOTSPOT_METHOD_H

/* The function of a Java frame, read from the memory of the process. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "runtimes/hotspot_process.h"
#include "runtimes/runtimes.h"

struct memory;

/* Bytes of a line table: 1 or 2 for each line. The loop reads the whole table for each frame.
 * Reached: the lines behind are not known. */
#define HOTSPOT_LINES_BYTES_MAX (16u << 10)

/* {0} is empty. A blob of code that is no method has its own name, and nothing else. */
struct hotspot_function {
	char name[RUNTIMES_NAME_MAX];
	char file[RUNTIMES_FILE_MAX];
	uint32_t first_line; /* 0: not known */
	bool is_compiled;    /* places are pcs */
	bool no_zero;	     /* of hotspot_line() */
	uint8_t *lines;	     /* owned */
	size_t n_lines;
};

void hotspot_function_deinit(struct hotspot_function *f);

/**
 * hotspot_function_read() - read a function
 * @words: of the frame; the place does not count
 * @ret:   must be empty; stays empty on failure
 *
 * The words of the check are compared before and after the reading, so a name belongs to the frame.
 *
 * Return: 0; HOTSPOT_ODD if the memory is no such function, or not the frame's any more;
 * HOTSPOT_UNREADABLE; HOTSPOT_GONE; HOTSPOT_DENIED; -errno.
 */
int hotspot_function_read(struct memory *m, const struct hotspot_target *target,
			  const uint64_t words[2], struct hotspot_function *ret);

/* The line at @place of a frame's second word; 0: not known. */
uint32_t hotspot_function_line(const struct hotspot_function *f, uint32_t place);

#endif
