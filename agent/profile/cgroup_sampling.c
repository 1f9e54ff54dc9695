// SPDX-License-Identifier: Apache-2.0
/*
 * A sample dropped in the kernel costs an interrupt and one or two hash lookups. A sample dropped
 * in the agent also costs a walked stack and room in the maps. So the kernel's table lists the
 * directories with a reduced share.
 *
 * Within a second of a change the caller (cpu/profiler.c) sets the whole table. A copy in the agent
 * reduces system calls to the differences. A new directory costs a second of samples, and their
 * consumer drops them: nothing depends on an exact table.
 */
#include "profile/cgroup_sampling.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/metric.h"
#include "profile/bpfobj.h"
#include "shared/cgroup_sampling.h"
#include "shared/sample.h"

_Static_assert((int)CGROUP_TREE_V2 == HIERARCHY_V2 && (int)CGROUP_TREE_V1 == HIERARCHY_V1,
	       "the same trees");

struct cgroup_entry {
	struct cgroup_sampling_key key;
	struct cgroup_sampling_rate rate;
	uint64_t round; /* in which it was told last */
	UT_hash_handle hh;
};

struct cgroup_sampling {
	struct bpfobj_cgroup_sampling bpf;
	struct cgroup_entry *entries; /* what the kernel has */
	struct cgroup_entry *at;      /* the next in the end of a round */
	bool is_ending;
	bool has_inner; /* among the entries before @at */
	uint64_t round;
	uint64_t newest; /* of the last round */
	uint64_t n_refused;
};

int cgroup_sampling_new(const struct bpfobj_cgroup_sampling *bpf, struct cgroup_sampling **ret)
{
	struct cgroup_sampling *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->bpf = *bpf;
	*ret = s;
	return 0;
}

static void forget(struct cgroup_sampling *s, struct cgroup_entry *e)
{
	HASH_DEL(s->entries, e);
	free(e);
}

void cgroup_sampling_free(struct cgroup_sampling *s)
{
	struct cgroup_entry *e, *next;

	if (!s)
		return;
	HASH_ITER(hh, s->entries, e, next)
		forget(s, e);
	free(s);
}

/* Rounded to the nearest; a part that is too small for 32 bits is as small as can be. */
static struct cgroup_sampling_rate rate_of(unsigned int part, unsigned int whole)
{
	const uint64_t all = 1ull << 32, one = (uint64_t)SAMPLE_ONE;
	uint64_t keep;

	if (part >= whole)
		return (struct cgroup_sampling_rate){.keep = CGROUP_SAMPLING_ALL,
						     .weight = SAMPLE_ONE};
	if (!part)
		return (struct cgroup_sampling_rate){.keep = 0};
	keep = (part * all + whole / 2) / whole;
	keep = keep < 1 ? 1 : keep < CGROUP_SAMPLING_ALL ? keep : CGROUP_SAMPLING_ALL - 1;
	return (struct cgroup_sampling_rate){.keep = (uint32_t)keep,
					     .weight = (uint32_t)((whole * one + part / 2) / part)};
}

void cgroup_sampling_begin(struct cgroup_sampling *s)
{
	s->round++;
	s->is_ending = false;
}

static int add(struct cgroup_sampling *s, const struct cgroup_sampling_key *key,
	       struct cgroup_entry **ret)
{
	struct cgroup_entry *e = calloc(1, sizeof(*e));
	bool hash_oom = false;

	if (!e)
		return -ENOMEM;
	e->key = *key;
	HASH_ADD(hh, s->entries, key, sizeof(e->key), e);
	if (hash_oom) {
		free(e);
		return -ENOMEM;
	}
	*ret = e;
	return 0;
}

/* One that is in the table already, or new. */
static int enter(struct cgroup_sampling *s, const struct cgroup_sampling_key *key,
		 const struct cgroup_sampling_rate *rate)
{
	struct cgroup_entry *e;
	int r;

	HASH_FIND(hh, s->entries, key, sizeof(*key), e);
	if (e && (e->round == s->round ||
		  (e->rate.keep == rate->keep && e->rate.weight == rate->weight))) {
		e->round = s->round;
		return 0;
	}
	r = bpf_map_update_elem(s->bpf.cgroup_sampling, key, rate, BPF_ANY);
	if (r < 0)
		return r;
	r = e ? 0 : add(s, key, &e);
	if (r) {
		(void)bpf_map_delete_elem(s->bpf.cgroup_sampling, key);
		return r;
	}
	e->rate = *rate;
	e->round = s->round;
	return 0;
}

