/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_OFFCPU_H
#define PODPROF_BPF_SHARED_OFFCPU_H

/* Which task switches the off-CPU program looks at. */

#include "lib/types.h"

/* Numbers to draw from. */
#define OFFCPU_PLAN_DRAWS 1024

/* The agent may write another plan at any time; a CPU keeps to the weight that it read with its
 * number, or, once, to the old one with a new number. */
struct offcpu_plan {
	__u64 weight; /* switches that a chosen one stands for; 0: none is chosen */
	__u32 pass[OFFCPU_PLAN_DRAWS]; /* switches to pass over, each as likely as any other */
};

/* Counters of threads that are away. */
#define OFFCPU_AWAY_SLOTS 16384

#endif
