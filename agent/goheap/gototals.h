/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOTOTALS_H
#define PODPROF_GOHEAP_GOTOTALS_H

/*
 * A Go program's allocations and frees since its start, from the allocator's own counters: exact,
 * and present with the memory profiler on or off. Since Go 1.17.
 */

#include <stdint.h>

#include "goheap/goruntime.h"

struct goversion_stats;
struct memory;

enum gototals_outcome {
	GOTOTALS_OK = 0,
	GOTOTALS_ABSENT, /* the address or the layout of the counters is unknown */
	GOTOTALS_ODD,	 /* inconsistent: read during a change, or not the counters */
	GOTOTALS_GONE,
	GOTOTALS_DENIED,
	GOTOTALS_OUTCOME_MAX,
};

/* Small objects without pointers share a block of 16 bytes; each counts as an object. */
struct gototals {
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
	uint64_t free_bytes;
	uint64_t free_objects;
};

/**
 * gototals_read() - read the counters, in a single call
 * @layout: layout of the counters. In: from an earlier read of this process, or NULL; out: of this
 *          read
 *
 * The runtime adds a processor's share when the processor takes the next span, so the numbers may
 * be some 100 KB behind. Go 1.17 and 1.18 add the share in advance and correct it at each
 * collection, so there the numbers may be as much ahead, and go down.
 *
 * Return: 0, an outcome, -errno; on everything except 0 the outputs are untouched.
 */
int gototals_read(const struct goruntime *rt, struct memory *m,
		  const struct goversion_stats **layout, struct gototals *ret);

/* Translate a result of memory_read() into an outcome. */
int gototals_outcome(int r);

#endif
