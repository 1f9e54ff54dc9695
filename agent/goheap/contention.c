// SPDX-License-Identifier: Apache-2.0
/*
 * Go's block and mutex profiles (runtime/mprof.go). A program turns them on with
 * SetBlockProfileRate() and SetMutexProfileFraction(); podprof never does. Each waiting stack has
 * a record with a count and the processor's ticks, in a list like the heap profile's (buckets.c).
 *
 * The count is an int64 in Go 1.16 and a float64 since. The value itself shows its type: a float64
 * of 1 or more, read as an integer, is above 4 * 10^18.
 *
 * The runtime scales samples up when it records them: block samples since 1.17, mutex samples since
 * 1.20. Before, the reader scales mutex samples by the rate at the time of reading; block samples
 * of 1.16 are not scaled at all. A block record with a count of less than one is shown with a count
 * of one.
 *
 * In 1.23 and 1.24 the stack of a lock of the runtime begins with a word of all ones. The word
 * marks the format of the rest and is not an address.
 *
 * Ticks to time: runtime/pprof divides by ticks.val, measured by the runtime at the first request.
 * If there was no request, or the program has no code for it, podprof measures the same clock
 * itself: the processor's time stamp counter on x86-64. On arm64 Go's ticks are nanoseconds.
 *
 * The arithmetic uses doubles in the order of runtime/pprof/pprof.go (printCountCycleProfile), so
 * the numbers equal those of the program itself.
 */
#include "goheap/contention.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/vec.h"
#include "gofile/goversion.h"
#include "goheap/buckets.h"
#include "goheap/goruntime.h"
#include "procmap/memory.h"

/* Time to measure a tick. Clock reads take less than 100 ns, so the error is 1 in 10^5. */
#define TICKS_MEASURE_NS (10 * NSEC_PER_MSEC)
/* Reads of both clocks. */
#define TICKS_TRIES	 8
/* A float64 of 1, as an integer; int64 counts are far smaller. */
#define FLOAT_ONE	 0x3ff0000000000000ull

/* A record's counters as in memory. */
struct counters {
	uint64_t count;
	uint64_t cycles;
};

struct contention {
	enum go_profile_kind kind;
	const struct goruntime *rt;
	struct memory *memory;
	struct buckets buckets;
	uint64_t *stack;	 /* of the record returned last */
	struct counters *before; /* of the records known before the last read */
	size_t n_before;
	size_t cap_before;
	uint64_t rate;
	int64_t ticks; /* in a second */
	bool was_read;
};

int contention_new(enum go_profile_kind kind, const struct goruntime *rt, struct memory *memory,
		   size_t max_bytes, struct contention **ret)
{
	struct contention *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->stack = calloc(BUCKETS_PCS_MAX, sizeof(*c->stack));
	if (!c->stack) {
		free(c);
		return -ENOMEM;
	}
	c->kind = kind;
	c->rt = rt;
	c->memory = memory;
	buckets_init(&c->buckets, kind == GO_PROFILE_MUTEX ? BUCKETS_MUTEX : BUCKETS_BLOCK,
		     max_bytes ? max_bytes : CONTENTION_BYTES_DEFAULT);
	*ret = c;
	return 0;
}

void contention_free(struct contention *c)
{
	if (!c)
		return;
	buckets_deinit(&c->buckets);
	free(c->before);
	free(c->stack);
	free(c);
}

size_t contention_bytes(const struct contention *c)
{
	return sizeof(*c) + buckets_bytes(&c->buckets) + c->cap_before * sizeof(*c->before);
}

/* ---------------------------------------------------------------- time */

/* The clock of Go's cputicks(). */
static int64_t cpu_ticks(void)
{
#if defined(__x86_64__)
	return (int64_t)__builtin_ia32_rdtsc();
#else
	return (int64_t)nsec_monotonic();
#endif
}

/* Both clocks at one moment. */
struct moment {
	uint64_t ns;
	int64_t ticks;
};

/* The thread may lose the CPU between the clocks, so the best of some attempts counts. */
static struct moment moment_now(void)
{
	struct moment best = {0};
	int64_t least = INT64_MAX;

	for (int i = 0; i < TICKS_TRIES; i++) {
		int64_t before = cpu_ticks();
		uint64_t ns = nsec_monotonic();
		int64_t gap = cpu_ticks() - before;

		if (gap < 0 || gap >= least)
			continue;
		least = gap;
		best = (struct moment){ns, before + gap / 2};
	}
	return best;
}

/* In a second. The same for all processes of the machine, and a container may have very many, so
 * only the first call takes time. */
static int64_t measured_ticks(void)
{
	static _Atomic int64_t known;
	const struct timespec pause = {.tv_nsec = TICKS_MEASURE_NS};
	struct moment start, end;
	int64_t ticks = known;

	if (ticks)
		return ticks;
	start = moment_now();
	nanosleep(&pause, NULL);
	end = moment_now();
	ticks = (int64_t)((double)(end.ticks - start.ticks) * 1e9 /
			  (double)(end.ns > start.ns ? end.ns - start.ns : 1));
	known = ticks > 0 ? ticks : 1;
	return known;
}

/* ---------------------------------------------------------------- reading */

/* Whether the reader scales records by the rate. */
static bool scales_when_read(const struct contention *c)
{
	const struct goversion *v = goversion_find(goruntime_minor(&c->rt->file));

	return c->kind == GO_PROFILE_MUTEX && v && v->mutex_raw;
}

