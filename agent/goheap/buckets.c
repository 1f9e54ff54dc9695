// SPDX-License-Identifier: Apache-2.0
/*
 * The heap profiler's records, as Go 1.16 to 1.27 keep them on 64-bit machines (runtime/mprof.go).
 *
 *	 0  next      link of a hash chain, of no use here
 *	 8  allnext   the next older record
 *	16  typ       1: memory, 2: block, 3: mutex
 *	24  hash      of the stack and the size
 *	32  size      of an object; 0 in the other lists
 *	40  nstk      number of PCs
 *	48  PCs       leaf first
 *	 +  counters  four slots: active, future[3]; in the other lists a count and cycles
 *
 * A slot is {allocs, frees, alloc_bytes, free_bytes} up to Go 1.26 and {allocs, frees} in 1.27. The
 * bytes are the counts times the size, so the wide form proves itself, and also shows when a slot
 * was read while it was being written. The layout is taken from that and not from the version.
 *
 * Records are allocated one after the other in chunks that are never freed, put in front of the
 * list, and never changed again except for their counters. So they are read once, through windows,
 * and kept by address. Later reads walk from the head to the first known record and then fetch the
 * counters alone, of some thousand records a system call.
 *
 * Everything is foreign. Each record must have the right type, a sane number of PCs, and the hash
 * that the runtime computed; the list may be as long as the ceiling on its bytes allows and may not
 * come back to itself (Brent's algorithm, which needs no table of what was seen); and what is read
 * may not be out of proportion to what is kept, since a list that jumps makes every window a new
 * one.
 */
#include "goheap/buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "goheap/memory.h"

/* GODEBUG=profstackdepth may be 1024, and Go 1.26 adds two. One more is BUCKETS_MALFORMED. */
#define BUCKET_PCS_MAX	    1026
/* An object of a terabyte is not one: BUCKETS_MALFORMED. */
#define BUCKET_SIZE_MAX	    (1ull << 40)
/* Newest records that vote on the layout; each has been counted at least once. */
#define BUCKETS_VOTERS	    64
/* Bytes read may be this many times the ceiling on bytes kept; windows cost a fifth on top in what
 * real programs have. Beyond: BUCKETS_TOO_LARGE. */
#define BUCKETS_READ_FACTOR 4
/* A changing record is read again so many times; the change takes some nanoseconds. */
#define BUCKETS_TRIES	    3
/* Records that are read again in one refresh; the rest keep what they had, counted as torn. */
#define BUCKETS_REREADS_MAX 1024

/* Counters that are at most so far apart are read in one range: to the kernel each range is a page
 * to find and hold, which costs more than copying this. Less than a page, so that there can be no
 * hole in between. */
#define BUCKETS_GAP_BYTES   1024u
/* Bytes of one call of a refresh. */
#define BUCKETS_BATCH_BYTES (512u << 10)

#define SLOT_WORDS_WIDE	  4
#define SLOT_WORDS_NARROW 2 /* and in the other lists, which have one slot */
#define RECORD_WORDS_MAX  (BUCKETS_SLOTS * SLOT_WORDS_WIDE)

struct header {
	uint64_t next;
	uint64_t allnext;
	uint64_t typ;
	uint64_t hash;
	uint64_t size;
	uint64_t nstk;
};
_Static_assert(sizeof(struct header) == 48, "as it lies in memory");

/* One record while it is looked at. */
struct candidate {
	uint64_t addr;
	struct header header;
	uint64_t pcs[BUCKET_PCS_MAX];
};

const char *buckets_outcome_name(int outcome)
{
	static const char *const names[BUCKETS_OUTCOME_MAX] = {
		[BUCKETS_OK] = "ok",
		[BUCKETS_GONE] = "gone",
		[BUCKETS_DENIED] = "denied",
		[BUCKETS_MALFORMED] = "malformed",
		[BUCKETS_UNKNOWN_LAYOUT] = "unknown_layout",
		[BUCKETS_TOO_LARGE] = "too_large",
	};

	return outcome >= 0 && outcome < BUCKETS_OUTCOME_MAX ? names[outcome] : "error";
}

static int buckets_outcome(int r)
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

void buckets_deinit(struct buckets *b)
{
	free(b->items);
	free(b->pcs);
	buckets_init(b, b->kind, b->max_bytes);
}

void buckets_reset(struct buckets *b)
{
	buckets_deinit(b);
}

