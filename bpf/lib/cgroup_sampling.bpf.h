/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_CGROUP_SAMPLING_BPF_H
#define PODPROF_BPF_LIB_CGROUP_SAMPLING_BPF_H

/* Which share of a cgroup's samples is taken (shared/cgroup_sampling.h). Asked before anything else
 * about the task, so that a sample that is not taken costs a fifth of one, and no room. */

#include "lib/stack.bpf.h"
#include "shared/cgroup_sampling.h"

/* Preallocated, as all that an interrupt may look into. Its size is set before the object is
 * loaded. Weak: the same map in every object that includes this. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct cgroup_sampling_key);
	__type(value, struct cgroup_sampling_rate);
} cgroup_sampling __weak SEC(".maps");

/* 1: there is something in the table. */
volatile __u32 cgroup_sampling_in_use __weak = 0;

static __always_inline const struct cgroup_sampling_rate *
cgroup_sampling_find(const struct sample_key *key)
{
	struct cgroup_sampling_key k = {.id = key->cgroup_id, .tree = CGROUP_TREE_V2};
	const struct cgroup_sampling_rate *rate = bpf_map_lookup_elem(&cgroup_sampling, &k);

	if (rate || !key->cgroup_v1_id)
		return rate;
	k.id = key->cgroup_v1_id;
	k.tree = CGROUP_TREE_V1;
	return bpf_map_lookup_elem(&cgroup_sampling, &k);
}

/* SAMPLE_STAT_MAX if the sample whose cgroups are in @s is to be taken, with its weight in
 * s->weight. Else how it is to be counted. */
static __always_inline __u32 cgroup_sampling_take(struct stack *s)
{
	const volatile __u64 *rate = NULL;
	__u64 both;
	__u32 keep;

	if (cgroup_sampling_in_use)
		rate = (const volatile __u64 *)cgroup_sampling_find(&s->key);
	if (!rate)
		return cfg.scope == SETTINGS_SCOPE_CGROUPS ? SAMPLE_STAT_FILTERED : SAMPLE_STAT_MAX;
	both = *rate;
	keep = (__u32)both;
	if (keep == CGROUP_SAMPLING_ALL)
		return SAMPLE_STAT_MAX;
	if (!keep)
		return SAMPLE_STAT_LEFT_OUT;
	if (bpf_get_prandom_u32() >= keep)
		return SAMPLE_STAT_THINNED;
	s->weight = both >> 32;
	return SAMPLE_STAT_MAX;
}

/* @n events, if the sample that was taken stands for as many as its share says. What is behind the
 * point is drawn, so that the sum of many is right. */
static __always_inline __u64 cgroup_sampling_stands_for(const struct stack *s, __u64 n)
{
	if (s->weight == SAMPLE_ONE)
		return n;
	return (n * s->weight + bpf_get_prandom_u32() % SAMPLE_ONE) / SAMPLE_ONE;
}

#endif
