/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_COMPLEXITY_COUNT_H
#define PODPROF_TEST_COMPLEXITY_COUNT_H

/*
 * Counts the work of the agent's code: executed basic blocks, by the compiler's instrumentation,
 * and bytes given to the C library, in units of 16, to zlib, liblzma, jansson and libyaml. The
 * count is the same on each machine and under any load, except for a percent, because hashes have a
 * random seed. It is the count of the calling thread.
 */

#include <stdint.h>

/* Since the thread's begin. */
uint64_t count_now(void);

#endif
