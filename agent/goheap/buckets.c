// SPDX-License-Identifier: Apache-2.0
/*
 * The heap profiler's records, as Go keeps them on 64-bit machines (runtime/mprof.go).
 *
 *   0  next      link of a hash chain, unused here
 *   8  allnext   the next older record
 *  16  typ       1: memory, 2: block, 3: mutex
 *  24  hash      of the stack and the size
 *  32  size      of an object; 0 in the other lists
 *  40  nstk      number of PCs
 *  48  PCs       leaf first
 *   +  counters  four slots: active, future[3]; in the other lists a count and cycles
 *
 * A slot has four words with redundant content up to Go 1.26, and two in 1.27 (counters.c). The
 * content determines the layout, not the version.
 *
 * The runtime allocates records consecutively in chunks, never frees records, and puts new records
 * in front of the list. Later only their counters change. So podprof reads each record once,
 * through windows, and keeps the record by address. Later reads walk from the head to the first
 * known record and then fetch the counters alone (refresh.c).
 *
 * All input is untrusted. Each record must have the right type, a plausible number of PCs, and the
 * hash of the runtime. The length of the list is limited by the ceiling on bytes. The list must
 * not contain a cycle (Brent's algorithm, without a table of visited records). The bytes read must
 * be in proportion to the bytes kept, because a list with many jumps needs a new window for every
 * record.
 */
#include "goheap/buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "gofile/goversion.h"
#include "goheap/counters.h"
#include "goheap/memory_windows.h"
#include "procmap/memory.h"

/* Newest records that vote on the layout; the runtime has counted each at least once. */
#define BUCKETS_VOTERS	    64
/* Limit of the bytes read, as a multiple of the ceiling on kept bytes; in real programs windows
 * add a fifth. Beyond: BUCKETS_TOO_LARGE. */
#define BUCKETS_READ_FACTOR 4
/* The cost of a call, in copied bytes. */
#define BUCKETS_CALL_BYTES  4096u
/* Attempts to read a new record in the middle of a change. */
#define BUCKETS_TRIES	    3

struct header {
	uint64_t next;
	uint64_t allnext;
	uint64_t typ;
	uint64_t hash;
	uint64_t size;
	uint64_t nstk;
};
_Static_assert(sizeof(struct header) == BUCKETS_HEADER_BYTES, "as it lies in memory");

/* A record under examination. */
struct candidate {
	uint64_t addr;
	struct header header;
	const uint64_t *pcs; /* in a window, or in room */
	uint64_t room[BUCKETS_PCS_MAX];
};

/* The path from a new head to the first known record. */
struct walk {
	struct memory_windows windows;
	struct candidate c;
	uint64_t head;
	uint64_t addr;	   /* the next record */
	uint64_t previous; /* the record before @addr */
	uint64_t max_cost;
	uint64_t mark; /* a cycle leads back to this address */
	size_t since_mark;
	size_t until_mark;
	size_t n; /* counts before the walk */
	size_t n_stacks;
};

int buckets_outcome(int r)
{
	switch (r) {
	case MEMORY_GONE:
		return BUCKETS_GONE;
	case MEMORY_DENIED:
		return BUCKETS_DENIED;
	case MEMORY_UNMAPPED:
		return BUCKETS_MALFORMED;
	default:
		return r;
	}
}

void buckets_init(struct buckets *b, enum buckets_kind kind, size_t max_bytes)
{
	*b = (struct buckets){.kind = kind, .max_bytes = max_bytes};
}

static void walk_free(struct walk *walk)
{
	if (walk)
		memory_windows_deinit(&walk->windows);
	free(walk);
}

void buckets_deinit(struct buckets *b)
{
	walk_free(b->walk);
	pcset_deinit(&b->pcs);
	free(b->items);
	free(b->order);
	free(b->stacks);
	buckets_init(b, b->kind, b->max_bytes);
}

void buckets_reset(struct buckets *b)
{
	buckets_deinit(b);
}

size_t buckets_bytes(const struct buckets *b)
{
	return b->cap * sizeof(*b->items) + b->order_cap * sizeof(*b->order) +
	       b->stacks_cap * sizeof(*b->stacks) + pcset_bytes(&b->pcs);
}

