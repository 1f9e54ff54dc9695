/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_EVENT_SAMPLER_BPF_H
#define PODPROF_BPF_LIB_EVENT_SAMPLER_BPF_H

/*
 * Which of many events are looked at, on one CPU: some number is passed over, drawn anew after each
 * one chosen, so that those passed over cost a subtraction. The numbers have the geometric
 * distribution, as if a coin were thrown at each event: what a program does in step with itself is
 * not counted wrong. What is chosen stands for as many events as the numbers' mean says, its
 * weight.
 *
 * A program may switch half a million times a second, and a stack costs some microseconds. So each
 * CPU has a budget of stacks: when they come faster, the distance from one to the next is doubled,
 * and so on, until they do not. None is left out for being too early, and the weight is known
 * before the event is: what a program does to be looked at, or not to be, changes no sum.
 *
 * Nothing of BPF here: the same text is compiled for the host and tested there.
 */

#include "lib/types.h"
#include "shared/offcpu.h"

#define EVENT_SAMPLER_INLINE static inline __attribute__((always_inline))

/* A CPU's next choice; all zeros before the first. */
struct event_sampler {
	__u64 pass;	/* events to pass over before it */
	__u64 weight;	/* of it; 0: none was drawn yet */
	__u64 level;	/* the plan's distances are doubled so many times */
	__u64 spent_ns; /* the budget is spent up to this time */
};

/* Accessors: a clock, and a number as random as any other. */
EVENT_SAMPLER_INLINE __u64 event_sampler_now_ns(void);
EVENT_SAMPLER_INLINE __u32 event_sampler_random(void);

/* One more stack is taken from the budget: up a level if it is overdrawn, down if half of what can
 * be saved is there, and to the first if all of it is. */
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

/* The last one was looked at and then left alone, which costs less than an eighth of a stack: those
 * who are not profiled do not use up the others' budget. */
EVENT_SAMPLER_INLINE void event_sampler_refund(struct event_sampler *c,
					       const volatile struct offcpu_plan *plan)
{
	c->spent_ns -= plan->stack_ns - plan->stack_ns / 8;
}

/* Of the distance, one more than what is passed over. The difference of two random numbers has the
 * mean 0, and makes a doubled distance odd as often as even. */
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

/* Whether the next event is to be looked at: its weight, or 0. */
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
