// SPDX-License-Identifier: Apache-2.0
/*
 * The number of switches to pass over before one that a coin of probability p would choose is k
 * with probability p (1-p)^k. BPF has no logarithm, so it draws from a list of OFFCPU_PLAN_DRAWS
 * quantiles of that distribution, each as likely. Rounded and cut, their mean is not quite 1/p - 1;
 * the weight of a sample is what their own mean makes it, so that sums stay unbiased.
 */
#include "profile/offplan.h"

#include <math.h>

/* Whole switches for a weight, so the sum of the list has to be a multiple of its length: what is
 * missing goes to its last numbers, which are the largest. */
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