size_t buckets_bytes(const struct buckets *b)
{
	return b->cap * sizeof(*b->items) + b->pcs_cap * sizeof(*b->pcs);
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

/* ---------------------------------------------------------------- counters */

static size_t slot_words(enum buckets_layout layout)
{
	return layout == BUCKETS_LAYOUT_WIDE ? SLOT_WORDS_WIDE : SLOT_WORDS_NARROW;
}

static size_t n_slots(enum buckets_layout layout)
{
	return layout == BUCKETS_LAYOUT_CONTENTION ? 1 : BUCKETS_SLOTS;
}

static size_t record_bytes(enum buckets_layout layout)
{
	return n_slots(layout) * slot_words(layout) * sizeof(uint64_t);
}

static uint64_t counters_addr(const struct bucket *bucket)
{
	/* cannot overflow: it was read from there */
	return bucket->addr + sizeof(struct header) + bucket->n_pcs * sizeof(uint64_t);
}

static uint64_t add_up_to_max(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t bucket_allocs(const struct bucket *b)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < BUCKETS_SLOTS; i++)
		sum = add_up_to_max(sum, b->allocs[i]);
	return sum;
}

/* Whether the wide form's four slots agree with themselves. */
static bool adds_up(const uint64_t words[RECORD_WORDS_MAX], uint64_t size)
{
	for (size_t i = 0; i < BUCKETS_SLOTS; i++) {
		const uint64_t *slot = words + i * SLOT_WORDS_WIDE;

		if (slot[2] != slot[0] * size || slot[3] != slot[1] * size)
			return false;
	}
	return true;
}

/* Take the counters over if they can be true: false if they were being changed when they were read.
 * @bucket is unchanged then. A count that is a double grows with the bits that it is made of, too.
 */
static bool take_counters(enum buckets_layout layout, const uint64_t words[RECORD_WORDS_MAX],
			  struct bucket *bucket)
{
	struct bucket new = *bucket;

	if (layout == BUCKETS_LAYOUT_WIDE && !adds_up(words, bucket->size))
		return false;
	for (size_t i = 0; i < n_slots(layout); i++) {
		new.allocs[i] = words[i * slot_words(layout)];
		new.frees[i] = words[i * slot_words(layout) + 1];
	}
	if (bucket_allocs(&new) < bucket_allocs(bucket))
		return false;
	*bucket = new;
	return true;
}

/* Read one record's counters until they are good. After that it is as it is. */
static int read_counters_again(struct buckets *b, struct memory *m, struct bucket *bucket)
{
	uint64_t words[RECORD_WORDS_MAX];

	for (int i = 0; i < BUCKETS_TRIES; i++) {
		int r = memory_read(m, counters_addr(bucket), words, record_bytes(b->layout));

		if (r)
			return buckets_outcome(r);
		if (take_counters(b->layout, words, bucket))
			return 0;
		b->n_torn++;
	}
	return 0;
}

/* What one call of a refresh reads: ranges with the counters of neighbours in the list. */
struct batch {
	struct memory_range ranges[MEMORY_RANGES_MAX];
	size_t first[MEMORY_RANGES_MAX + 1]; /* record of each range, and the one after the last */
	size_t n;
	size_t n_bytes;
	size_t n_rereads;
	uint8_t bytes[BUCKETS_BATCH_BYTES];
};

/* The counters of the record at @addr and of the one before it in the list, with what is between,
 * as one range: false if they are too far apart. */
static bool extend_range(struct batch *batch, uint64_t addr, size_t n)
{
	struct memory_range *last = &batch->ranges[batch->n - 1];
	uint64_t more = last->addr - addr;

	if (addr >= last->addr || more < n || more - n > BUCKETS_GAP_BYTES ||
	    more > BUCKETS_BATCH_BYTES - batch->n_bytes)
		return false;
	last->addr = addr;
	last->n += more;
	batch->n_bytes += more;
	return true;
}

/* Fill a batch with the records from @first on, below @end. Returns the first that is left. */
static size_t plan_batch(const struct buckets *b, struct batch *batch, size_t first, size_t end)
{
	size_t n = record_bytes(b->layout), i = first;
	uint8_t *to = batch->bytes;

	batch->n = batch->n_bytes = 0;
	for (; i < end; i++) {
		uint64_t addr = counters_addr(&b->items[i]);

		if (batch->n && extend_range(batch, addr, n))
			continue;
		if (batch->n == MEMORY_RANGES_MAX || batch->n_bytes + n > BUCKETS_BATCH_BYTES)
			break;
		batch->first[batch->n] = i;
		batch->ranges[batch->n++] = (struct memory_range){.addr = addr, .n = n};
		batch->n_bytes += n;
	}
	batch->first[batch->n] = i;
	for (size_t k = 0; k < batch->n; k++) {
		batch->ranges[k].to = to;
		to += batch->ranges[k].n;
	}
	return i;
}