uint64_t bucket_hash(const uint64_t *pcs, size_t n, uint64_t size)
{
	uint64_t h = 0;

	for (size_t i = 0; i < n; i++) {
		h += pcs[i];
		h += h << 10;
		h ^= h >> 6;
	}
	h += size;
	h += h << 10;
	h ^= h >> 6;
	h += h << 3;
	h ^= h >> 11;
	return h;
}

void buckets_begin(struct buckets *b)
{
	for (size_t i = 0; i < b->n; i++)
		b->items[i].before = bucket_allocs(&b->items[i]);
}

/* ---------------------------------------------------------------- one record */

static bool header_is_sane(enum buckets_kind kind, uint64_t addr, const struct header *h)
{
	bool is_sane = kind == BUCKETS_MEMORY
			       ? h->size > 0 && h->size < BUCKETS_SIZE_MAX && h->nstk > 0
			       : h->size == 0;

	return addr % 8 == 0 && h->next % 8 == 0 && h->allnext % 8 == 0 && h->typ == kind &&
	       is_sane && h->nstk <= BUCKETS_PCS_MAX;
}

static int read_candidate_once(enum buckets_kind kind, struct memory_windows *w, uint64_t addr,
			       struct candidate *ret)
{
	const void *pcs = NULL;
	int r = memory_windows_read(w, addr, &ret->header, sizeof(ret->header));

	if (!r && !header_is_sane(kind, addr, &ret->header))
		return BUCKETS_MALFORMED;
	if (!r)
		r = memory_windows_view(w, addr + sizeof(ret->header),
					ret->header.nstk * sizeof(ret->pcs[0]), ret->room, &pcs);
	if (r)
		return buckets_outcome(r);
	ret->pcs = pcs;
	if (bucket_hash(ret->pcs, ret->header.nstk, ret->header.size) != ret->header.hash)
		return BUCKETS_MALFORMED;
	ret->addr = addr;
	return 0;
}

/* Before Go 1.19 the runtime linked a record into the list with an ordinary store, so another
 * processor could see the record before its contents. A malformed record is read once more. */
static int read_candidate(enum buckets_kind kind, struct memory_windows *w, uint64_t addr,
			  struct candidate *ret)
{
	int r = read_candidate_once(kind, w, addr, ret);

	if (r != BUCKETS_MALFORMED)
		return r;
	memory_windows_forget(w);
	return read_candidate_once(kind, w, addr, ret);
}

static uint64_t candidate_end(const struct candidate *c)
{
	return c->addr + sizeof(c->header) + c->header.nstk * sizeof(c->pcs[0]);
}

/* ---------------------------------------------------------------- layout */

struct votes {
	unsigned int wide;
	unsigned int narrow;
	unsigned int neither;
};

