/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_BUCKETS_H
#define PODPROF_GOHEAP_BUCKETS_H

/*
 * A Go runtime's list of heap records ("buckets"): one for each pair of stack and object size that
 * was sampled, with counters. Read once; afterwards only what is new, and the counters. The lists
 * of what goroutines have waited for are made of the same records with other counters.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory;

enum buckets_outcome {
	BUCKETS_OK = 0,
	BUCKETS_GONE,
	BUCKETS_DENIED,
	BUCKETS_MALFORMED,	/* not shaped as a list of heap records, or not hashed as one */
	BUCKETS_UNKNOWN_LAYOUT, /* the list is right, what the counters are is not known */
	BUCKETS_TOO_LARGE,	/* the table would not fit opts.max_bytes */
	BUCKETS_OUTCOME_MAX,
};

/* Which of the runtime's lists; the values are its own. */
enum buckets_kind {
	BUCKETS_MEMORY = 1, /* runtime.mbuckets */
	BUCKETS_BLOCK = 2,  /* runtime.bbuckets */
	BUCKETS_MUTEX = 3,  /* runtime.xbuckets */
};

/* How a record's counters lie in memory. */
enum buckets_layout {
	BUCKETS_LAYOUT_UNKNOWN = 0,
	BUCKETS_LAYOUT_WIDE,	   /* Go 1.16 to 1.26: with byte counts, 128 bytes */
	BUCKETS_LAYOUT_NARROW,	   /* Go 1.27: without, 64 bytes */
	BUCKETS_LAYOUT_CONTENTION, /* of the other lists: 16 bytes */
};

/* Allocations are counted in the slot of a garbage collection cycle to come, and move to slot 0
 * when that cycle is over. */
#define BUCKETS_SLOTS 4

/**
 * struct bucket - one record
 * @addr: in the process; never moves and is never freed
 * @size: of an object, bytes, as the allocator rounds it
 * @allocs, @frees: [0] is what was published, [1 + cycle % 3] what that cycle will publish. Of the
 *                  other lists only [0] is used: the count as it lies in memory, and the cycles
 * @before: sum of @allocs when the last buckets_begin() was called; 0 for a new one
 */
struct bucket {
	uint64_t addr;
	uint64_t size;
	uint32_t first_pc; /* index into buckets.pcs */
	uint32_t n_pcs;
	uint64_t allocs[BUCKETS_SLOTS];
	uint64_t frees[BUCKETS_SLOTS];
	uint64_t before;
};

/**
 * struct buckets - what is known of one process
 * @pcs: of all records, leaf first in each, as the runtime recorded them
 * @head: address of the newest record that is known
 * @n_torn: reads of counters that were thrown away since they did not add up, or had gone down
 *
 * Owns its arrays.
 */
struct buckets {
	struct bucket *items;
	size_t n;
	size_t cap;
	uint64_t *pcs;
	size_t n_pcs;
	size_t pcs_cap;
	uint64_t head;
	enum buckets_kind kind;
	enum buckets_layout layout;
	size_t max_bytes;
	uint64_t n_torn;
};

void buckets_init(struct buckets *b, enum buckets_kind kind, size_t max_bytes);
void buckets_deinit(struct buckets *b);
/* Forget everything but the kind and the ceiling. */
void buckets_reset(struct buckets *b);

/* Start a read: note in each bucket what it had before. */
void buckets_begin(struct buckets *b);

/**
 * buckets_update() - add the records that are in front of the known ones
 * @head: value of runtime.mbuckets, or of the other list's variable
 * @go_minor: 26 for Go 1.26, 0 if not known: only used where the counters do not tell the layout
 *
 * The new records' counters are read too. Only the first call needs to find out the layout.
 *
 * Return: 0, an outcome, -errno. On everything but 0 the records are as before.
 */
int buckets_update(struct buckets *b, struct memory *m, uint64_t head, unsigned int go_minor);

/**
 * buckets_refresh() - read the counters of the first @n records again
 *
 * A record whose counters do not add up, or whose allocations have become fewer, was caught while
 * it was being changed: it is read again, a few times, and then keeps what was known before.
 */
int buckets_refresh(struct buckets *b, struct memory *m, size_t n);

/* All that was ever allocated, published or not. */
uint64_t bucket_allocs(const struct bucket *b);

/* The runtime's hash of a stack and a size: stkbucket() in runtime/mprof.go. */
uint64_t bucket_hash(const uint64_t *pcs, size_t n, uint64_t size);

size_t buckets_bytes(const struct buckets *b);
const char *buckets_outcome_name(int outcome);

#endif
