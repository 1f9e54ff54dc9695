/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_COUNTERS_H
#define PODPROF_GOHEAP_COUNTERS_H

/* The counters of one record as they lie in memory, and whether they can be true. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goheap/buckets.h"

#define SLOT_WORDS_WIDE	   4
#define SLOT_WORDS_NARROW  2 /* and in the other lists, which have one slot */
/* Words of the counters of one record, of the wider form. Reached: -. */
#define COUNTERS_WORDS_MAX (BUCKETS_SLOTS * SLOT_WORDS_WIDE)

enum counters_outcome {
	COUNTERS_OK = 0,
	COUNTERS_TORN,	   /* they do not add up: read in the middle of a change */
	COUNTERS_DOUBTFUL, /* fewer than before, or a slot counted twice: perhaps so */
};

size_t counters_words(enum buckets_layout layout);
size_t counters_bytes(enum buckets_layout layout);
/* Where a record's counters are in the process. */
uint64_t counters_addr(const struct bucket *bucket);
/* Whether the wide form's four slots agree with themselves. */
bool counters_add_up(const uint64_t words[COUNTERS_WORDS_MAX], uint64_t size);

/**
 * counters_take() - put what was read into the record, if it can be true
 * @words: counters_words() of them
 * @fresh: nothing is known of this record yet
 * @insist: take doubtful ones too: they have been read more than once
 *
 * Return: an outcome; the record changes on COUNTERS_OK only.
 */
int counters_take(enum buckets_layout layout, const uint64_t *words, bool fresh, bool insist,
		  struct bucket *bucket);

#endif
