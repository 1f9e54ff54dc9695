/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_COMPLEXITY_COUNT_H
#define PODPROF_TEST_COMPLEXITY_COUNT_H

/*
 * Counts the work of the agent's code: the basic blocks that it runs, by the compiler's
 * instrumentation, and the bytes that it gives to the C library and to zlib, in units of 16. The
 * count is the same on each machine and under any load, but for one percent: hashes have a random
 * seed.
 */

#include <stdint.h>

/* Since the program's begin. */
uint64_t count_now(void);

#endif