static int take_range(struct buckets *b, struct memory *m, struct batch *batch, size_t k)
{
	const struct memory_range *range = &batch->ranges[k];
	uint64_t words[RECORD_WORDS_MAX];

	for (size_t i = batch->first[k]; i < batch->first[k + 1]; i++) {
		struct bucket *bucket = &b->items[i];
		int r = 0;

		memcpy(words, (uint8_t *)range->to + (counters_addr(bucket) - range->addr),
		       record_bytes(b->layout));
		if (take_counters(b->layout, words, bucket))
			continue;
		b->n_torn++;
		if (batch->n_rereads++ < BUCKETS_REREADS_MAX)
			r = read_counters_again(b, m, bucket);
		if (r)
			return r;
	}
	return 0;
}

int buckets_refresh(struct buckets *b, struct memory *m, size_t n)
{
	_cleanup_(freep) struct batch *batch = NULL;
	int r = 0;

	if (n == 0)
		return 0;
	batch = malloc(sizeof(*batch));
	if (!batch)
		return -ENOMEM;
	batch->n_rereads = 0;
	for (size_t i = 0; !r && i < n;) {
		i = plan_batch(b, batch, i, n);
		r = buckets_outcome(memory_read_ranges(m, batch->ranges, batch->n));
		for (size_t k = 0; !r && k < batch->n; k++)
			r = take_range(b, m, batch, k);
	}
	return r;
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
			       ? h->size > 0 && h->size < BUCKET_SIZE_MAX && h->nstk > 0
			       : h->size == 0;

	return addr % 8 == 0 && h->next % 8 == 0 && h->allnext % 8 == 0 && h->typ == kind &&
	       is_sane && h->nstk <= BUCKET_PCS_MAX;
}

static int read_candidate_once(enum buckets_kind kind, struct memory_windows *w, uint64_t addr,
			       struct candidate *ret)
{
	int r = memory_windows_read(w, addr, &ret->header, sizeof(ret->header));

	if (!r && !header_is_sane(kind, addr, &ret->header))
		return BUCKETS_MALFORMED;
	if (!r)
		r = memory_windows_read(w, addr + sizeof(ret->header), ret->pcs,
					ret->header.nstk * sizeof(ret->pcs[0]));
	if (r)
		return buckets_outcome(r);
	if (bucket_hash(ret->pcs, ret->header.nstk, ret->header.size) != ret->header.hash)
		return BUCKETS_MALFORMED;
	ret->addr = addr;
	return 0;
}

/* Before Go 1.19 a record was put into the list by an ordinary store, so that another processor may
 * see it there before it sees its contents. What looks wrong is read once more. */
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

static bool any_nonzero(const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (words[i])
			return true;
	return false;
}

/* More freed than allocated cannot be. The other way round this proves nothing, but nonsense seldom
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

/* One record's opinion; one that has counted nothing has none. The narrow form may end where its
 * mapping does, so the wide one's bytes need not be there. */
static int vote(struct memory_windows *w, const struct candidate *c, struct votes *votes)
{
	uint64_t words[RECORD_WORDS_MAX] = {0};
	const size_t narrow = record_bytes(BUCKETS_LAYOUT_NARROW);
	int r = memory_windows_read(w, candidate_end(c), words, narrow);
	bool has_wide = false;

	if (!r) {
		r = memory_windows_read(w, candidate_end(c) + narrow, (uint8_t *)words + narrow,
					record_bytes(BUCKETS_LAYOUT_WIDE) - narrow);
		has_wide = r == 0;
		if (r == MEMORY_UNMAPPED)
			r = 0;
	}
	if (r)
		return buckets_outcome(r);
	if (!any_nonzero(words, array_size(words)))
		return 0;
	if (has_wide && adds_up(words, c->header.size))
		votes->wide++;
	else if (narrow_is_sane(words))
		votes->narrow++;
	else
		votes->neither++;
	return 0;
}

