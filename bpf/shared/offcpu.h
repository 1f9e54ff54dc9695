/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_OFFCPU_H
#define PODPROF_BPF_SHARED_OFFCPU_H

/* Which task switches the off-CPU program looks at. */

#include "lib/types.h"

/* Numbers to draw from. */
#define OFFCPU_PLAN_DRAWS 1024

/* Stacks that a CPU's budget can save up: some 300 us of taking them at once. */
#define OFFCPU_BURST  64
/* Distances between chosen switches are doubled so often at most; random numbers have 16 bits. */
#define OFFCPU_LEVELS 16

/* Written before the program is attached. */
struct offcpu_plan {
	__u64 stack_ns; /* of a CPU's time for each stack that is taken there: the budget */
	__u64 weight;	/* switches that a chosen one stands for */
	__u32 pass[OFFCPU_PLAN_DRAWS]; /* switches to pass over, each as likely as any other */
};

/* Counters of threads that are off the CPU. */
#define OFF_CPU_SLOTS 16384

#endif
