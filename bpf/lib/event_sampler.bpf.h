/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_EVENT_SAMPLER_BPF_H
#define PODPROF_BPF_LIB_EVENT_SAMPLER_BPF_H

/*
 * The event sampler chooses a part of many events on a CPU. After each chosen event the sampler
 * draws the number of events to skip, so that a skipped event costs a subtraction. The numbers have
 * the geometric distribution, like a coin toss at each event. Periodic behaviour of a program thus
 * causes no bias. The weight of a chosen event is the mean distance.
 *
 * A program may switch half a million times a second, and a stack costs some microseconds. So each
 * CPU has a budget of stacks. If stacks exceed the budget, the sampler doubles the distance, and
 * again, until the rate fits. The sampler never drops an event for being early, and the weight is
 * fixed before the event. No behaviour of a program can thus change the sums.
 *
 * The header has no BPF code: tests compile the same text for the host.
 */

#include "lib/types.h"
#include "shared/offcpu.h"

#define EVENT_SAMPLER_INLINE static inline __attribute__((always_inline))

/* The next choice of a CPU; all zeros before the first. */
struct event_sampler {
	__u64 pass;	/* events to skip before the choice */
	__u64 weight;	/* weight of the choice; 0: nothing drawn yet */
	__u64 level;	/* number of doublings of the plan's distances */
	__u64 spent_ns; /* the budget is spent up to this time */
};

/* Accessors: a clock, and a uniform random number. */
EVENT_SAMPLER_INLINE __u64 event_sampler_now_ns(void);
EVENT_SAMPLER_INLINE __u32 event_sampler_random(void);

/* Charge a stack to the budget. An overdrawn budget raises the level. Half of the largest saving
 * lowers the level by one, and a full saving resets the level to 0. */
EVENT_SAMPLER_INLINE void event_sampler_pay(struct event_sampler *c,
					    const volatile struct offcpu_plan *plan)
{
	const __u64 now = event_sampler_now_ns(), price = plan->stack_ns;
	const __u64 saved_max = price * OFFCPU_BURST;

	if (c->spent_ns + saved_max < now) {
		c->spent_ns = now - saved_max;
		c->level = 0;
	} else if (c->level && c->spent_ns + saved_max / 2 < now) {
		c->level -= 1;
	}
	c->spent_ns += price;
	if (c->spent_ns > now && c->level < OFFCPU_LEVELS)
		c->level += 1;
}

/* Refund a chosen event without a stack, which costs less than an eighth of a stack. Threads
 * without profiling thus do not use up the budget of profiled threads. */
EVENT_SAMPLER_INLINE void event_sampler_refund(struct event_sampler *c,
					       const volatile struct offcpu_plan *plan)
{
	c->spent_ns -= plan->stack_ns - plan->stack_ns / 8;
}

/* Draw the next choice. The distance is one more than the number of skipped events. The difference
 * of two random numbers has the mean 0, and makes a doubled distance odd as often as even. */
EVENT_SAMPLER_INLINE void event_sampler_draw(struct event_sampler *c,
					     const volatile struct offcpu_plan *plan)
{
	const __u32 random = event_sampler_random();
	__u64 distance, mask;

	event_sampler_pay(c, plan);
	mask = (1ull << c->level) - 1;
	distance = plan->pass[event_sampler_random() % OFFCPU_PLAN_DRAWS] + 1ull;
	distance = (distance << c->level) + (random & mask) - (random >> 16 & mask);
	c->pass = distance - 1;
	c->weight = plan->weight << c->level;
}

/* The weight of the next event if chosen, else 0. */
EVENT_SAMPLER_INLINE __u64 event_sampler_next(struct event_sampler *c,
					      const volatile struct offcpu_plan *plan)
{
	__u64 weight;

	if (!c->weight)
		event_sampler_draw(c, plan); /* the first on this CPU */
	if (c->pass) {
		c->pass -= 1;
		return 0;
	}
	weight = c->weight;
	event_sampler_draw(c, plan);
	return weight;
}

#endif
