/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_BACKOFF_H
#define PODPROF_BASE_BACKOFF_H

#include <stdint.h>

#include "base/nsec.h"

#define BACKOFF_FIRST_NS (500 * NSEC_PER_MSEC)
/* Nanoseconds between two attempts. Reached: -. */
#define BACKOFF_MAX_NS	 (300 * NSEC_PER_SEC)

/* The state of an exponential backoff. {0} is the initial state; @max_ns 0 is BACKOFF_MAX_NS. */
struct backoff {
	unsigned int failures;
	uint64_t max_ns;
};

/**
 * backoff_next() - the wait after one more failure
 * @random:         64 random bits
 * @retry_after_ns: the delay the server asked for; 0 for none
 *
 * The wait is @retry_after_ns plus a random part below a bound ("full jitter": nodes that failed
 * together return spread out). The bound doubles from BACKOFF_FIRST_NS to the maximum.
 * @retry_after_ns is cut at the maximum, too.
 */
uint64_t backoff_next(struct backoff *b, uint64_t random, uint64_t retry_after_ns);
/* backoff_next() with its own random bits. */
uint64_t backoff_wait_ns(struct backoff *b, uint64_t retry_after_ns);

static inline void backoff_reset(struct backoff *b)
{
	b->failures = 0;
}

#endif
