/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_SHARE_BPF_H
#define PODPROF_BPF_LIB_SHARE_BPF_H

/* Which share of a cgroup's samples is taken (shared/share.h). Asked before anything else about the
 * task, so that a sample that is not taken costs a fifth of one, and no room. */

#include "lib/stack.bpf.h"
#include "shared/share.h"

/* Preallocated, as all that an interrupt may look into. Its size is set before the object is
 * loaded. Weak: the same map in every object that includes this. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct share_key);
	__type(value, struct share);
} shares __weak SEC(".maps");

/* 1: there is something in the table. */
volatile __u32 share_in_use __weak = 0;

static __always_inline const struct share *share_find(const struct sample_key *key)
{
	struct share_key k = {.id = key->cgroup_id, .tree = SHARE_V2};
	const struct share *share = bpf_map_lookup_elem(&shares, &k);

	if (share || !key->cgroup_v1_id)
		return share;
	k.id = key->cgroup_v1_id;
	k.tree = SHARE_V1;
	return bpf_map_lookup_elem(&shares, &k);
}

/* SAMPLE_STAT_MAX if the sample whose cgroups are in @s is to be taken, with its weight in
 * s->weight. Else how it is to be counted. */
static __always_inline __u32 share_take(struct stack *s)
{
	const volatile __u64 *share = NULL;
	__u64 both;
	__u32 keep;

	if (share_in_use)
		share = (const volatile __u64 *)share_find(&s->key);
	if (!share)
		return cfg.wanted == SETTINGS_WANTED_CGROUPS ? SAMPLE_STAT_UNWANTED
							     : SAMPLE_STAT_MAX;
	both = *share;
	keep = (__u32)both;
	if (keep == SHARE_ALL)
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
static __always_inline __u64 share_stands_for(const struct stack *s, __u64 n)
{
	if (s->weight == SAMPLE_ONE)
		return n;
	return (n * s->weight + bpf_get_prandom_u32() % SAMPLE_ONE) / SAMPLE_ONE;
}

#endif
