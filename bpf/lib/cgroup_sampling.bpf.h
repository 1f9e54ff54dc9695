/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_CGROUP_SAMPLING_BPF_H
#define PODPROF_BPF_LIB_CGROUP_SAMPLING_BPF_H

/* The sampling rate of a cgroup (shared/cgroup_sampling.h). The check comes before anything else
 * about the task. A sample left out thus costs a fifth of a taken sample, and no room. */

#include "lib/stack.bpf.h"
#include "shared/cgroup_sampling.h"

/* Preallocated, like all maps read in an interrupt. User space sets the size before it loads the
 * object. Weak: the same map in every object that includes this header. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct cgroup_sampling_key);
	__type(value, struct cgroup_sampling_rate);
} cgroup_sampling __weak SEC(".maps");

/* 1: the map has entries. */
volatile __u32 cgroup_sampling_in_use __weak = 0;
/* Cgroups of the unified hierarchy with a larger id are younger than the map; 0: no limit. */
volatile __u64 cgroup_sampling_newest __weak = 0;
/* 1: the map has entries of CGROUP_TREE_INNER. */
volatile __u32 cgroup_sampling_inner __weak = 0;

static __always_inline const struct cgroup_sampling_rate *
cgroup_sampling_find(const struct sample_key *key)
{
	struct cgroup_sampling_key k = {.id = key->cgroup_v1_id, .tree = CGROUP_TREE_INNER};
	const __u64 newest = cgroup_sampling_newest;
	const struct cgroup_sampling_rate *rate;

	if (cgroup_sampling_inner && key->cgroup_v1_id) {
		rate = bpf_map_lookup_elem(&cgroup_sampling, &k);
		if (rate)
			return rate;
	}
	k.id = key->cgroup_id;
	k.tree = CGROUP_TREE_V2;
	rate = bpf_map_lookup_elem(&cgroup_sampling, &k);
	if (rate || !key->cgroup_v1_id || (newest && key->cgroup_id > newest))
		return rate;
	k.id = key->cgroup_v1_id;
	k.tree = CGROUP_TREE_V1;
	return bpf_map_lookup_elem(&cgroup_sampling, &k);
}

/* Decide on a sample by the cgroups in @s. Returns SAMPLE_STAT_MAX to take the sample, with its
 * weight in s->weight; else the enum sample_stat to count. */
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

/* Scale @n events by the weight of a taken sample. Rounding is random, so that the sum of many
 * results is right. */
static __always_inline __u64 cgroup_sampling_stands_for(const struct stack *s, __u64 n)
{
	if (s->weight == SAMPLE_ONE)
		return n;
	return (n * s->weight + bpf_get_prandom_u32() % SAMPLE_ONE) / SAMPLE_ONE;
}

#endif
