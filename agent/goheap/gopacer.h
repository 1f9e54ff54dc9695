/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOPACER_H
#define PODPROF_GOHEAP_GOPACER_H

/*
 * What a Go program's garbage collector goes by: how large the heap was after the last collection,
 * at what size the next one is due, and what memory it has for that. Since Go 1.17.
 */

#include <stdbool.h>
#include <stdint.h>

struct goruntime;
struct memory;

/* All in bytes; the comments are the names that runtime.MemStats and runtime/metrics have. */
struct gopacer {
	uint64_t next_gc; /* NextGC */
	uint64_t marked;  /* /gc/heap/live:bytes */
	bool has_memory;  /* the rest; Go 1.19 and later */
	uint64_t inuse;	  /* HeapInuse */
	uint64_t sys;	  /* HeapSys */
	uint64_t released;
};

/* One call. 0, an outcome of gototals_read(), -errno; on everything but 0 @ret is untouched. */
int gopacer_read(const struct goruntime *rt, struct memory *m, struct gopacer *ret);

#endif