static uint64_t add_up_to_max(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static bool any_nonzero(const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (words[i])
			return true;
	return false;
}

/* More frees than allocations are impossible. The converse proves nothing, but nonsense rarely
 * passes. */
static bool narrow_is_sane(const uint64_t *words)
{
	uint64_t allocs = 0, frees = 0;

	for (size_t i = 0; i < BUCKETS_SLOTS; i++) {
		allocs = add_up_to_max(allocs, words[i * SLOT_WORDS_NARROW]);
		frees = add_up_to_max(frees, words[i * SLOT_WORDS_NARROW + 1]);
	}
	return allocs > 0 && frees <= allocs && allocs < (1ull << 56);
}

/* A record's vote; a record without counts abstains. The narrow layout may end with its
 * mapping, so the bytes of the wide layout may be missing. */
static int vote(struct memory_windows *w, const struct candidate *c, struct votes *votes)
{
	uint64_t words[COUNTERS_WORDS_MAX] = {0};
	const size_t narrow = counters_bytes(BUCKETS_LAYOUT_NARROW);
	int r = memory_windows_read(w, candidate_end(c), words, narrow);
	bool has_wide = false;

	if (!r) {
		r = memory_windows_read(w, candidate_end(c) + narrow, (uint8_t *)words + narrow,
					counters_bytes(BUCKETS_LAYOUT_WIDE) - narrow);
		has_wide = r == 0;
		if (r == MEMORY_UNMAPPED)
			r = 0;
	}
	if (r)
		return buckets_outcome(r);
	if (!any_nonzero(words, array_size(words)))
		return 0;
	if (has_wide && counters_add_up(words, c->header.size))
		votes->wide++;
	else if (narrow_is_sane(words))
		votes->narrow++;
	else
		votes->neither++;
	return 0;
}

/* Tolerates a few wrong votes: a wide record in the middle of a change does not add up. */
static enum buckets_layout elect(const struct votes *votes, unsigned int go_minor)
{
	if (votes->wide > 4 * (votes->narrow + votes->neither))
		return BUCKETS_LAYOUT_WIDE;
	if (votes->narrow > 4 * (votes->wide + votes->neither))
		return BUCKETS_LAYOUT_NARROW;
	if (votes->wide || votes->narrow || votes->neither || !go_minor)
		return BUCKETS_LAYOUT_UNKNOWN;
	return goversion_find(go_minor)->slot_words == SLOT_WORDS_WIDE ? BUCKETS_LAYOUT_WIDE
								       : BUCKETS_LAYOUT_NARROW;
}

static int find_layout(struct buckets *b, struct memory_windows *w, struct candidate *c,
		       uint64_t head, unsigned int go_minor)
{
	struct votes votes = {0};
	uint64_t addr = head;

	if (b->kind != BUCKETS_MEMORY) {
		b->layout = BUCKETS_LAYOUT_CONTENTION;
		return 0;
	}
	for (int i = 0; i < BUCKETS_VOTERS && addr; i++) {
		int r = read_candidate(b->kind, w, addr, c);

		if (!r)
			r = vote(w, c, &votes);
		if (r)
			return r;
		addr = c->header.allnext;
	}
	b->layout = elect(&votes, go_minor);
	return b->layout == BUCKETS_LAYOUT_UNKNOWN ? BUCKETS_UNKNOWN_LAYOUT : 0;
}

/* ---------------------------------------------------------------- the list */

/* Room for one more record with @n_pcs. */
static int grow(struct buckets *b, size_t n_pcs)
{
	size_t items = (b->n + 1) * sizeof(*b->items);
	size_t stacks = (b->n_stacks + n_pcs) * sizeof(*b->stacks);
	int r;

	if (items + stacks + pcset_bytes(&b->pcs) > b->max_bytes)
		return BUCKETS_TOO_LARGE;
	r = vec_grow_tight(&b->items, &b->cap, b->n + 1, sizeof(*b->items), UINT32_MAX);
	if (!r)
		r = vec_grow_tight(&b->stacks, &b->stacks_cap, b->n_stacks + n_pcs,
				   sizeof(*b->stacks), UINT32_MAX);
	return r > 0 ? BUCKETS_TOO_LARGE : r;
}

/* Consecutive stacks have equal PCs at equal distances from their roots, so the previous stack
 * supplies most of the numbers. */
static int keep_stack(struct buckets *b, const struct candidate *c)
{
	const struct bucket *last = b->n ? &b->items[b->n - 1] : NULL;
	size_t n = c->header.nstk, n_last = last ? last->n_pcs : 0;
	const uint32_t *before = last ? b->stacks + last->first_pc + n_last : NULL;
	uint32_t *to = b->stacks + b->n_stacks + n;
	const uint64_t *pcs = c->pcs + n, *known = b->pcs.pcs;

	for (size_t i = 1; i <= n; i++) {
		if (i <= n_last && known[*(before - i)] == *(pcs - i)) {
			*(to - i) = *(before - i);
		} else {
			int r = pcset_number(&b->pcs, *(pcs - i), to - i);

			if (r)
				return r;
			known = b->pcs.pcs;
		}
	}
	b->n_stacks += n;
	return 0;
}

/* Reads a record that was in the middle of a change. A record that never adds up counts as empty
 * for now. */
static int read_counters_again(struct buckets *b, struct memory *m, struct bucket *bucket)
{
	uint64_t words[COUNTERS_WORDS_MAX];

	for (int i = 0; i < BUCKETS_TRIES; i++) {
		int r = memory_read(m, counters_addr(bucket), words, counters_bytes(b->layout));

		if (r)
			return buckets_outcome(r);
		if (counters_take(b->layout, words, true, true, bucket) == COUNTERS_OK)
			return 0;
		b->n_torn++;
	}
	return 0;
}

static int keep(struct buckets *b, struct walk *walk)
{
	const struct candidate *c = &walk->c;
	uint64_t room[COUNTERS_WORDS_MAX];
	const void *words;
	struct bucket *bucket;
	int r = grow(b, c->header.nstk);

	if (!r)
		r = buckets_outcome(memory_windows_view(&walk->windows, candidate_end(c),
							counters_bytes(b->layout), room, &words));
	if (r)
		return r;
	bucket = &b->items[b->n];
	*bucket = (struct bucket){
		.addr = c->addr,
		.size = c->header.size,
		.first_pc = (uint32_t)b->n_stacks,
		.n_pcs = (uint32_t)c->header.nstk,
	};
	r = keep_stack(b, c);
	if (r)
		return r;
	b->n++;
	if (counters_take(b->layout, words, true, true, bucket) == COUNTERS_OK)
		return 0;
	b->n_torn++;
	return read_counters_again(b, walk->windows.memory, bucket);
}

static uint64_t cost(const struct memory *m)
{
	return m->n_bytes + m->n_calls * BUCKETS_CALL_BYTES;
}

static int walk_one(struct buckets *b, struct walk *walk)
{
	int r = read_candidate(b->kind, &walk->windows, walk->addr, &walk->c);

	/* Records do not overlap. An overlap means that the counters are shorter than assumed. */
	if (!r && walk->c.addr < walk->previous &&
	    candidate_end(&walk->c) + counters_bytes(b->layout) > walk->previous)
		r = BUCKETS_UNKNOWN_LAYOUT;
	if (!r && cost(walk->windows.memory) > walk->max_cost)
		r = BUCKETS_TOO_LARGE;
	if (!r)
		r = keep(b, walk);
	if (r)
		return r;
	walk->previous = walk->addr;
	walk->addr = walk->c.header.allnext;
	if (walk->addr == walk->mark)
		return BUCKETS_MALFORMED; /* a cycle */
	if (++walk->since_mark == walk->until_mark) {
		walk->mark = walk->addr;
		walk->since_mark = 0;
		walk->until_mark *= 2;
	}
	return 0;
}

/* Walk to the first known record, but at least one record. */
static int walk_on(struct buckets *b, struct walk *walk, size_t *budget)
{
	const struct memory *m = walk->windows.memory;
	uint64_t begin = cost(m), spent = 0;
	int r = 0;

	do {
		if (!walk->addr || walk->addr == b->head)
			break;
		r = walk_one(b, walk);
		spent = cost(m) - begin;
	} while (!r && spent < *budget);
	*budget -= spent < *budget ? (size_t)spent : *budget;
	if (r || walk->addr == b->head)
		return r;
	return walk->addr ? BUCKETS_UNFINISHED
			  : BUCKETS_MALFORMED; /* the known records have left the list */
}

static int walk_begin(struct buckets *b, struct memory *m, uint64_t head, unsigned int go_minor)
{
	struct walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return -ENOMEM;
	b->walk = walk;
	memory_windows_init(&walk->windows, m);
	walk->head = walk->addr = walk->mark = head;
	walk->until_mark = 1;
	walk->n = b->n;
	walk->n_stacks = b->n_stacks;
	walk->max_cost = cost(m) + (uint64_t)b->max_bytes * BUCKETS_READ_FACTOR;
	if (b->layout != BUCKETS_LAYOUT_UNKNOWN)
		return 0;
	return find_layout(b, &walk->windows, &walk->c, head, go_minor);
}

int buckets_update(struct buckets *b, struct memory *m, uint64_t head, unsigned int go_minor,
		   size_t *budget)
{
	int r = 0;

	if (!b->walk && head == b->head)
		return 0;
	if (!b->walk)
		r = walk_begin(b, m, head, go_minor);
	if (!r)
		r = walk_on(b, b->walk, budget);
	if (r != BUCKETS_UNFINISHED && b->walk) {
		if (r == 0) {
			b->head = b->walk->head;
		} else {
			b->n = b->walk->n;
			b->n_stacks = b->walk->n_stacks;
		}
		walk_free(b->walk);
		b->walk = NULL;
	}
	return r;
}
