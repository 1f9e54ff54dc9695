// SPDX-License-Identifier: Apache-2.0
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
#include "goheap/gosched.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "goheap/goruntime.h"
#include "goheap/gototals.h"
#include "goheap/memory.h"

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