/* Read the head of the list, the rate and the ticks. */
static int look(struct contention *c, uint64_t *ret_head)
{
	bool mutex = c->kind == GO_PROFILE_MUTEX;
	enum goruntime_var rate = mutex ? GORUNTIME_MUTEX_RATE : GORUNTIME_BLOCK_RATE;
	uint64_t head = goruntime_addr(c->rt, mutex ? GORUNTIME_XBUCKETS : GORUNTIME_BBUCKETS);
	uint64_t ticks = goruntime_addr(c->rt, GORUNTIME_TICKS);
	struct memory_range ranges[] = {
		{head, ret_head, sizeof(*ret_head)},
		{goruntime_addr(c->rt, rate), &c->rate, sizeof(c->rate)},
		{ticks, &c->ticks, sizeof(c->ticks)},
	};

	if (!ranges[0].addr || !ranges[1].addr)
		return GORUNTIME_UNKNOWN_LAYOUT;
	c->ticks = 0;
	return gostate_of_memory(memory_read_ranges(c->memory, ranges, ticks ? 3 : 2));
}

static int keep_before(struct contention *c)
{
	int r = vec_grow(&c->before, &c->cap_before, c->buckets.n, sizeof(*c->before),
			 c->buckets.max_bytes / sizeof(*c->before));

	if (r)
		return r > 0 ? GORUNTIME_TOO_LARGE : r;
	c->n_before = c->buckets.n;
	for (size_t i = 0; i < c->n_before; i++)
		c->before[i] = (struct counters){c->buckets.items[i].allocs[0],
						 c->buckets.items[i].frees[0]};
	return 0;
}

static int read_records(struct contention *c, uint64_t head)
{
	size_t n_known = c->buckets.n, budget = SIZE_MAX;
	int r = keep_before(c);

	if (!r)
		r = gostate_of_buckets(buckets_update(&c->buckets, c->memory, head,
						      goruntime_minor(&c->rt->file), &budget));
	if (!r)
		r = gostate_of_buckets(buckets_refresh(&c->buckets, c->memory, n_known, &budget));
	if (!r)
		r = gostate_of_memory(memory_check(c->memory));
	return r;
}

int contention_read(struct contention *c, struct contention_profile *ret)
{
	bool measured = false;
	uint64_t head = 0;
	int r = look(c, &head);

	if (r)
		return r;
	if (!head) { /* of all later records nothing is from before this read */
		c->was_read = true;
		return c->rate ? GORUNTIME_NO_SAMPLES_YET : GORUNTIME_DISABLED_BY_PROGRAM;
	}
	r = read_records(c, head);
	if (r == GORUNTIME_UNKNOWN_LAYOUT || r == GORUNTIME_TOO_LARGE) {
		/* the kept records do not fit the process: start again at the next read */
		buckets_reset(&c->buckets);
		c->n_before = 0;
		c->was_read = false;
	}
	if (r)
		return r;
	if (c->ticks <= 0) {
		c->ticks = measured_ticks();
		measured = true;
	}
	*ret = (struct contention_profile){
		.reader = c,
		.rate = c->rate,
		.n_records = c->buckets.n,
		.first = !c->was_read,
		.measured = measured,
	};
	c->was_read = true;
	return GORUNTIME_OK;
}

/* ---------------------------------------------------------------- records */

static int64_t to_int64(double x)
{
	/* 2^63 is exact as a double, INT64_MAX is not; NaN becomes 0 */
	if (!(x > 0))
		return 0;
	return x < 9223372036854775808.0 ? (int64_t)x : INT64_MAX;
}

static int64_t count_of(const struct contention *c, uint64_t word)
{
	int64_t count;
	double value;

	if (word < FLOAT_ONE / 2) { /* an int64 of Go 1.16, or 0 */
		count = (int64_t)word;
	} else {
		memcpy(&value, &word, sizeof(value));
		count = to_int64(value);
		if (count == 0 && c->kind == GO_PROFILE_BLOCK)
			count = 1;
	}
	if (scales_when_read(c) &&
	    (c->rate > INT64_MAX || __builtin_mul_overflow(count, (int64_t)c->rate, &count)))
		count = INT64_MAX;
	return count;
}

static int64_t delay_of(const struct contention *c, uint64_t cycles)
{
	double ghz = (double)c->ticks / 1e9;
	double ns = (double)(int64_t)cycles / ghz;

	return to_int64(scales_when_read(c) ? ns * (double)c->rate : ns);
}

void contention_record(const struct contention_profile *p, size_t i, struct contention_record *ret)
{
	const struct contention *c = p->reader;
	const struct bucket *b = &c->buckets.items[i];
	size_t skip;

	for (size_t k = 0; k < b->n_pcs; k++)
		c->stack[k] = c->buckets.pcs.pcs[c->buckets.stacks[b->first_pc + k]];
	skip = b->n_pcs && c->stack[0] == UINT64_MAX;
	*ret = (struct contention_record){
		.pcs = c->stack + skip,
		.n_pcs = b->n_pcs - skip,
		.contentions = count_of(c, b->allocs[0]),
		.delay_ns = delay_of(c, b->frees[0]),
	};
	if (i >= c->n_before)
		return;
	ret->before_contentions = count_of(c, c->before[i].count);
	ret->before_delay_ns = delay_of(c, c->before[i].cycles);
}
