/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_OFFCPU_H
#define PODPROF_PROFILE_OFFCPU_H

/* Samples of where threads wait, by task switches; how it is done is told in bpf/offcpu.bpf.c. */

#include <stdint.h>

#include "profile/bpfobj.h"
#include "profile/sample.h"
#include "shared/offcpu.h"

struct metric_sink;
struct offcpu;
struct stacks;

/* Sizes of its maps, 8 MB with those of the threads that are off the CPU: what finds no room is
 * counted as lost_full. */
#define OFFCPU_SIZES ((struct bpfobj_sizes){.small = 4096, .large = 512, .deep = 32})

/* Stacks taken in a second, by all CPUs together; where there would be more, fewer switches are
 * chosen, and stand for more. At 5 us each 1 % of a CPU. Reached: fewer switches are chosen, each
 * stands for more. */
#define OFFCPU_STACKS_MAX 2000
/* Of one CPU, however many there are. */
#define OFFCPU_STACKS_MIN 50

/* Below it nothing would be seen for hours, and the numbers of a plan would not fit. */
#define OFFPLAN_SHARE_MIN 1e-6

/* By what numbers the program chooses among task switches (bpf/lib/event_sampler.bpf.h): this
 * share, above 0 and up to 1 (below OFFPLAN_SHARE_MIN is taken for that), but on each CPU no more
 * than one in
 * @stack_ns on average. */
void offplan_make(double share, uint64_t stack_ns, volatile struct offcpu_plan *ret);

/**
 * offcpu_new() - begin to sample
 * @obj:        loaded with the off-CPU programs (struct oncpu_opts); must outlive this; for one of
 *              these in its life
 * @share:      of task switches, as for offplan_make()
 * @stacks_max: a second, see OFFCPU_STACKS_MAX
 *
 * Return: 0, or -errno with *@ret_why set (-ENOMEM without).
 */
int offcpu_new(const struct bpfobj *obj, double share, unsigned int stacks_max,
	       struct bpfobj_why *ret_why, struct offcpu **ret);
void offcpu_free(struct offcpu *oc);

/* As stacks_tick(), whose samples have switches as count and how long they took as total, both
 * for all switches and not only for the chosen ones. */
int offcpu_tick(struct offcpu *oc, sample_fn fn, void *ctx);
/* Stop, and hand over all that is left. Threads that are off the CPU are not counted. */
int offcpu_finish(struct offcpu *oc, sample_fn fn, void *ctx);
/* One that has a copy is handed on, by whatever walk (stacks_walked()). */
void offcpu_walked(struct offcpu *oc, const struct sample *sample);
uint64_t offcpu_interval_ns(const struct offcpu *oc);
/* What it counts, for stacks_collect(). */
const struct stacks *offcpu_stacks(const struct offcpu *oc);
/* The program, for its cost. */
int offcpu_program(const struct offcpu *oc);

#endif
