/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_PID_FILTER_H
#define PODPROF_BPF_SHARED_PID_FILTER_H

/*
 * Which processes' samples are wanted, where not everybody's are (settings.scope): the programs
 * look here before they take a stack. The key is a __u64: a process's number as the agent's /proc
 * shows it.
 */

#include "lib/types.h"

/* Entries. A process takes one while it lives and a second longer, however short it lives; with
 * fewer a large build would not fit. 3 MB, and only where samples are filtered. */
#define PID_FILTER_ENTRIES 32768

struct pid_filter_entry {
	__u64 start_boottime_ns; /* of the leader; 0: not known, then the number alone decides */
	__u64 exited; /* 1: its last thread has ended. What the kernel does for it after that is
		       * its time as well, so that the entry stays until user space takes it */
};
_Static_assert(sizeof(struct pid_filter_entry) == 16, "value of the table of those wanted");

#endif
