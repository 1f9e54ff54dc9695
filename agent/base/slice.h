/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_SLICE_H
#define PODPROF_BASE_SLICE_H

/*
 * For a thread that needs a CPU soon rather than much of it. Since Linux 6.12 (857b158dc5e8) a
 * thread may have its own slice, without any capability, and among threads with the same right to a
 * CPU the shortest slice runs first. Its share of the CPU stays the same.
 */

/* For the calling thread, and threads that it starts later. Does nothing on older kernels, and for
 * a thread with another policy than SCHED_OTHER. */
void slice_ask_short(void);

/* Ahead of all threads of the node with the policy SCHED_OTHER, where the rights permit it
 * (CAP_SYS_NICE or RLIMIT_RTPRIO): the lowest priority of SCHED_RR, for the calling thread alone.
 * Else slice_ask_short(). For a thread that never works for long. */
void slice_ask_first(void);

#endif
