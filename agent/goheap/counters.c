// SPDX-License-Identifier: Apache-2.0
/*
 * A slot is {allocs, frees, alloc_bytes, free_bytes} up to Go 1.26 and {allocs, frees} in 1.27. The
 * bytes are the counts times the size, so the wide layout validates itself and reveals a read in
 * the middle of a write.
 *
 * To publish a slot, the runtime adds the slot to the first slot and zeroes the slot some
 * nanoseconds later, without a lock visible from outside. A copy between the two steps has the slot
 * twice; a copy across both steps may lack the slot.
 *
 * In the second case the first slot has not grown by the loss of the other slot. In the first case
 * the first slot has grown by exactly the content of another slot. This can be a coincidence, so
 * such a copy is only doubtful, and is accepted if a second read confirms it. In the other lists
 * the only count is a double, and the bit pattern grows with the value, too.
 *
 * A total that stays smaller is correct: the earlier total contained a slot twice. The smaller
 * total is stored, but bucket_allocs() never goes down.
 */
#include "goheap/counters.h"

#include <string.h>

static size_t counters_words(enum buckets_layout layout)
{
	size_t n_slots = layout == BUCKETS_LAYOUT_CONTENTION ? 1 : BUCKETS_SLOTS;

	return n_slots * (layout == BUCKETS_LAYOUT_WIDE ? SLOT_WORDS_WIDE : SLOT_WORDS_NARROW);
}

size_t counters_bytes(enum buckets_layout layout)
{
	return counters_words(layout) * sizeof(uint64_t);
}

uint64_t counters_addr(const struct bucket *bucket)
{
	/* cannot overflow: the record was read from there */
	return bucket->addr + BUCKETS_HEADER_BYTES + bucket->n_pcs * sizeof(uint64_t);
}

static uint64_t sum(const uint64_t counts[BUCKETS_SLOTS])
{
	uint64_t total = 0;

	for (size_t i = 0; i < BUCKETS_SLOTS; i++)
		if (__builtin_add_overflow(total, counts[i], &total))
			return UINT64_MAX;
	return total;
}

uint64_t bucket_allocs(const struct bucket *b)
{
	uint64_t total = sum(b->allocs);

	return total > b->before ? total : b->before;
}

bool counters_add_up(const uint64_t words[COUNTERS_WORDS_MAX], uint64_t size)
{
	for (size_t i = 0; i < BUCKETS_SLOTS; i++) {
		const uint64_t *slot = words + i * SLOT_WORDS_WIDE;

		if (slot[2] != slot[0] * size || slot[3] != slot[1] * size)
			return false;
	}
	return true;
}

/* Whether a slot seems to be added to the first slot already, but not emptied yet. */
static bool is_twice(const uint64_t old[BUCKETS_SLOTS], const uint64_t new[BUCKETS_SLOTS])
{
	for (size_t i = 1; i < BUCKETS_SLOTS; i++)
		if (new[i] && new[0] - old[0] == new[i])
			return true;
	return false;
}

/* Whether the loss of other slots is missing in the first slot: copied across both steps.
 * Simultaneous growth of the total can hide this. */
static bool is_lost(const uint64_t old[BUCKETS_SLOTS], const uint64_t new[BUCKETS_SLOTS])
{
	uint64_t moved = 0;

	for (size_t i = 1; i < BUCKETS_SLOTS; i++)
		if (new[i] < old[i] && __builtin_add_overflow(moved, old[i], &moved))
			return true;
	return new[0] - old[0] < moved;
}

/* Compare slots of @n words. @n is a compile-time constant, because most of the time of a later
 * read is spent here. */
static inline bool same_slots(const uint64_t *words, size_t n, const struct bucket *bucket)
{
	uint64_t changed = 0;

	for (size_t i = 0; i < BUCKETS_SLOTS; i++)
		changed |=
			(words[i * n] ^ bucket->allocs[i]) | (words[i * n + 1] ^ bucket->frees[i]);
	return !changed;
}

static inline void load_slots(const uint64_t *words, size_t n, uint64_t allocs[BUCKETS_SLOTS],
			      uint64_t frees[BUCKETS_SLOTS])
{
	for (size_t i = 0; i < BUCKETS_SLOTS; i++) {
		allocs[i] = words[i * n];
		frees[i] = words[i * n + 1];
	}
}

static void load(enum buckets_layout layout, const uint64_t *words, uint64_t allocs[BUCKETS_SLOTS],
		 uint64_t frees[BUCKETS_SLOTS])
{
	if (layout == BUCKETS_LAYOUT_WIDE) {
		load_slots(words, SLOT_WORDS_WIDE, allocs, frees);
	} else if (layout == BUCKETS_LAYOUT_NARROW) {
		load_slots(words, SLOT_WORDS_NARROW, allocs, frees);
	} else {
		allocs[0] = words[0];
		frees[0] = words[1];
	}
}

static bool is_same(enum buckets_layout layout, const uint64_t *words, const struct bucket *bucket)
{
	if (layout == BUCKETS_LAYOUT_WIDE)
		return same_slots(words, SLOT_WORDS_WIDE, bucket);
	if (layout == BUCKETS_LAYOUT_NARROW)
		return same_slots(words, SLOT_WORDS_NARROW, bucket);
	return words[0] == bucket->allocs[0] && words[1] == bucket->frees[0];
}

int counters_take(enum buckets_layout layout, const uint64_t *words, bool fresh, bool insist,
		  struct bucket *bucket)
{
	uint64_t allocs[BUCKETS_SLOTS] = {0}, frees[BUCKETS_SLOTS] = {0};

	if (is_same(layout, words, bucket))
		return COUNTERS_OK; /* the usual case */
	load(layout, words, allocs, frees);
	if (layout == BUCKETS_LAYOUT_WIDE && !counters_add_up(words, bucket->size))
		return COUNTERS_TORN;
	if (!fresh && !insist &&
	    (sum(allocs) < sum(bucket->allocs) || is_twice(bucket->allocs, allocs) ||
	     is_twice(bucket->frees, frees) || is_lost(bucket->allocs, allocs) ||
	     is_lost(bucket->frees, frees)))
		return COUNTERS_DOUBTFUL;
	memcpy(bucket->allocs, allocs, sizeof(allocs));
	memcpy(bucket->frees, frees, sizeof(frees));
	return COUNTERS_OK;
}
