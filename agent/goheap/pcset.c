// SPDX-License-Identifier: Apache-2.0
/*
 * A heap of 30,000 records has 600,000 PCs, but only a few thousand are distinct. With numbers a
 * stack takes half the memory, and per-PC work is done once per number.
 *
 * An open-addressing hash table of numbers. A process chooses its PCs, and all bits of these: a
 * multiplication, also by a secret number, moves bits only upwards, and PCs that differ in their
 * highest bits would collide. So the hash is that of base/hash.h.
 */
#include "goheap/pcset.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/vec.h"

#define PCSET_FIRST_SLOTS 1024

void pcset_deinit(struct pcset *set)
{
	free(set->pcs);
	free(set->slots);
	*set = (struct pcset){0};
}

size_t pcset_bytes(const struct pcset *set)
{
	return set->cap * sizeof(*set->pcs) + set->n_slots * sizeof(*set->slots);
}

/* The slot of @pc, or the free slot for it. */
static uint32_t *pcset_slot(const struct pcset *set, uint64_t pc)
{
	size_t i = hash_words(pc, 0) & (set->n_slots - 1);

	while (set->slots[i] && set->pcs[set->slots[i] - 1] != pc)
		i = (i + 1) & (set->n_slots - 1);
	return &set->slots[i];
}

static int pcset_grow(struct pcset *set)
{
	size_t n_slots = set->n_slots ? set->n_slots * 2 : PCSET_FIRST_SLOTS;
	uint32_t *slots = calloc(n_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(set->slots);
	set->slots = slots;
	set->n_slots = n_slots;
	for (size_t i = 0; i < set->n; i++)
		*pcset_slot(set, set->pcs[i]) = (uint32_t)i + 1;
	return 0;
}

int pcset_number(struct pcset *set, uint64_t pc, uint32_t *ret)
{
	uint32_t *slot;
	int r = 2 * (set->n + 1) > set->n_slots ? pcset_grow(set) : 0;

	if (r)
		return r;
	slot = pcset_slot(set, pc);
	if (!*slot) {
		r = vec_grow(&set->pcs, &set->cap, set->n + 1, sizeof(*set->pcs), UINT32_MAX - 1);
		if (r)
			return -ENOMEM;
		set->pcs[set->n++] = pc;
		*slot = (uint32_t)set->n;
	}
	*ret = *slot - 1;
	return 0;
}
