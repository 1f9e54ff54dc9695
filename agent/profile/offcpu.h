/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_OFFCPU_H
#define PODPROF_PROFILE_OFFCPU_H

/* Off-CPU samples: stacks of waiting threads, by task switches (method: bpf/offcpu.bpf.c). */

#include <stdint.h>

#include "profile/bpfobj.h"
#include "profile/sample.h"
#include "shared/offcpu.h"

struct offcpu;
struct stacks;

/* Sizes of the maps: 8 MB together with the map of waiting threads. Reached: the sample is lost and
 * counted as lost_full. */
#define OFFCPU_SIZES ((struct bpfobj_sizes){.small = 4096, .large = 512, .deep = 32})

/* Stacks per second, of all CPUs together: at 5 us each, 1 % of a CPU. Reached: the event sampler
 * chooses fewer switches, and each stands for more. */
#define OFFCPU_STACKS_MAX 2000
/* Stacks per second of one CPU, for any number of CPUs. */
#define OFFCPU_STACKS_MIN 50

/* The smallest share. A smaller one gives no sample for hours, and overflows the plan's numbers. */
#define OFFPLAN_SHARE_MIN 1e-6

/* The plan of the event sampler for task switches (bpf/lib/event_sampler.bpf.h). @share: above 0,
 * up to 1; a value below OFFPLAN_SHARE_MIN is raised to the minimum. Each CPU takes at most one
 * stack per @stack_ns on average. */
void offplan_make(double share, uint64_t stack_ns, volatile struct offcpu_plan *ret);

/**
 * offcpu_new() - start off-CPU sampling
 * @obj:        loaded with the off-CPU programs (struct oncpu_opts); borrowed until offcpu_free();
 *              an object serves one struct offcpu in its lifetime
 * @share:      share of task switches, as for offplan_make()
 * @stacks_max: stacks per second, see OFFCPU_STACKS_MAX
 *
 * Return: 0, or -errno with *@ret_why set (-ENOMEM without).
 */
int offcpu_new(const struct bpfobj *obj, double share, unsigned int stacks_max,
	       struct bpfobj_why *ret_why, struct offcpu **ret);
void offcpu_free(struct offcpu *oc);

/* As stacks_tick(). A sample's count is task switches, and its total is their waiting time. Both
 * are estimates for all switches, not only for the chosen ones. */
int offcpu_tick(struct offcpu *oc, sample_fn fn, void *ctx);
/* Stop sampling without a drain: no program runs after the return. */
void offcpu_stop(struct offcpu *oc);
/* Stop, and deliver the remaining samples. A thread still off the CPU gives no sample. */
int offcpu_finish(struct offcpu *oc, sample_fn fn, void *ctx);
/* Count a sample with a stack dump, after its walk (stacks_walked()). */
void offcpu_walked(struct offcpu *oc, const struct sample *sample);
uint64_t offcpu_interval_ns(const struct offcpu *oc);
/* The drain of the samples, for a thread of its own, and for stacks_collect(). */
struct stacks *offcpu_stacks(const struct offcpu *oc);
/* The program's descriptor, for bpfobj_cost(). */
int offcpu_program(const struct offcpu *oc);

#endif
