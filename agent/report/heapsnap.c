// SPDX-License-Identifier: Apache-2.0
/*
 * A heap of 30,000 records has 600,000 PCs, but they are of a few thousand places. Each distinct pc
 * is resolved once, and a stack is kept as numbers of these.
 */
#include "report/heapsnap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "goheap/goheap.h"

/* Distinct PCs of one process. The reader's ceiling on bytes comes first; this one keeps the
 * numbers in 32 bits. */
#define HEAPSNAP_FRAMES_MAX (1u << 24)

/* Open addressing; at most half full. */
struct pcset {
	struct pcset_slot {
		uint64_t pc;
		uint32_t number; /* plus one; 0 is free */
	} * slots;
	size_t n_slots; /* a power of two */
	size_t n;
};

static void pcset_deinit(struct pcset *set)
{
	free(set->slots);
}

static struct pcset_slot *pcset_slot(const struct pcset *set, uint64_t pc)
{
	/* PCs differ in their low bits, and a multiplication carries these upwards */
	size_t i = (size_t)((pc * 0x9e3779b97f4a7c15ull) >> 32) & (set->n_slots - 1);

	while (set->slots[i].number && set->slots[i].pc != pc)
		i = (i + 1) & (set->n_slots - 1);
	return &set->slots[i];
}

static int pcset_grow(struct pcset *set)
{
	struct pcset old = *set;
	size_t n_slots = old.n_slots ? old.n_slots * 2 : 1024;
	struct pcset_slot *slots = calloc(n_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	set->slots = slots;
	set->n_slots = n_slots;
	for (size_t i = 0; i < old.n_slots; i++)
		if (old.slots[i].number)
			*pcset_slot(set, old.slots[i].pc) = old.slots[i];
	free(old.slots);
	return 0;
}

static int frame_add(struct heapsnap *s, const struct heapsnap_opts *opts, uint64_t pc)
{
	int r = vec_grow(&s->frames, &s->frames_cap, s->n_frames + 1, sizeof(*s->frames),
			 HEAPSNAP_FRAMES_MAX);

	if (r)
		return r < 0 ? r : -ENOMEM;
	r = opts->resolve(opts->ctx, pc, &s->frames[s->n_frames]);
	if (!r)
		s->n_frames++;
	return r;
}

static int frame_of(struct heapsnap *s, struct pcset *set, const struct heapsnap_opts *opts,
		    uint64_t pc, uint32_t *ret)
{
	struct pcset_slot *slot;
	int r = 2 * (set->n + 1) > set->n_slots ? pcset_grow(set) : 0;

	if (r)
		return r;
	slot = pcset_slot(set, pc);
	if (!slot->number) {
		r = frame_add(s, opts, pc);
		if (r)
			return r;
		*slot = (struct pcset_slot){pc, (uint32_t)s->n_frames};
		set->n++;
	}
	*ret = slot->number - 1;
	return 0;
}

void heapsnap_free(struct heapsnap *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_frames; i++)
		image_unref(s->frames[i].image);
	free(s->frames);
	free(s->pcs);
	free(s->records);
	free(s);
}

DEFINE_CLEANUP(struct heapsnap *, heapsnap_freep, heapsnap_free);

static size_t count_pcs(const struct goheap_profile *profile)
{
	struct goheap_record record;
	size_t n = 0;

	for (size_t i = 0; i < profile->n_records; i++) {
		goheap_record(profile, i, &record);
		n += record.n_pcs;
	}
	return n;
}

static int alloc(const struct goheap_profile *profile, struct heapsnap **ret)
{
	_cleanup_(heapsnap_freep) struct heapsnap *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->records = calloc(profile->n_records + 1, sizeof(*s->records));
	s->pcs = calloc(count_pcs(profile) + 1, sizeof(*s->pcs));
	if (!s->records || !s->pcs)
		return -ENOMEM;
	s->rate = profile->rate;
	s->blank_label = profile->blank_label;
	*ret = take_ptr(s);
	return 0;
}

static int add(struct heapsnap *s, struct pcset *set, const struct heapsnap_opts *opts,
	       const struct goheap_record *record, bool none_before)
{
	struct heapsnap_record *to = &s->records[s->n_records];

	*to = (struct heapsnap_record){
		.size = record->size,
		.allocs = record->allocs,
		.inuse = goheap_record_inuse(record),
		.fresh = record->fresh_allocs,
		.before = none_before ? record->fresh_allocs : record->before_allocs,
		.first_pc = s->n_pcs,
		.n_pcs = record->n_pcs,
	};
	for (size_t i = 0; i < record->n_pcs; i++) {
		int r = frame_of(s, set, opts, record->pcs[i], &s->pcs[s->n_pcs]);

		if (r)
			return r;
		s->n_pcs++;
	}
	s->n_records++;
	return 0;
}

int heapsnap_new(const struct goheap_profile *profile, const struct heapsnap_opts *opts,
		 struct heapsnap **ret)
{
	_cleanup_(heapsnap_freep) struct heapsnap *s = NULL;
	_cleanup_(pcset_deinit) struct pcset set = {0};
	bool none_before = profile->first && !opts->since_start;
	int r = alloc(profile, &s);

	if (r)
		return r;
	s->forced = opts->forced;
	for (size_t i = 0; i < profile->n_records; i++) {
		struct goheap_record record;

		goheap_record(profile, i, &record);
		r = add(s, &set, opts, &record, none_before);
		if (r)
			return r;
	}
	*ret = take_ptr(s);
	return 0;
}
