/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_UNSAMPLE_H
#define PODPROF_GOHEAP_UNSAMPLE_H

#include <stdint.h>

/* Objects and bytes, as a profile shows them. */
struct unsampled {
	int64_t objects;
	int64_t bytes;
};

/**
 * unsample() - scale sampled counts up to estimates of all allocations
 * @count: sampled objects
 * @size:  bytes of each
 * @rate:  runtime.MemProfileRate, the mean number of bytes from one sample to the next
 *
 * Uses the formula of runtime/pprof for heap profiles. Results beyond int64 become its maximum.
 */
struct unsampled unsample(uint64_t count, uint64_t size, int64_t rate);

#endif
