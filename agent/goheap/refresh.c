// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of known records, read again.
 *
 * The counters are 64 or 128 bytes of the 300 of each record. For each range of a call the kernel
 * finds and pins a page, at a measured cost of 450 ns; the copy of a whole page costs 600 ns. So
 * ranges are joined across gaps. For this, records are visited in the order of
 * their addresses: in the order of the list, every record of a program with many processors would
 * be a range of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "goheap/counters.h"
#include "procmap/memory.h"

/* Attempts to read a changing record; the change takes some nanoseconds. */
#define REFRESH_TRIES	    3
/* Records that are read again after one call of buckets_refresh(). Reached: the others keep
 * their earlier counters and are counted as torn. */
#define REFRESH_AGAIN_MAX   1024
/* Largest gap within a range. Less than a page, so the gap cannot contain a hole. */
#define REFRESH_GAP_BYTES   1024u
/* Bytes of a call: the data stays in a second-level cache until processed. */
#define REFRESH_BATCH_BYTES (512u << 10)
/* Ascending runs in the list of records that are sorted as runs: chunks of 256 KiB of a table of
 * 100 MB. Reached: the records are sorted individually. */
#define RUNS_MAX	    512
#define REFRESH_SKEW_WORDS  (MEMORY_SKEW_BYTES / sizeof(uint64_t))

/* A call: ranges with the counters of neighbouring records. */
struct batch {
	struct memory_range ranges[MEMORY_RANGES_MAX];
	size_t first[MEMORY_RANGES_MAX + 1]; /* position of each range, and the end of the last */
	size_t n;
	size_t n_bytes;
	uint32_t again[REFRESH_AGAIN_MAX];
	size_t n_again;
	uint64_t words[REFRESH_BATCH_BYTES / sizeof(uint64_t) +
		       MEMORY_RANGES_MAX * REFRESH_SKEW_WORDS];
};

/* ---------------------------------------------------------------- order */

static int by_addr(const void *a, const void *b, void *ctx)
{
	const struct bucket *items = ctx;
	uint64_t left = items[*(const uint32_t *)a].addr, right = items[*(const uint32_t *)b].addr;

	return left < right ? -1 : left > right;
}

/* Ascending neighbours in a list. */
struct run {
	uint64_t addr; /* of the first */
	uint32_t begin;
	uint32_t n;
};

static int by_run(const void *a, const void *b)
{
	const struct run *left = a, *right = b;

	return left->addr < right->addr ? -1 : left->addr > right->addr;
}

/* Returns the number of runs; 0 if there are more than RUNS_MAX. */
static size_t find_runs(const struct bucket *items, const uint32_t *list, size_t n,
			struct run ret[RUNS_MAX])
{
	size_t n_runs = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t addr = items[list[i]].addr;

		if (i && addr > items[list[i - 1]].addr) {
			ret[n_runs - 1].n++;
			continue;
		}
		if (n_runs == RUNS_MAX)
			return 0;
		ret[n_runs++] = (struct run){addr, (uint32_t)i, 1};
	}
	return n_runs;
}

static bool ascends(const struct bucket *items, const uint32_t *list, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (items[list[i]].addr < items[list[i - 1]].addr)
			return false;
	return true;
}

/* Concatenate the sorted runs. False if the result does not ascend, or if there were too many
 * runs. */
static bool order_runs(const struct bucket *items, const uint32_t *list, size_t n, uint32_t *ret)
{
	struct run runs[RUNS_MAX];
	size_t n_runs = find_runs(items, list, n, runs), at = 0;

	qsort(runs, n_runs, sizeof(*runs), by_run);
	for (size_t i = 0; i < n_runs; i++) {
		memcpy(ret + at, list + runs[i].begin, runs[i].n * sizeof(*ret));
		at += runs[i].n;
	}
	return n_runs && ascends(items, ret, n);
}

/* Sort the records from @first up to @n by address. Within a chunk of the runtime, later list
 * entries have lower addresses; a program with few processors fills its chunks in sequence. */
static int order_new(const struct buckets *b, size_t first, size_t n, uint32_t *ret)
{
	_cleanup_(freep) uint32_t *list = malloc((n - first) * sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n - first; i++)
		list[i] = (uint32_t)(n - 1 - i);
	if (order_runs(b->items, list, n - first, ret))
		return 0;
	memcpy(ret, list, (n - first) * sizeof(*ret));
	qsort_r(ret, n - first, sizeof(*ret), by_addr, b->items);
	return 0;
}

/* Merge from the end: @to begins with the sorted old records and has room for @n_new more. */
static void merge(const struct bucket *items, uint32_t *to, size_t n_old, const uint32_t *new,
		  size_t n_new)
{
	while (n_new) {
		if (n_old && items[to[n_old - 1]].addr > items[new[n_new - 1]].addr) {
			to[n_old + n_new - 1] = to[n_old - 1];
			n_old--;
		} else {
			to[n_old + n_new - 1] = new[n_new - 1];
			n_new--;
		}
	}
}

static int order(struct buckets *b, size_t n)
{
	_cleanup_(freep) uint32_t *new = NULL;
	size_t n_new = n - b->n_ordered;
	int r;

	if (n <= b->n_ordered)
		return 0;
	new = malloc(n_new * sizeof(*new));
	r = vec_grow(&b->order, &b->order_cap, n, sizeof(*b->order), UINT32_MAX);
	if (r || !new)
		return -ENOMEM;
	r = order_new(b, b->n_ordered, n, new);
	if (r)
		return r;
	merge(b->items, b->order, b->n_ordered, new, n_new);
	b->n_ordered = n;
	return 0;
}

