/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_FLATMEMORY_H
#define PODPROF_TEST_SUPPORT_FLATMEMORY_H

/* A process whose memory is one piece of bytes. */

#include <stddef.h>
#include <stdint.h>

#include "procmap/memory.h"

/* The address of the first byte. */
#define FLATMEMORY_BASE 4096ull

/* @bytes: each address modulo their number has one, if @wraps; else the addresses behind the last
 * are not mapped. */
struct flatmemory {
	struct memory memory;
	const uint8_t *bytes;
	size_t n;
	int wraps;
};

/* Borrows @bytes. */
void flatmemory_init(struct flatmemory *fm, const void *bytes, size_t n);

#endif
