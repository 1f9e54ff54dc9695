/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_HEAPIMAGE_H
#define PODPROF_TEST_SUPPORT_HEAPIMAGE_H

/*
 * A synthetic Go process: a few pieces of memory with the profiler's variables and heap records.
 * Tests fill them, and the reader cannot tell the difference.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goheap/goruntime.h"
#include "procmap/memory.h"

#define HEAPIMAGE_SEGMENTS_MAX 64

struct heapimage {
	struct memory memory;
	struct heapimage_segment {
		uint64_t addr;
		size_t n;
		uint8_t *bytes; /* owned */
	} segments[HEAPIMAGE_SEGMENTS_MAX];
	size_t n_segments;
	int outcome; /* of every read and check, if not 0 */
	/* called before each read with the read's number, from 1; simulates a process that changes
	 * during the read */
	void (*on_read)(struct heapimage *image, uint64_t n);
};

/* Where the variables are. */
#define HEAPIMAGE_VARS 0x500000ull

enum { HEAPIMAGE_ALLOCS, HEAPIMAGE_FREES };

/* Counters of a record: [slot][allocs or frees]; slot 0 is active. */
typedef uint64_t heapimage_counts[4][2];

/* With the variables: no records, rate 524288, cycle 0. */
void heapimage_init(struct heapimage *image);
void heapimage_deinit(struct heapimage *image);
/* @n zero bytes at @addr. */
void heapimage_map(struct heapimage *image, uint64_t addr, size_t n);
void heapimage_write(struct heapimage *image, uint64_t addr, const void *data, size_t n);
void heapimage_u64(struct heapimage *image, uint64_t addr, uint64_t value);

/* The result of goruntime_find() for @version, such as "go1.26.8". */
void heapimage_runtime(const char *version, struct goruntime *ret);
void heapimage_head(struct heapimage *image, uint64_t addr);
void heapimage_rate(struct heapimage *image, int64_t rate);
void heapimage_cycle(struct heapimage *image, uint32_t cycle, bool flushed);

/* Size of a record of @n PCs in bytes. */
size_t heapimage_bucket_bytes(bool wide, size_t n);
/* Write a record at @addr, in mapped memory; @older is the next of the list. Returns the address of
 * the record's counters. */
uint64_t heapimage_bucket(struct heapimage *image, uint64_t addr, uint64_t older, bool wide,
			  const uint64_t *pcs, size_t n, uint64_t size,
			  const heapimage_counts counts);
void heapimage_counters(struct heapimage *image, uint64_t addr, bool wide, uint64_t size,
			const heapimage_counts counts);

#endif
