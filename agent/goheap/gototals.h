/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOTOTALS_H
#define PODPROF_GOHEAP_GOTOTALS_H

/*
 * What a Go program has allocated and freed since it started, by the allocator's own counters:
 * exact, and there whether the memory profiler is on or not. Since Go 1.17.
 */

#include <stdint.h>

#include "goheap/goruntime.h"

struct goversion_stats;
struct memory;

enum gototals_outcome {
	GOTOTALS_OK = 0,
	GOTOTALS_ABSENT, /* where the counters are, or how they lie, is not known */
	GOTOTALS_ODD, /* they do not add up: caught while they were changed, or no such counters */
	GOTOTALS_GONE,
	GOTOTALS_DENIED,
	GOTOTALS_OUTCOME_MAX,
};

/* Objects of some bytes without pointers share one of 16 bytes, and are counted each. */
struct gototals {
	uint64_t alloc_bytes;
	uint64_t alloc_objects;
	uint64_t free_bytes;
	uint64_t free_objects;
};

/**
 * gototals_read() - one call
 * @layout: how the counters lie in memory. In: what an earlier read of this process found, or NULL;
 *          out: what this one has
 *
 * A processor's share is added when it takes the next span, so that the numbers may be some 100 KB
 * behind; in Go 1.17 and 1.18 it is added in advance and put right by each collection, so that they
 * may be as much ahead, and go down. Return: 0, an outcome, -errno; on everything but 0 nothing was
 * changed.
 */
int gototals_read(const struct goruntime *rt, struct memory *m,
		  const struct goversion_stats **layout, struct gototals *ret);

/* What memory_read() returned, as gototals_read() would say it. */
int gototals_outcome(int r);

#endif
