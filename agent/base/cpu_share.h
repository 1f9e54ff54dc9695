/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_CPU_SHARE_H
#define PODPROF_BASE_CPU_SHARE_H

#include <stdint.h>

/*
 * A token bucket of CPU time, for work that others can ask for without end. The owner charges the
 * CPU time of finished work, and waits before the next piece while the bucket is in debt. Any
 * thread may call; times are nsec_monotonic().
 */

/**
 * struct cpu_share - {.parts, .burst_ns} is a full bucket
 * @parts:    the work gets one part of so many of one CPU
 * @burst_ns: CPU time that a full bucket holds
 * @paid_ns:  time at which everything charged is paid for
 */
struct cpu_share {
	uint64_t parts;
	uint64_t burst_ns;
	_Atomic uint64_t paid_ns;
};

/* @now_ns: the time at the end of the work. */
void cpu_share_charge(struct cpu_share *s, uint64_t now_ns, uint64_t cpu_ns);
/* Nanoseconds until the bucket is out of debt; 0: not in debt. */
uint64_t cpu_share_wait_ns(const struct cpu_share *s, uint64_t now_ns);

/* CPU time of the calling thread. */
uint64_t cpu_share_thread_ns(void);

#endif
