/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_HEAP_H
#define PODPROF_BASE_HEAP_H

/* The C library's heaps, as the agent and its benchmarks set them. */

#include <malloc.h>

/* Free memory at the end of a heap that the C library keeps, and the size of a block of its own.
 * Without a setting, glibc raises both with each large block freed, up to 64 MiB and 32 MiB. */
#define HEAP_KEPT_BYTES (1 << 20)

/* For the whole process. */
static inline void heap_keep_little(void)
{
	(void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT_BYTES);
	(void)mallopt(M_MMAP_THRESHOLD, HEAP_KEPT_BYTES);
}

#endif
