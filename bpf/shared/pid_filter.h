/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_PID_FILTER_H
#define PODPROF_BPF_SHARED_PID_FILTER_H

/*
 * The processes to sample, if settings.scope limits them. The programs look here before they take a
 * stack. The key is a __u64: the pid of a process as the agent's /proc shows it.
 */

#include "lib/types.h"

/* Entries. A process takes an entry for its lifetime and one second more, however short its
 * lifetime. With fewer entries, a large build would not fit. 3 MB, and only with a filter. */
#define PID_FILTER_ENTRIES 32768

struct pid_filter_entry {
	__u64 start_boottime_ns; /* of the leader; 0: unknown, the pid alone decides, until the
				  * exit */
	__u64 exited; /* 1: the last thread has ended. The kernel's work for the process after the
		       * exit counts as well, so the entry stays until user space removes it */
};
_Static_assert(sizeof(struct pid_filter_entry) == 16, "value of the pid filter map");

#endif
