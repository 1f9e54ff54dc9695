// SPDX-License-Identifier: Apache-2.0
/*
 * The allocator counts in two places:
 *
 *   gcController.totalAlloc, totalFree  bytes; two words; since Go 1.19
 *   memstats.heapStats                  by size class: three deltas with a meaningful sum
 *
 * A delta (heapStatsDelta) has some words about memory from the system, and then, from @first on,
 *
 *   tinyAllocCount, largeAlloc (bytes), largeAllocCount, smallAllocCount[68],
 *   largeFree (bytes), largeFreeCount, smallFreeCount[68]
 *
 * gofile/goversion.c has @first and the number of words of a delta. The deltas are merged round
 * robin, and each may wrap around. The data determines the layout: only the right layout gives the
 * bytes of totalAlloc. Before 1.19 there is nothing to compare with, and only one layout.
 *
 * The size classes are the same since Go 1.16; the sums would reveal a change.
 *
 * Sources: the Go project's src/runtime/mstats.go, mgcpacer.go, sizeclasses.go.
 */
#include "goheap/gototals.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "gofile/goversion.h"
#include "goheap/memory.h"

#define N_CLASSES   68
#define N_DELTAS    3
/* Bytes by which the two counts may differ during simultaneous additions: the amount that all
 * processors may hold, and a share of the total. */
#define SLACK_BYTES (4u << 20)
#define SLACK_SHARE 256

static const uint16_t class_bytes[N_CLASSES] = {
	0,     8,     16,    24,    32,	   48,	  64,	 80,	96,    112,   128,   144,
	160,   176,   192,   208,   224,   240,	  256,	 288,	320,   352,   384,   416,
	448,   480,   512,   576,   640,   704,	  768,	 896,	1024,  1152,  1280,  1408,
	1536,  1792,  2048,  2304,  2688,  3072,  3200,	 3456,	4096,  4864,  5376,  6144,
	6528,  6784,  6912,  8192,  9472,  9728,  10240, 10880, 12288, 13568, 14336, 16384,
	18432, 19072, 20480, 21760, 24576, 27264, 28672, 32768,
};

static void add_classes(const uint64_t *counts, uint64_t *bytes, uint64_t *objects)
{
	for (size_t i = 0; i < N_CLASSES; i++) {
		*bytes += counts[i] * class_bytes[i];
		*objects += counts[i];
	}
}

/* Every addition may wrap around. */
static void add_delta(const uint64_t *words, struct gototals *sums)
{
	const uint64_t *frees = words + 3 + N_CLASSES;

	sums->alloc_objects += words[0] + words[2];
	sums->alloc_bytes += words[1];
	add_classes(words + 3, &sums->alloc_bytes, &sums->alloc_objects);
	sums->free_objects +=
		words[0] + frees[1]; /* frees of tiny objects are unknown; Go does the same */
	sums->free_bytes += frees[0];
	add_classes(frees + 2, &sums->free_bytes, &sums->free_objects);
}

static struct gototals sum_up(const uint64_t *words, const struct goversion_stats *layout)
{
	struct gototals sums = {0};

	for (size_t i = 0; i < N_DELTAS; i++)
		add_delta(words + i * (size_t)layout->words + layout->first, &sums);
	return sums;
}

static bool near(uint64_t a, uint64_t b)
{
	uint64_t difference = a > b ? a - b : b - a;

	return difference <= SLACK_BYTES + b / SLACK_SHARE;
}

/* Whether the numbers are plausible. */
static bool is_sane(const struct gototals *t)
{
	return t->free_bytes <= t->alloc_bytes && t->free_objects <= t->alloc_objects &&
	       t->alloc_objects <= t->alloc_bytes + t->alloc_objects / 2 + SLACK_BYTES &&
	       t->alloc_bytes < UINT64_MAX / 2;
}

int gototals_outcome(int r)
{
	switch (r) {
	case MEMORY_GONE:
		return GOTOTALS_GONE;
	case MEMORY_DENIED:
		return GOTOTALS_DENIED;
	case MEMORY_UNMAPPED:
		return GOTOTALS_ODD;
	default:
		return r;
	}
}

/* Whether the counts in this layout match the totals. */
static bool fits(const uint64_t *words, const uint64_t exact[2],
		 const struct goversion_stats *layout, struct gototals *ret)
{
	*ret = sum_up(words, layout);
	return is_sane(ret) && near(ret->alloc_bytes, exact[0]) && near(ret->free_bytes, exact[1]);
}

static bool is_equal(const struct gototals *sums, const uint64_t exact[2])
{
	return sums->alloc_bytes == exact[0] && sums->free_bytes == exact[1];
}

static bool same_layout(const struct goversion *a, const struct goversion *b)
{
	return a && b && a->stats.words == b->stats.words && a->stats.first == b->stats.first;
}

/* Find the layout whose bytes match totalAlloc and totalFree. After few allocations several
 * layouts may be near. Then an exact match decides, or in a busy program the version. */
static const struct goversion_stats *find_layout(const uint64_t *words, const uint64_t exact[2],
						 const struct goversion *version)
{
	const struct goversion_stats *near = NULL, *equal = NULL, *named = NULL;
	size_t n_near = 0, n_equal = 0;

	for (const struct goversion *v = goversion_newest(); v; v = goversion_older(v)) {
		struct gototals sums;

		if (!v->stats.words || same_layout(v, goversion_older(v)) ||
		    !fits(words, exact, &v->stats, &sums))
			continue;
		near = &v->stats;
		n_near++;
		if (is_equal(&sums, exact)) {
			equal = &v->stats;
			n_equal++;
		}
		if (same_layout(v, version))
			named = &v->stats;
	}
	if (n_equal == 1)
		return equal;
	return n_near == 1 ? near : named;
}

static int choose(const struct goruntime_file *file, const uint64_t *words, const uint64_t exact[2],
		  const struct goversion_stats **layout, struct gototals *ret)
{
	const struct goversion_stats *found =
		*layout ? *layout
			: find_layout(words, exact, goversion_find(goruntime_minor(file)));
	struct gototals sums;

	if (!found || !fits(words, exact, found, &sums))
		return GOTOTALS_ODD;
	sums.alloc_bytes = exact[0];
	sums.free_bytes = exact[1];
	*layout = found;
	*ret = sums;
	return GOTOTALS_OK;
}

/* The only layout of the releases without totalAlloc. */
static const struct goversion_stats *layout_without_total(void)
{
	const struct goversion *v = goversion_newest();

	while (v && (v->pacer.total_alloc || !v->stats.words))
		v = goversion_older(v);
	return v ? &v->stats : NULL;
}

int gototals_read(const struct goruntime *rt, struct memory *m,
		  const struct goversion_stats **layout, struct gototals *ret)
{
	const struct goversion_stats *only = layout_without_total();
	uint64_t words[N_DELTAS * GOVERSION_STATS_WORDS], exact[2] = {0};
	const struct goruntime_file *f = &rt->file;
	struct memory_range ranges[] = {
		{f->heap_stats + rt->bias, words, sizeof(words)},
		{f->total_alloc + rt->bias, exact, sizeof(exact)},
	};
	struct gototals sums;
	int r;

	if (!f->heap_stats || !only)
		return GOTOTALS_ABSENT;
	r = gototals_outcome(memory_read_ranges(m, ranges, f->total_alloc ? 2 : 1));
	if (r)
		return r;
	if (f->total_alloc)
		return choose(f, words, exact, layout, ret);
	sums = sum_up(words, only);
	if (!is_sane(&sums))
		return GOTOTALS_ODD;
	*layout = only;
	*ret = sums;
	return GOTOTALS_OK;
}