static int set(struct cgroup_sampling *s, uint64_t tree, uint64_t id, unsigned int part,
	       unsigned int whole)
{
	const struct cgroup_sampling_key key = {.id = id, .tree = tree};
	const struct cgroup_sampling_rate rate = rate_of(part, whole);
	int r = enter(s, &key, &rate);

	if (r == -E2BIG) {
		s->n_refused++;
		return CGROUP_SAMPLING_FULL;
	}
	if (!r)
		*s->bpf.in_use = 1;
	return r;
}

int cgroup_sampling_set(struct cgroup_sampling *s, enum hierarchy hierarchy, uint64_t id,
			unsigned int part, unsigned int whole)
{
	return set(s, hierarchy, id, part, whole);
}

int cgroup_sampling_set_inner(struct cgroup_sampling *s, uint64_t id, unsigned int part,
			      unsigned int whole)
{
	int r = set(s, CGROUP_TREE_INNER, id, part, whole);

	if (!r)
		*s->bpf.inner = 1;
	return r;
}

/* When the caller knows a directory, it may not know an older one yet. A round later it does. */
void cgroup_sampling_know(struct cgroup_sampling *s, uint64_t newest)
{
	*s->bpf.newest = newest && s->newest ? s->newest : newest;
	s->newest = newest;
}

/* An entry that this round has not set returns to the full share. */
static int end_entry(struct cgroup_sampling *s, struct cgroup_entry *e)
{
	int r;

	if (e->round == s->round) {
		s->has_inner |= e->key.tree == CGROUP_TREE_INNER;
		return 0;
	}
	r = bpf_map_delete_elem(s->bpf.cgroup_sampling, &e->key);
	if (r < 0 && r != -ENOENT)
		return r;
	forget(s, e);
	return 0;
}

int cgroup_sampling_end_step(struct cgroup_sampling *s)
{
	struct cgroup_entry *e;
	int r;

	if (!s->is_ending) {
		s->is_ending = true;
		s->has_inner = false;
		s->at = s->entries;
	}
	e = s->at;
	if (e) {
		s->at = e->hh.next;
		r = end_entry(s, e);
		s->is_ending = !r;
		return r ? r : CGROUP_SAMPLING_MORE;
	}
	s->is_ending = false;
	*s->bpf.in_use = s->entries != NULL;
	*s->bpf.inner = s->has_inner;
	return 0;
}

int cgroup_sampling_end(struct cgroup_sampling *s)
{
	int r;

	do
		r = cgroup_sampling_end_step(s);
	while (r == CGROUP_SAMPLING_MORE);
	return r;
}

void cgroup_sampling_collect(void *cgroup_sampling, struct metric_sink *sink)
{
	static const struct metric_family_desc cgroups = {
		"podprof_cgroup_sampling_entries", METRIC_GAUGE,
		"Cgroups with a sampling rate of their own, by rate.", NULL};
	static const struct metric_family_desc refused = {
		"podprof_cgroup_sampling_refused", METRIC_COUNTER,
		"Cgroups without room in the kernel's table.", NULL};
	const struct cgroup_sampling *s = cgroup_sampling;
	uint64_t n_none = 0, n_some = 0, n_all = 0;

	for (const struct cgroup_entry *e = s->entries; e; e = e->hh.next)
		*(e->rate.keep == CGROUP_SAMPLING_ALL ? &n_all
		  : e->rate.keep		      ? &n_some
						      : &n_none) += 1;
	metric_family(sink, &cgroups);
	metric_u64(sink, n_none, &(struct metric_label){"sampling", "off"}, 1);
	metric_u64(sink, n_some, &(struct metric_label){"sampling", "reduced"}, 1);
	metric_u64(sink, n_all, &(struct metric_label){"sampling", "full"}, 1);
	metric_family(sink, &refused);
	metric_u64(sink, s->n_refused, NULL, 0);
}
