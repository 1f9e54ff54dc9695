// SPDX-License-Identifier: Apache-2.0
/*
 * The user-space half of bpf/offcpu.bpf.c.
 *
 * If a coin with probability p chose each switch, the number of switches skipped before a choice
 * would be k with probability p (1-p)^k. BPF has no logarithm, so the program draws from a list of
 * OFFCPU_PLAN_DRAWS equally likely quantiles of this distribution. Rounding changes their mean from
 * 1/p - 1. The weight of a sample comes from the mean of the list itself, so sums are unbiased.
 */
#include "profile/offcpu.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "profile/stacks.h"

/* How often samples are handed over if the maps do not fill sooner. */
#define OFFCPU_INTERVAL_NS NSEC_PER_SEC

/* From the end of the program's hook until nobody can be in the program. */
#define OFFCPU_LAST_US 10000

struct offcpu {
	struct stacks *stacks;
	int program;
	int link;
};

DEFINE_CLEANUP(struct offcpu *, offcpu_freep, offcpu_free);

/* The weight is a whole number of switches, so the sum of the list must be a multiple of its
 * length. The last numbers, which are the largest, absorb the difference. */
void offplan_make(double share, uint64_t stack_ns, volatile struct offcpu_plan *ret)
{
	uint64_t sum = 0;
	uint32_t pass;

	if (share < OFFPLAN_SHARE_MIN)
		share = OFFPLAN_SHARE_MIN;
	for (uint32_t i = 0; i < OFFCPU_PLAN_DRAWS; i++) {
		double q = ((double)i + 0.5) / OFFCPU_PLAN_DRAWS;

		pass = share >= 1 ? 0 : (uint32_t)(log1p(-q) / log1p(-share));
		ret->pass[i] = pass;
		sum += pass;
	}
	for (uint32_t i = OFFCPU_PLAN_DRAWS; sum % OFFCPU_PLAN_DRAWS; sum++) {
		i = i ? i - 1 : OFFCPU_PLAN_DRAWS - 1;
		ret->pass[i]++;
	}
	ret->weight = sum / OFFCPU_PLAN_DRAWS + 1;
	ret->stack_ns = stack_ns;
}

/* Each CPU has an equal part of the budget. */
static uint64_t stack_price_ns(unsigned int stacks_max)
{
	const long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t each = stacks_max / (uint64_t)(n_cpus > 0 ? n_cpus : 1);

	if (each < OFFCPU_STACKS_MIN)
		each = OFFCPU_STACKS_MIN;
	return NSEC_PER_SEC / each;
}

int offcpu_new(const struct bpfobj *obj, double share, unsigned int stacks_max,
	       struct bpfobj_why *ret_why, struct offcpu **ret)
{
	_cleanup_(offcpu_freep) struct offcpu *oc = NULL;
	const struct bpfobj_offcpu bpf = bpfobj_offcpu(obj);
	const struct bpfobj_sizes sizes = OFFCPU_SIZES;
	int r;

	if (!(share > 0 && share <= 1) || bpf.program < 0)
		return -EINVAL;
	oc = calloc(1, sizeof(*oc));
	if (!oc)
		return -ENOMEM;
	*oc = (struct offcpu){.program = bpf.program, .link = -1};
	r = stacks_new("offcpu", &bpf.stacks, &sizes, OFFCPU_INTERVAL_NS, &oc->stacks);
	if (r < 0)
		return r;
	offplan_make(share, stack_price_ns(stacks_max), bpf.plan);
	oc->link = bpf_raw_tracepoint_open(NULL, bpf.program);
	if (oc->link < 0) {
		bpfobj_explain_here(BPFOBJ_SWITCH, oc->link, NULL, ret_why);
		return oc->link;
	}
	*ret = take_ptr(oc);
	return 0;
}

void offcpu_free(struct offcpu *oc)
{
	if (!oc)
		return;
	close_fdp(&oc->link);
	stacks_free(oc->stacks);
	free(oc);
}

int offcpu_tick(struct offcpu *oc, sample_fn fn, void *ctx)
{
	return stacks_tick(oc->stacks, fn, ctx);
}

void offcpu_stop(struct offcpu *oc)
{
	/* Closing does not wait for running programs; these take microseconds. */
	close_fdp(&oc->link);
	oc->link = -1;
	usleep(OFFCPU_LAST_US);
}

int offcpu_finish(struct offcpu *oc, sample_fn fn, void *ctx)
{
	offcpu_stop(oc);
	return stacks_finish(oc->stacks, fn, ctx);
}

void offcpu_walked(struct offcpu *oc, const struct sample *sample)
{
	stacks_walked(oc->stacks, sample);
}

uint64_t offcpu_interval_ns(const struct offcpu *oc)
{
	return stacks_interval_ns(oc->stacks, 1);
}

struct stacks *offcpu_stacks(const struct offcpu *oc)
{
	return oc->stacks;
}

int offcpu_program(const struct offcpu *oc)
{
	return oc->program;
}
