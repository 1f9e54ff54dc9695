/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_OFFCPU_H
#define PODPROF_BPF_SHARED_OFFCPU_H

/* The off-CPU program's plan for choosing task switches. */

#include "lib/types.h"

/* Skip counts in the plan. */
#define OFFCPU_PLAN_DRAWS 1024

/* Stacks that a CPU's budget can save: about 300 us of work at once. */
#define OFFCPU_BURST  64
/* Largest number of doublings of the distance between chosen switches; random numbers have 16
 * bits. */
#define OFFCPU_LEVELS 16

/* Written before the program is attached. */
struct offcpu_plan {
	__u64 stack_ns;		       /* CPU time of the budget for each stack */
	__u64 weight;		       /* switches represented by a chosen switch */
	__u32 pass[OFFCPU_PLAN_DRAWS]; /* switches to skip, all equally likely */
};

/* Threads with more than SAMPLE_LARGE_FRAMES words that are off the CPU at once; together they take
 * as much memory as the large class. Reached: the waits of further ones are lost_full. */
#define OFF_CPU_DEEP 128

/* Counters of threads off the CPU. */
#define OFF_CPU_SLOTS 16384

#endif
