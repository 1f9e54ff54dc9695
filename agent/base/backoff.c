// SPDX-License-Identifier: Apache-2.0
#include "base/backoff.h"

#include <sys/random.h>

/* Doublings until the bound exceeds every maximum; more would overflow the shift. Reached: -. */
#define BACKOFF_DOUBLINGS_MAX 12
_Static_assert((BACKOFF_FIRST_NS << BACKOFF_DOUBLINGS_MAX) > BACKOFF_MAX_NS, "reaches the maximum");

uint64_t backoff_next(struct backoff *b, uint64_t random, uint64_t retry_after_ns)
{
	uint64_t bound = BACKOFF_FIRST_NS << b->failures;
	uint64_t max_ns = b->max_ns ? b->max_ns : BACKOFF_MAX_NS;

	if (bound > max_ns)
		bound = max_ns;
	if (b->failures < BACKOFF_DOUBLINGS_MAX)
		b->failures++;
	if (retry_after_ns > max_ns)
		retry_after_ns = max_ns;
	/* The remainder favours small values by less than one part in 2^25, without a visible
	 * effect. */
	return retry_after_ns + random % (bound + 1);
}

uint64_t backoff_wait_ns(struct backoff *b, uint64_t retry_after_ns)
{
	uint64_t random = 0;

	/* Cannot fail for so few bytes after the machine's start; 0 would only spread the waits
	 * less. */
	(void)!getrandom(&random, sizeof(random), 0);
	return backoff_next(b, random, retry_after_ns);
}
