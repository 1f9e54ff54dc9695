/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_HOTSPOT_METHOD_H
#define PODPROF_RUNTIMES_HOTSPOT_METHOD_H

/* The functions of a Java frame, read from the memory of the process. */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "runtimes/hotspot_process.h"
#include "runtimes/runtimes.h"

struct memory;

/* The function at a place of a frame, and the functions that are inlined there. {0} is empty. A
 * blob of code that is no method has its own name, and nothing else. */
struct hotspot_function {
	struct runtime_place *places; /* owned, @n_places in the order of struct runtime_place, the
					 function last; their strings lie behind them */
	size_t n_places;
	size_t n_bytes; /* of all */
};

void hotspot_function_deinit(struct hotspot_function *f);

/**
 * hotspot_function_read() - read the functions of a frame
 * @words: of the frame, with the place
 * @ret:   must be empty; stays empty on failure
 *
 * The words of the check are compared before and after the reading, and so are the words that lead
 * to the debug information: the names belong to the frame.
 *
 * Return: 0; HOTSPOT_ODD if the memory is no such function, or not the frame's any more;
 * HOTSPOT_UNREADABLE; HOTSPOT_GONE; HOTSPOT_DENIED; -errno.
 */
int hotspot_function_read(struct memory *m, const struct hotspot_target *target,
			  const uint64_t words[2], struct hotspot_function *ret);

/* The last place, with the others inlined. Borrowed. */
struct runtime_place hotspot_function_place(const struct hotspot_function *f);

#endif
