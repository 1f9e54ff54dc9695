// SPDX-License-Identifier: Apache-2.0
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
#include "goheap/gopacer.h"

#include "base/cleanup.h"
#include "gofile/goversion.h"
#include "goheap/goruntime.h"
#include "goheap/gototals.h"
#include "goheap/memory.h"

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
