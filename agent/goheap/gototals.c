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
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gofile/goversion.h"
#include "goheap/goruntime.h"
#include "procmap/memory.h"

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

static int gototals_outcome(int r)
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
		if (sums.alloc_bytes == exact[0] && sums.free_bytes == exact[1]) {
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

/* ---------------------------------------------------------------- goroutines */

/*
 * Go keeps the descriptions of goroutines forever, and lists the descriptions of ended goroutines
 * as free: a list for each processor and two shared lists. All others live, apart from the
 * runtime's own:
 *
 *   allglen - sched.gFree's - each allp[i].gFree's - sched.ngsys
 *
 * (gcount() in src/runtime/proc.go.) The code reveals the addresses of the variables (govars.h),
 * but not the offset of gFree in a processor's struct. The offset has changed with almost every
 * release, but in all releases the following fields come after gFree:
 *
 *   gFree       head, number                       16 bytes
 *   sudogcache  slice of sudogbuf: pointer, length, 128
 *   sudogbuf    the array
 *
 * So the search looks for a word that points to itself plus a fixed distance, with 128 two words
 * later.
 *
 * Sources: the Go project's src/runtime/runtime2.go and proc.go.
 */

/* Bytes searched of a processor's struct; gFree was at 2,456 to 3,584. */
#define SEARCH_BYTES	 6144
#define SEARCH_WORDS	 (SEARCH_BYTES / 8)
#define SUDOG_CACHE	 16 /* from gFree */
#define SUDOG_BUF	 (SUDOG_CACHE + 24)
#define SUDOG_BUF_LENGTH 128
/* Free goroutines of a processor; above this number a processor passes some to the shared
 * lists. Reached: the goroutines are not counted this time. */
#define FREE_MAX	 64u
/* Descriptions of goroutines, of 400 bytes each; more are implausible. Reached: the goroutines
 * are not counted this time. */
#define ALL_MAX		 (1ull << 32)

/* The head of a list: the number is the lower half of the second word. */
struct free_list {
	uint64_t head;
	uint32_t n;
	uint32_t unused;
};

struct counters {
	uint64_t all;
	uint32_t system;
	uint32_t free[2];
	uint64_t allp[2]; /* address and length */
};

static int find_free(struct memory *m, uint64_t proc, uint64_t *ret)
{
	uint64_t words[SEARCH_WORDS];
	int r = gototals_outcome(memory_read(m, proc, words, sizeof(words)));

	if (r)
		return r;
	for (size_t i = SUDOG_CACHE / 8; i + 2 < SEARCH_WORDS; i++) {
		uint64_t at = 8 * i - SUDOG_CACHE;

		if (words[i] != proc + at + SUDOG_BUF || words[i + 1] > SUDOG_BUF_LENGTH ||
		    words[i + 2] != SUDOG_BUF_LENGTH)
			continue;
		*ret = at;
		return 0;
	}
	return GOTOTALS_ABSENT;
}

/* Append ranges for the counters at fixed addresses to @ranges, from @n on. */
static size_t add_counters(const struct goruntime *rt, struct counters *c,
			   struct memory_range *ranges, size_t n)
{
	const struct govars_sched *at = &rt->file.sched;
	uint64_t free = at->free + rt->bias;

	ranges[n++] = (struct memory_range){at->allglen + rt->bias, &c->all, 8};
	ranges[n++] = (struct memory_range){at->system + rt->bias, &c->system, 4};
	/* behind the lock: two heads, or two heads with a number each */
	ranges[n++] = (struct memory_range){free + (at->split ? 16 : 24), &c->free[0], 4};
	if (at->split)
		ranges[n++] = (struct memory_range){free + 32, &c->free[1], 4};
	ranges[n++] = (struct memory_range){at->allp + rt->bias, c->allp, 16};
	return n;
}

/* Read all counters in a single call, to minimise changes during the read. */
static int count(const struct goruntime *rt, struct memory *m, const struct gosched *s,
		 const uint64_t *procs, uint64_t n_procs, uint64_t *ret)
{
	struct memory_range ranges[GOSCHED_PROCS_MAX + 5];
	struct free_list lists[GOSCHED_PROCS_MAX];
	struct counters c = {0};
	uint64_t gone;
	size_t n = 0;
	int r;

	for (; n < n_procs; n++)
		ranges[n] =
			(struct memory_range){procs[n] + s->free_at, &lists[n], sizeof(lists[n])};
	n = add_counters(rt, &c, ranges, n);
	r = gototals_outcome(memory_read_ranges(m, ranges, n));
	if (r)
		return r;
	gone = (uint64_t)c.system + c.free[0] + c.free[1];
	for (size_t i = 0; i < n_procs; i++) {
		if (lists[i].n > FREE_MAX || !lists[i].n != !lists[i].head)
			return GOTOTALS_ODD;
		gone += lists[i].n;
	}
	if (c.all > ALL_MAX || gone > c.all || c.allp[1] != n_procs)
		return GOTOTALS_ODD;
	*ret = c.all > gone ? c.all - gone : 1;
	return 0;
}

int gosched_read(const struct goruntime *rt, struct memory *m, struct gosched *s, uint64_t *ret)
{
	uint64_t procs[GOSCHED_PROCS_MAX], allp[2];
	int r;

	if (!rt->file.sched.allp)
		return GOTOTALS_ABSENT;
	r = gototals_outcome(memory_read(m, rt->file.sched.allp + rt->bias, allp, sizeof(allp)));
	if (r)
		return r;
	if (!allp[1] || allp[1] > GOSCHED_PROCS_MAX)
		return GOTOTALS_ODD;
	r = gototals_outcome(memory_read(m, allp[0], procs, (size_t)allp[1] * 8));
	if (!r && !s->free_at)
		r = find_free(m, procs[0], &s->free_at);
	return r ? r : count(rt, m, s, procs, allp[1], ret);
}

/* ---------------------------------------------------------------- the pacer */

/*
 * The garbage collector's pacer keeps the state in one struct, gcController. Since Go 1.19 the
 * struct no longer contains the goal for the heap; heapGoalInternal computes the goal on request
 * from other words. These words have fixed places relative to totalAlloc in all releases:
 *
 *   -224 gcPercentHeapGoal  -216 sweepDistMinTrigger  -208 triggered
 *   -144 heapMarked
 *    -24 heapInUse           -16 heapReleased           -8 heapFree
 *      0 totalAlloc            8 totalFree              16 mappedReady
 *
 * and memoryLimit is at offset 8 of the struct. Before 1.19, heapGoal is a word of the struct.
 * gofile/goversion.c has the offsets.
 *
 * The sizes of the heap's memory validate the layout, because the sizes are whole pages.
 *
 * Source: the Go project's src/runtime/mgcpacer.go and mstats.go.
 */

#define PAGE_BYTES	 8192
/* The minimum distance of a goal above the point where the collection has begun. */
#define MIN_RUNWAY_BYTES (64u << 10)
/* The minimum distance of a goal below the memory limit; in some releases also a share of the
 * goal. */
#define HEADROOM_BYTES	 (1u << 20)

/* Up to totalAlloc + 24. */
struct controller {
	uint64_t words[GOVERSION_TOTAL_ALLOC / 8 + 3];
	size_t total; /* index of totalAlloc */
	uint64_t headroom_percent;
};

static uint64_t word(const struct controller *c, int offset)
{
	return c->words[(int)c->total + offset / 8];
}

static uint64_t headroom(const struct controller *c, uint64_t goal)
{
	uint64_t share = goal / 100 * c->headroom_percent;

	return share < HEADROOM_BYTES ? HEADROOM_BYTES : share;
}

/* The heap size that the memory limit allows. */
static uint64_t memory_limit_goal(const struct controller *c)
{
	uint64_t heap_free = word(c, -8), ready = word(c, 16), limit = c->words[1];
	uint64_t heap_alloc = word(c, 0) - word(c, 8), marked = word(c, -144);
	uint64_t other = ready - heap_free - heap_alloc;
	uint64_t over = ready > limit ? ready - limit : 0, goal, keep;

	if (heap_free + heap_alloc > ready)
		other = 0; /* read during a change */
	if (other + over >= limit)
		return marked;
	goal = limit - other - over;
	keep = headroom(c, goal);
	goal = goal < keep || goal - keep < keep ? keep : goal - keep;
	return goal < marked ? marked : goal;
}

static uint64_t next_gc(const struct controller *c)
{
	uint64_t goal = word(c, -224), sweep = word(c, -216), triggered = word(c, -208);
	uint64_t by_limit = memory_limit_goal(c);

	if (by_limit < goal)
		return by_limit;
	if (sweep > goal)
		goal = sweep;
	if (triggered != UINT64_MAX && goal < triggered + MIN_RUNWAY_BYTES)
		goal = triggered + MIN_RUNWAY_BYTES;
	return goal;
}

/* The offset of totalAlloc in gcController determines the release. */
static const struct goversion_pacer *pacer_by_total(uint64_t offset)
{
	for (const struct goversion *v = goversion_newest(); v; v = goversion_older(v))
		if (v->pacer.total_alloc && v->pacer.total_alloc == offset)
			return &v->pacer;
	return NULL;
}

/* The same by heapLive, before 1.19; @offset is 0 if unknown. */
static const struct goversion_pacer *pacer_by_live(uint64_t offset)
{
	for (const struct goversion *v = goversion_newest(); v; v = goversion_older(v))
		if (v->pacer.goal && v->pacer.heap_live == offset)
			return &v->pacer;
	return NULL;
}

static int read_controller(const struct goruntime *rt, struct memory *m, struct gopacer *ret)
{
	const struct goversion_pacer *at =
		pacer_by_total(rt->file.total_alloc - rt->file.controller);
	struct controller c;
	int r;

	if (!at)
		return GOTOTALS_ABSENT;
	c.total = at->total_alloc / 8;
	c.headroom_percent = at->headroom_percent;
	r = gototals_outcome(
		memory_read(m, rt->file.controller + rt->bias, c.words, (c.total + 3) * 8));
	if (r)
		return r;
	*ret = (struct gopacer){
		.next_gc = next_gc(&c),
		.marked = word(&c, -144),
		.has_memory = true,
		.inuse = word(&c, -24),
		.released = word(&c, -16),
		.sys = word(&c, -24) + word(&c, -16) + word(&c, -8),
	};
	if ((ret->inuse | ret->sys | ret->released) % PAGE_BYTES || ret->inuse > ret->sys)
		return GOTOTALS_ODD;
	return GOTOTALS_OK;
}

/* In 1.17 and 1.18. */
static int read_goal(const struct goruntime *rt, struct memory *m, struct gopacer *ret)
{
	uint64_t live = rt->file.heap_live ? rt->file.heap_live - rt->file.controller : 0;
	const struct goversion_pacer *at = pacer_by_live(live);
	uint64_t base = rt->file.controller + rt->bias;
	struct memory_range ranges[2];

	if (!at)
		return GOTOTALS_ABSENT;
	ranges[0] = (struct memory_range){base + at->goal, &ret->next_gc, sizeof(ret->next_gc)};
	ranges[1] = (struct memory_range){base + at->marked, &ret->marked, sizeof(ret->marked)};
	return gototals_outcome(memory_read_ranges(m, ranges, array_size(ranges)));
}

int gopacer_read(const struct goruntime *rt, struct memory *m, struct gopacer *ret)
{
	struct gopacer found = {0};
	int r = GOTOTALS_ABSENT;

	if (rt->file.controller)
		r = rt->file.total_alloc ? read_controller(rt, m, &found)
					 : read_goal(rt, m, &found);
	if (!r)
		*ret = found;
	return r;
}
