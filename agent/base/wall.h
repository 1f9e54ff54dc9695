/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_WALL_H
#define PODPROF_BASE_WALL_H

#include "base/nsec.h"

/* The wall clock's time at 0 of the boot clock: changes only if the wall clock is set. A thread
 * that loses the CPU between the two readings gets an earlier time. */
static inline uint64_t wall_at_boot(void)
{
	const uint64_t wall_ns = nsec_wall();

	return wall_ns - nsec_boot();
}

#endif