/* A few may be wrong: a wide record that was caught changing does not add up. */
static enum buckets_layout elect(const struct votes *votes, unsigned int go_minor)
{
	if (votes->wide > 4 * (votes->narrow + votes->neither))
		return BUCKETS_LAYOUT_WIDE;
	if (votes->narrow > 4 * (votes->wide + votes->neither))
		return BUCKETS_LAYOUT_NARROW;
	if (votes->wide || votes->narrow || votes->neither || !go_minor)
		return BUCKETS_LAYOUT_UNKNOWN;
	return go_minor < 27 ? BUCKETS_LAYOUT_WIDE : BUCKETS_LAYOUT_NARROW;
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

static int grow(struct buckets *b, size_t n_pcs)
{
	size_t items = (b->n + 1) * sizeof(*b->items);
	size_t pcs = (b->n_pcs + n_pcs) * sizeof(*b->pcs);
	int r;

	if (items + pcs > b->max_bytes)
		return BUCKETS_TOO_LARGE;
	r = vec_grow(&b->items, &b->cap, b->n + 1, sizeof(*b->items),
		     b->max_bytes / sizeof(*b->items));
	if (!r)
		r = vec_grow(&b->pcs, &b->pcs_cap, b->n_pcs + n_pcs, sizeof(*b->pcs),
			     b->max_bytes / sizeof(*b->pcs));
	return r > 0 ? BUCKETS_TOO_LARGE : r;
}

static int keep(struct buckets *b, struct memory_windows *w, const struct candidate *c)
{
	uint64_t words[RECORD_WORDS_MAX];
	struct bucket *bucket;
	size_t n = c->header.nstk;
	int r = grow(b, n);

	if (!r)
		r = buckets_outcome(
			memory_windows_read(w, candidate_end(c), words, record_bytes(b->layout)));
	if (r)
		return r;
	bucket = &b->items[b->n++];
	*bucket = (struct bucket){
		.addr = c->addr,
		.size = c->header.size,
		.first_pc = (uint32_t)b->n_pcs,
		.n_pcs = (uint32_t)n,
	};
	memcpy(b->pcs + b->n_pcs, c->pcs, n * sizeof(*b->pcs));
	b->n_pcs += n;
	if (take_counters(b->layout, words, bucket))
		return 0;
	b->n_torn++;
	return read_counters_again(b, w->memory, bucket);
}

/* Records do not overlap; if these two do, their counters are shorter than we think. */
static bool overlaps(const struct buckets *b, const struct candidate *older, uint64_t newer)
{
	return older->addr < newer && candidate_end(older) + record_bytes(b->layout) > newer;
}

/* From @head to the first record that is known. */
static int walk(struct buckets *b, struct memory_windows *w, struct candidate *c, uint64_t head)
{
	uint64_t max_read = w->memory->n_bytes + (uint64_t)b->max_bytes * BUCKETS_READ_FACTOR;
	uint64_t addr = head, previous = 0, mark = head;
	size_t since_mark = 0, until_mark = 1;

	while (addr && addr != b->head) {
		int r = read_candidate(b->kind, w, addr, c);

		if (!r && overlaps(b, c, previous))
			r = BUCKETS_UNKNOWN_LAYOUT;
		if (!r && w->memory->n_bytes > max_read)
			r = BUCKETS_TOO_LARGE;
		if (!r)
			r = keep(b, w, c);
		if (r)
			return r;
		previous = addr;
		addr = c->header.allnext;
		if (addr == mark)
			return BUCKETS_MALFORMED; /* a ring */
		if (++since_mark == until_mark) {
			mark = addr;
			since_mark = 0;
			until_mark *= 2;
		}
	}
	return addr == b->head ? 0 : BUCKETS_MALFORMED; /* the known ones have left the list */
}

static int update(struct buckets *b, struct memory_windows *w, struct candidate *c, uint64_t head,
		  unsigned int go_minor)
{
	size_t n = b->n, n_pcs = b->n_pcs;
	int r = 0;

	if (b->layout == BUCKETS_LAYOUT_UNKNOWN)
		r = find_layout(b, w, c, head, go_minor);
	if (!r)
		r = walk(b, w, c, head);
	if (r) {
		b->n = n;
		b->n_pcs = n_pcs;
		return r;
	}
	b->head = head;
	return 0;
}

int buckets_update(struct buckets *b, struct memory *m, uint64_t head, unsigned int go_minor)
{
	_cleanup_(memory_windows_deinit) struct memory_windows w = {0};
	_cleanup_(freep) struct candidate *c = NULL;
	int r;

	if (head == b->head)
		return 0;
	c = malloc(sizeof(*c));
	r = memory_windows_init(&w, m);
	if (!c || r)
		return -ENOMEM;
	return update(b, &w, c, head, go_minor);
}
