/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_LOOP_H
#define PODPROF_RUNTIMES_PYTHON_LOOP_H

/* The parts of CPython's evaluation loop in an image. */

#include <stddef.h>
#include <stdint.h>

#include "runtimes/python_layout.h"

struct elffile;

/* Bytes of the loop's first part, the symbol's: 38 to 64 KB in builds for production, 200 KB
 * without optimisation. Reached: `no_loop`. */
#define PYTHON_LOOP_BYTES_MAX (1u << 20)

/**
 * python_loop_find() - all parts of the loop
 * @vaddr, @size: the symbol of the loop's function
 * @ret:          [begin, end) vaddrs of the parts, the symbol's first
 *
 * Return: 0; PYTHON_NO_LOOP; PYTHON_MACHINE; PYTHON_MALFORMED; -errno.
 */
int python_loop_find(const struct elffile *ef, uint64_t vaddr, uint64_t size,
		     uint64_t ret[PYTHON_LOOPS_MAX][2], size_t *ret_n);

#endif
