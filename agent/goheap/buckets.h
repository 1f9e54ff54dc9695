/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_BUCKETS_H
#define PODPROF_GOHEAP_BUCKETS_H

/*
 * A Go runtime's list of heap records ("buckets"), one for each sampled pair of stack and object
 * size, with counters. The first read copies all records; later reads copy only new records and the
 * counters. The lists of the block and mutex profiles consist of the same records with other
 * counters.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "goheap/pcset.h"

struct memory;
struct walk;

/* PCs of a record: GODEBUG=profstackdepth may be 1024, and Go 1.26 adds two. More PCs are
 * BUCKETS_MALFORMED. Reached: the read counts as `malformed`. */
#define BUCKETS_PCS_MAX	     1026
/* Bytes of an object. No object has a terabyte, so a larger size is BUCKETS_MALFORMED. Reached: the
 * read counts as `malformed`. */
#define BUCKETS_SIZE_MAX     (1ull << 40)
/* Bytes of a record before the PCs. */
#define BUCKETS_HEADER_BYTES 48

enum buckets_outcome {
	BUCKETS_OK = 0,
	BUCKETS_GONE,
	BUCKETS_DENIED,
	BUCKETS_MALFORMED,	/* not shaped or not hashed as a list of heap records */
	BUCKETS_UNKNOWN_LAYOUT, /* the list is right, the layout of the counters is unknown */
	BUCKETS_TOO_LARGE,	/* the table exceeds max_bytes */
	BUCKETS_UNFINISHED,	/* the budget is used up: call again */
	BUCKETS_OUTCOME_MAX,
};

/* The runtime's lists. The values are the runtime's own. */
enum buckets_kind {
	BUCKETS_MEMORY = 1, /* runtime.mbuckets */
	BUCKETS_BLOCK = 2,  /* runtime.bbuckets */
	BUCKETS_MUTEX = 3,  /* runtime.xbuckets */
};

/* The layout of a record's counters in memory. */
enum buckets_layout {
	BUCKETS_LAYOUT_UNKNOWN = 0,
	BUCKETS_LAYOUT_WIDE,	   /* Go 1.16 to 1.26: with byte counts, 128 bytes */
	BUCKETS_LAYOUT_NARROW,	   /* Go 1.27: without byte counts, 64 bytes */
	BUCKETS_LAYOUT_CONTENTION, /* of the block and mutex lists: 16 bytes */
};

/* The runtime counts allocations in the slot of a future garbage collection cycle, and moves the
 * counts to slot 0 at the end of that cycle. */
#define BUCKETS_SLOTS 4

/**
 * struct bucket - a record
 * @addr: in the process; a record never moves and is never freed
 * @size: of an object, bytes, as the allocator rounds it
 * @allocs, @frees: slot 0 has the published counts, slot 1 + cycle % 3 the counts that the garbage
 *                  collection cycle will publish. The block and mutex lists use only slot 0:
 *                  allocs[0] is the count as in memory, frees[0] the CPU cycles
 * @before: bucket_allocs() at the last buckets_begin(); 0 for a record that was read later
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
 * struct buckets - the known records of a process
 * @items:  in no meaningful order
 * @order:  indices of the first @n_ordered @items, by address
 * @stacks: of all records, leaf first in each, as the runtime recorded them: numbers of @pcs
 * @head:   address of the newest known record
 * @walk:   an unfinished update
 * @done:   records read by an unfinished refresh
 * @n_torn: discarded reads of counters: the counters did not add up, had gone down, or looked like
 *          a state between two steps of the runtime
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
/* Forget everything except the kind and the ceiling. */
void buckets_reset(struct buckets *b);

/* Start a read: store the present counts of each bucket as `before`. */
void buckets_begin(struct buckets *b);

/**
 * buckets_update() - add the records in front of the known records
 * @head:     value of runtime.mbuckets, or of the other list's variable; ignored while an update is
 *            unfinished, because the update continues with its first head
 * @go_minor: 26 for Go 1.26, 0 if unknown: only used if the counters do not determine the layout
 * @budget:   bytes to read, approximately; reduced by the bytes read
 *
 * Also reads the counters of the new records. The first call determines the layout for all later
 * calls.
 *
 * Return: 0, an outcome, -errno. After any result except 0 and BUCKETS_UNFINISHED, the records are
 * the same as before the update.
 */
int buckets_update(struct buckets *b, struct memory *m, uint64_t head, unsigned int go_minor,
		   size_t *budget);

/**
 * buckets_refresh() - read the counters of the first @n records again
 * @n:      unchanged while a refresh is unfinished
 * @budget: as above
 *
 * A read may catch a record in the middle of a change: its counters do not add up, are smaller than
 * before, or look as if a slot had been added to the first slot but not emptied yet. The refresh
 * reads such a record again, a few times. A record whose counters never add up keeps its earlier
 * counters.
 */
int buckets_refresh(struct buckets *b, struct memory *m, size_t n, size_t *budget);

/* Sum of all allocations, published or not; never less than after the read before. */
uint64_t bucket_allocs(const struct bucket *b);

/* The runtime's hash of a stack and a size: stkbucket() in runtime/mprof.go. */
uint64_t bucket_hash(const uint64_t *pcs, size_t n, uint64_t size);

/* Memory held, without the needs of an unfinished update or refresh. */
size_t buckets_bytes(const struct buckets *b);
/* Translate @r, a result of memory_read(), into an outcome. */
int buckets_outcome(int r);

#endif
