/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOTOTALS_H
#define PODPROF_GOHEAP_GOTOTALS_H

/*
 * A Go program's allocations and frees since its start, from the allocator's own counters: exact,
 * and present with the memory profiler on or off. Since Go 1.17.
 */

#include <stdbool.h>
#include <stddef.h>
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

/* The number of goroutines of a Go program, as runtime.NumGoroutine counts them. Since Go 1.17. */

/* Processors of a program (GOMAXPROCS), by default as many as the machine has. Reached: its
 * goroutines are not counted. */
#define GOSCHED_PROCS_MAX 1024

/* Kept between the reads of a process; {0} at first. */
struct gosched {
	uint64_t free_at; /* of gFree in a processor; 0: not known */
};

/**
 * gosched_read() - count goroutines, in three calls
 *
 * Ended goroutines move between lists during the read. The number may be slightly off for a program
 * that starts and ends many at that moment, as NumGoroutine's is.
 *
 * Return: 0, an outcome of gototals_read(), -errno.
 */
int gosched_read(const struct goruntime *rt, struct memory *m, struct gosched *s, uint64_t *ret);

/*
 * The figures that drive a Go program's garbage collector: the size of the heap after the last
 * collection, the size that starts the next one, and the memory reserved for the heap. Since Go
 * 1.17.
 */

/* All in bytes. The comments give the names in runtime.MemStats and runtime/metrics. */
struct gopacer {
	uint64_t next_gc; /* NextGC */
	uint64_t marked;  /* /gc/heap/live:bytes */
	bool has_memory;  /* the fields below are set; Go 1.19 and later */
	uint64_t inuse;	  /* HeapInuse */
	uint64_t sys;	  /* HeapSys */
	uint64_t released;
};

/* A single call. 0, an outcome of gototals_read(), -errno; on everything except 0 @ret is
 * untouched. */
int gopacer_read(const struct goruntime *rt, struct memory *m, struct gopacer *ret);

#endif
