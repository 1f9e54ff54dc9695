// SPDX-License-Identifier: Apache-2.0
/*
 * A heap of 30,000 records has 600,000 PCs, but they are of a few thousand places. Each distinct pc
 * is resolved once, and a stack is kept as numbers of these.
 */
#include "report/stacksnap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

/* Distinct PCs of one process, and PCs of its stacks. The reader's ceiling on bytes comes first;
 * these keep the numbers in 32 bits. */
#define STACKSNAP_FRAMES_MAX (1u << 24)
#define STACKSNAP_PCS_MAX    (1u << 31)

/* Open addressing; at most half full. */

static void pcset_deinit(struct stacksnap_set *set)
{
	free(set->slots);
}

static struct stacksnap_slot *pcset_slot(const struct stacksnap_set *set, uint64_t pc)
{
	/* PCs differ in their low bits, and a multiplication carries these upwards */
	size_t i = (size_t)((pc * 0x9e3779b97f4a7c15ull) >> 32) & (set->n_slots - 1);

	while (set->slots[i].number && set->slots[i].pc != pc)
		i = (i + 1) & (set->n_slots - 1);
	return &set->slots[i];
}

static int pcset_grow(struct stacksnap_set *set)
{
	struct stacksnap_set old = *set;
	size_t n_slots = old.n_slots ? old.n_slots * 2 : 1024;
	struct stacksnap_slot *slots = calloc(n_slots, sizeof(*slots));

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

static int frame_add(struct stacksnap *s, const struct stacksnap_space *space, uint64_t pc)
{
	int r = vec_grow(&s->frames, &s->frames_cap, s->n_frames + 1, sizeof(*s->frames),
			 STACKSNAP_FRAMES_MAX);

	if (r)
		return r < 0 ? r : -ENOMEM;
	r = space->resolve(space->ctx, pc, &s->frames[s->n_frames]);
	if (!r)
		s->n_frames++;
	return r;
}

static int frame_of(struct stacksnap *s, const struct stacksnap_space *space, uint64_t pc,
		    uint32_t *ret)
{
	struct stacksnap_set *set = &s->set;
	struct stacksnap_slot *slot;
	int r = 2 * (set->n + 1) > set->n_slots ? pcset_grow(set) : 0;

	if (r)
		return r;
	slot = pcset_slot(set, pc);
	if (!slot->number) {
		r = frame_add(s, space, pc);
		if (r)
			return r;
		*slot = (struct stacksnap_slot){pc, (uint32_t)s->n_frames};
		set->n++;
	}
	*ret = slot->number - 1;
	return 0;
}

int stacksnap_add(struct stacksnap *s, const struct stacksnap_space *space, const uint64_t *pcs,
		  size_t n, size_t *ret_first)
{
	size_t first = s->n_pcs;
	int r = vec_grow(&s->pcs, &s->pcs_cap, s->n_pcs + n, sizeof(*s->pcs), STACKSNAP_PCS_MAX);

	if (r)
		return r < 0 ? r : -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		r = frame_of(s, space, pcs[i], &s->pcs[first + i]);
		if (r)
			return r;
	}
	s->n_pcs += n;
	*ret_first = first;
	return 0;
}

void stacksnap_seal(struct stacksnap *s)
{
	pcset_deinit(&s->set);
	s->set = (struct stacksnap_set){0};
}

void stacksnap_deinit(struct stacksnap *s)
{
	stacksnap_seal(s);
	for (size_t i = 0; i < s->n_frames; i++)
		image_unref(s->frames[i].image);
	free(s->frames);
	free(s->pcs);
	*s = (struct stacksnap){0};
}
