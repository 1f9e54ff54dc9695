// SPDX-License-Identifier: Apache-2.0
#include "export/backoff.h"

/* Doubling so often passes BACKOFF_MAX_NS; counting further would only overflow the shift. */
#define BACKOFF_DOUBLINGS_MAX 10
_Static_assert((BACKOFF_FIRST_NS << BACKOFF_DOUBLINGS_MAX) > BACKOFF_MAX_NS, "reaches the maximum");

uint64_t backoff_next(struct backoff *b, uint64_t random, uint64_t retry_after_ns)
{
	uint64_t bound = BACKOFF_FIRST_NS << b->failures;

	if (bound > BACKOFF_MAX_NS)
		bound = BACKOFF_MAX_NS;
	if (b->failures < BACKOFF_DOUBLINGS_MAX)
		b->failures++;
	if (retry_after_ns > BACKOFF_MAX_NS)
		retry_after_ns = BACKOFF_MAX_NS;
	/* The remainder favours small values by less than one part in 2^25: no matter here. */
	return retry_after_ns + random % (bound + 1);
}
