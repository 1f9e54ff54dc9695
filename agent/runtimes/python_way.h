/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_WAY_H
#define PODPROF_RUNTIMES_PYTHON_WAY_H

/* The way from a thread's thread pointer to the pointer to its state, the same in each thread of a
 * process. */

#include "runtimes/python_threads.h"

struct memory;

/**
 * python_way_find() - find the way by content
 * @machine: e_machine of the interpreter
 * @threads: of the process
 *
 * Searches the blocks of PYTHON_PROBED_THREADS threads for the addresses of their states: some
 * kilobytes a thread. The way is right in most of these threads.
 *
 * Return: 0; PYTHON_NO_STATE; PYTHON_GONE; PYTHON_DENIED; -errno.
 */
int python_way_find(struct memory *m, uint16_t machine, const struct python_layout *layout,
		    const struct python_threads *threads, struct python_way *ret);

#endif
