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
 * unsample() - from what was sampled to what probably happened
 * @count: sampled objects
 * @size:  bytes of each
 * @rate:  runtime.MemProfileRate, the mean number of bytes from one sample to the next
 *
 * As runtime/pprof does when it writes a heap profile. Numbers beyond int64 become its maximum.
 */
struct unsampled unsample(uint64_t count, uint64_t size, int64_t rate);

#endif
