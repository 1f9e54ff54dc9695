/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_NSEC_H
#define PODPROF_BASE_NSEC_H

/* Time, always in nanoseconds. Three clocks must not be mixed: monotonic for durations and timers,
 * wall for times sent to other machines, boot for comparison with the kernel's task start times. */

#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_USEC 1000ull

static inline uint64_t nsec_of(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * NSEC_PER_SEC + (uint64_t)ts->tv_nsec;
}

static inline uint64_t nsec_read(clockid_t clock)
{
	struct timespec ts = {0};

	clock_gettime(clock, &ts); /* fails only for an unknown clock */
	return nsec_of(&ts);
}

static inline uint64_t nsec_monotonic(void)
{
	return nsec_read(CLOCK_MONOTONIC);
}

static inline uint64_t nsec_wall(void)
{
	return nsec_read(CLOCK_REALTIME);
}

static inline uint64_t nsec_boot(void)
{
	return nsec_read(CLOCK_BOOTTIME);
}

#endif
