// SPDX-License-Identifier: Apache-2.0
/*
 * A slot is {allocs, frees, alloc_bytes, free_bytes} up to Go 1.26 and {allocs, frees} in 1.27. The
 * bytes are the counts times the size, so the wide form proves itself, and also shows when a slot
 * was read while it was being written.
 *
 * When the runtime publishes a slot it adds it to the first one and then sets it to zero, some
 * nanoseconds later, without a lock that could be seen from here. A copy that was made in between
 * has the slot twice; one that was made across both steps may have it not at all. The second shows
 * as a first slot that has not grown by what another one has lost. The first shows as a first slot
 * that has grown by exactly what another slot still holds; that can be by chance, so it is doubtful
 * only, and is taken when it is still so after having been read again. In the other lists, where
 * the one count is a double, it grows with the bits that it is made of, too.
 *
 * A total that stays smaller is the truth: the one before was of a slot that had been counted
 * twice. It is taken, and bucket_allocs() does not go down all the same.
 */
#include "goheap/counters.h"

#include <string.h>

static size_t n_slots(enum buckets_layout layout)
{
	return layout == BUCKETS_LAYOUT_CONTENTION ? 1 : BUCKETS_SLOTS;
}

static size_t slot_words(enum buckets_layout layout)
{
	return layout == BUCKETS_LAYOUT_WIDE ? SLOT_WORDS_WIDE : SLOT_WORDS_NARROW;
}

size_t counters_words(enum buckets_layout layout)
{
	return n_slots(layout) * slot_words(layout);
}

size_t counters_bytes(enum buckets_layout layout)
{
	return counters_words(layout) * sizeof(uint64_t);
}

uint64_t counters_addr(const struct bucket *bucket)
{
	/* cannot overflow: it was read from there */
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

/* Whether a slot seems to be in the first one already, but not emptied yet. */
static bool is_twice(const uint64_t old[BUCKETS_SLOTS], const uint64_t new[BUCKETS_SLOTS])
{
	for (size_t i = 1; i < BUCKETS_SLOTS; i++)
		if (new[i] && new[0] - old[0] == new[i])
			return true;
	return false;
}

/* Whether what slots have lost is not in the first one: copied across both steps. A total that has
 * grown meanwhile can hide that. */
static bool is_lost(const uint64_t old[BUCKETS_SLOTS], const uint64_t new[BUCKETS_SLOTS])
{
	uint64_t moved = 0;

	for (size_t i = 1; i < BUCKETS_SLOTS; i++)
		if (new[i] < old[i] && __builtin_add_overflow(moved, old[i], &moved))
			return true;
	return new[0] - old[0] < moved;
}

/* Slots of @n words; constant for the compiler, since this is what most of a later read is. */
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
		return COUNTERS_OK; /* as most are */
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