/* ---------------------------------------------------------------- batches */

/* Extend the last range to include @addr; false if the gap is too large or the batch is full. */
static bool extend(struct batch *batch, uint64_t addr, size_t n, size_t max_bytes)
{
	struct memory_range *last = &batch->ranges[batch->n - 1];
	uint64_t gap = addr - (last->addr + last->n);

	if (addr < last->addr + last->n || gap > REFRESH_GAP_BYTES ||
	    batch->n_bytes + gap + n > max_bytes)
		return false;
	last->n += gap + n;
	batch->n_bytes += gap + n;
	return true;
}

/* Assign buffers to the ranges: see memory_windows.c about the position in the page. */
static void place(struct batch *batch)
{
	uint64_t *to = batch->words;

	for (size_t i = 0; i < batch->n; i++) {
		size_t ahead = ((uintptr_t)to - batch->ranges[i].addr) % MEMORY_PAGE_BYTES;

		if (ahead < MEMORY_SKEW_BYTES && batch->ranges[i].n >= MEMORY_PAGE_BYTES)
			to += (MEMORY_SKEW_BYTES - ahead) / sizeof(*to);
		batch->ranges[i].to = to;
		to += batch->ranges[i].n / sizeof(*to);
	}
}

/* Fill a batch with records of @list from @first on, at least one. Returns the next position. */
static size_t plan(const struct buckets *b, struct batch *batch, const uint32_t *list, size_t first,
		   size_t end, size_t max_bytes)
{
	size_t n = counters_bytes(b->layout), i = first;

	if (max_bytes > REFRESH_BATCH_BYTES)
		max_bytes = REFRESH_BATCH_BYTES;
	batch->n = batch->n_bytes = 0;
	for (; i < end; i++) {
		uint64_t addr = counters_addr(&b->items[list[i]]);

		if (batch->n && extend(batch, addr, n, max_bytes))
			continue;
		if (batch->n == MEMORY_RANGES_MAX || (batch->n && batch->n_bytes + n > max_bytes))
			break;
		batch->first[batch->n] = i;
		batch->ranges[batch->n++] = (struct memory_range){.addr = addr, .n = n};
		batch->n_bytes += n;
	}
	batch->first[batch->n] = i;
	place(batch);
	return i;
}

static void take(struct buckets *b, struct batch *batch, size_t k, const uint32_t *list,
		 bool insist)
{
	const struct memory_range *range = &batch->ranges[k];
	const uint64_t *words = range->to;

	for (size_t i = batch->first[k]; i < batch->first[k + 1]; i++) {
		struct bucket *bucket = &b->items[list[i]];
		size_t at = (size_t)(counters_addr(bucket) - range->addr) / sizeof(*words);

		if (counters_take(b->layout, words + at, false, insist, bucket) == COUNTERS_OK)
			continue;
		b->n_torn++;
		if (batch->n_again < REFRESH_AGAIN_MAX)
			batch->again[batch->n_again++] = list[i];
	}
}

/* A single call. Adds records to read again to the batch. */
static int read_batch(struct buckets *b, struct memory *m, struct batch *batch,
		      const uint32_t *list, bool insist)
{
	int r = buckets_outcome(memory_read_ranges(m, batch->ranges, batch->n));

	for (size_t k = 0; !r && k < batch->n; k++)
		take(b, batch, k, list, insist);
	return r;
}

static int read_again(struct buckets *b, struct memory *m, struct batch *batch)
{
	for (int try = 1; try <= REFRESH_TRIES && batch->n_again; try++) {
		uint32_t list[REFRESH_AGAIN_MAX];
		size_t n = batch->n_again, i = 0;

		memcpy(list, batch->again, n * sizeof(*list));
		batch->n_again = 0;
		while (i < n) {
			int r;

			i = plan(b, batch, list, i, n, SIZE_MAX);
			r = read_batch(b, m, batch, list, try == REFRESH_TRIES);
			if (r)
				return r;
		}
	}
	batch->n_again = 0;
	return 0;
}

static int refresh(struct buckets *b, struct memory *m, struct batch *batch, size_t n,
		   size_t *budget)
{
	int r;

	do {
		b->done = plan(b, batch, b->order, b->done, n, *budget);
		r = read_batch(b, m, batch, b->order, false);
		*budget -= *budget < batch->n_bytes ? *budget : batch->n_bytes;
	} while (!r && b->done < n && *budget);
	return r ? r : read_again(b, m, batch);
}

int buckets_refresh(struct buckets *b, struct memory *m, size_t n, size_t *budget)
{
	_cleanup_(freep) struct batch *batch = NULL;
	int r;

	if (n == 0)
		return 0;
	r = order(b, n);
	if (r)
		return r;
	batch = malloc(sizeof(*batch));
	if (!batch)
		return -ENOMEM;
	prefault(batch, sizeof(*batch));
	batch->n_again = 0;
	r = refresh(b, m, batch, b->n_ordered, budget);
	if (!r && b->done < b->n_ordered)
		return BUCKETS_UNFINISHED;
	b->done = 0;
	return r;
}
