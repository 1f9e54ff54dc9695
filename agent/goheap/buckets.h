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

#include "goheap/pcset.h"

struct memory;
struct walk;

/* PCs of one record: GODEBUG=profstackdepth may be 1024, and Go 1.26 adds two. One more is
 * BUCKETS_MALFORMED. Reached: read is `malformed`. */
#define BUCKETS_PCS_MAX	     1026
/* Bytes of an object; a terabyte is not one: BUCKETS_MALFORMED. Reached: read is `malformed`. */
#define BUCKETS_SIZE_MAX     (1ull << 40)
/* Bytes of a record in front of its PCs. */
#define BUCKETS_HEADER_BYTES 48

enum buckets_outcome {
	BUCKETS_OK = 0,
	BUCKETS_GONE,
	BUCKETS_DENIED,
	BUCKETS_MALFORMED,	/* not shaped as a list of heap records, or not hashed as one */
	BUCKETS_UNKNOWN_LAYOUT, /* the list is right, what the counters are is not known */
	BUCKETS_TOO_LARGE,	/* the table would not fit max_bytes */
	BUCKETS_UNFINISHED,	/* the budget is used up: call again */
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
 * @before: bucket_allocs() when the last buckets_begin() was called; 0 for a new one
 */
struct bucket {
	uint64_t addr;
	uint64_t size;
	uint32_t first_pc; /* index into buckets.stacks */
	uint32_t n_pcs;
	uint64_t allocs[BUCKETS_SLOTS];
	uint64_t frees[BUCKETS_SLOTS];
	uint64_t before;
};

/**
 * struct buckets - what is known of one process
 * @items:  in no order that means anything
 * @order:  indices of @items by address; of the first @n_ordered of them
 * @stacks: of all records, leaf first in each, as the runtime recorded them: numbers of @pcs
 * @head:   address of the newest record that is known
 * @walk:   an update that is not finished
 * @done:   records that an unfinished refresh has read
 * @n_torn: reads of counters that were thrown away since they did not add up, had gone down, or
 *          looked as if caught between two of the runtime's steps
 *
 * Owns its arrays.
 */
struct buckets {
	struct bucket *items;
	size_t n;
	size_t cap;
	uint32_t *order;
	size_t n_ordered;
	size_t order_cap;
	uint32_t *stacks;
	size_t n_stacks;
	size_t stacks_cap;
	struct pcset pcs;
	uint64_t head;
	enum buckets_kind kind;
	enum buckets_layout layout;
	size_t max_bytes;
	struct walk *walk;
	size_t done;
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
 * @head: value of runtime.mbuckets, or of the other list's variable; of no meaning while an update
 *        is unfinished, which goes on with the head that it began with
 * @go_minor: 26 for Go 1.26, 0 if not known: only used where the counters do not tell the layout
 * @budget: bytes to read, about; becomes less by what was
 *
 * The new records' counters are read too. Only the first call needs to find out the layout.
 *
 * Return: 0, an outcome, -errno. On everything but 0 and BUCKETS_UNFINISHED the records are as
 * before the update began.
 */
int buckets_update(struct buckets *b, struct memory *m, uint64_t head, unsigned int go_minor,
		   size_t *budget);

/**
 * buckets_refresh() - read the counters of the first @n records again
 * @n: the same as before while a refresh is unfinished
 * @budget: as above
 *
 * A record whose counters do not add up, have become fewer, or look as if a slot had been added to
 * the first but not emptied yet, was caught while it was being changed: it is read again, a few
 * times. If its counters never add up it keeps what was known before.
 */
int buckets_refresh(struct buckets *b, struct memory *m, size_t n, size_t *budget);

/* All that was ever allocated, published or not; never fewer than in the read before. */
uint64_t bucket_allocs(const struct bucket *b);

/* The runtime's hash of a stack and a size: stkbucket() in runtime/mprof.go. */
uint64_t bucket_hash(const uint64_t *pcs, size_t n, uint64_t size);

/* Memory held, without what an unfinished update or refresh needs. */
size_t buckets_bytes(const struct buckets *b);
/* What @r, of memory_read(), means for records. */
int buckets_outcome(int r);
const char *buckets_outcome_name(int outcome);

#endif
