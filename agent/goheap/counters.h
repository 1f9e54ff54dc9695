/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_COUNTERS_H
#define PODPROF_GOHEAP_COUNTERS_H

/* The counters of a record as in memory, and checks of their plausibility. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goheap/buckets.h"

#define SLOT_WORDS_WIDE	   4
#define SLOT_WORDS_NARROW  2 /* also in the other lists, with one slot */
/* Words of the counters of a record in the wider layout. Reached: -. */
#define COUNTERS_WORDS_MAX (BUCKETS_SLOTS * SLOT_WORDS_WIDE)

enum counters_outcome {
	COUNTERS_OK = 0,
	COUNTERS_TORN,	   /* inconsistent: read in the middle of a change */
	COUNTERS_DOUBTFUL, /* possible but suspicious: less than before, or a slot counted twice */
};

size_t counters_bytes(enum buckets_layout layout);
/* Address of a record's counters in the process. */
uint64_t counters_addr(const struct bucket *bucket);
/* Whether the four slots of the wide layout are consistent. */
bool counters_add_up(const uint64_t words[COUNTERS_WORDS_MAX], uint64_t size);

/**
 * counters_take() - store counters in the record, if they are plausible
 * @words:  counters_bytes() of words
 * @fresh:  the record has no earlier counters
 * @insist: accept doubtful counters, too, because repeated reads agree
 *
 * Return: an outcome; the record changes on COUNTERS_OK only.
 */
int counters_take(enum buckets_layout layout, const uint64_t *words, bool fresh, bool insist,
		  struct bucket *bucket);

#endif
