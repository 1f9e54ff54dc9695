/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOPACER_H
#define PODPROF_GOHEAP_GOPACER_H

/*
 * The figures that drive a Go program's garbage collector: the size of the heap after the last
 * collection, the size that starts the next one, and the memory reserved for the heap. Since Go
 * 1.17.
 */

#include <stdbool.h>
#include <stdint.h>

struct goruntime;
struct memory;

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
