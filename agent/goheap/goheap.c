// SPDX-License-Identifier: Apache-2.0
/*
 * Reading a Go process's heap profile while the process runs.
 *
 * Publishing (runtime/mprof.go): a program's in-use memory is only known right after a garbage
 * collection, so the runtime publishes at collections. Let C be the number of collections so far.
 * An allocation is counted in slot future[(C+2)%3]; a free, found while sweeping, in
 * future[(C+1)%3]. At the end of marking, C goes up by one and future[C%3] is added to "active"
 * record by record. The program itself would show "active". A profile requested before the addition
 * does the addition first. If "active" is zero everywhere, because no collection has ended yet, the
 * program adds all three futures.
 *
 * podprof adds nothing in the process but computes active + future[C%3]. This sum is right before,
 * during and after the runtime's own addition, because the runtime zeroes the slot after the
 * addition. The sum of all four slots gives every allocation up to now, as needed for a rate. The
 * sum does not give in-use memory, because frees come one or two collections later.
 *
 * Reading is not atomic. podprof reads the cycle number before and after, and reads the counters
 * once more after a change. buckets.c detects a record in the middle of an addition.
 */
#include "goheap/goheap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "goheap/buckets.h"
#include "goheap/force.h"
#include "goheap/gobss.h"
#include "goheap/goimages.h"
#include "goheap/goruntime.h"
#include "goheap/goruntimes.h"
#include "goheap/gototals.h"
#include "goheap/gounpacked.h"
#include "procmap/image.h"
#include "procmap/maps.h"
#include "procmap/memory.h"

/* Reads of the counters before a profile is accepted although a collection ended during each
 * read. */
#define GOHEAP_TRIES 3

/* The state of an unfinished read. */
struct reading {
	enum { READING_NOTHING, READING_NEW, READING_COUNTERS } phase;
	enum goruntime_state state;
	int tries;
	size_t n_known;	  /* records that are not new in this try */
	uint64_t n_calls; /* at the begin of the read */
	uint64_t n_bytes;
};

/* The cycle number wraps here (mProfCycleWrap). */
#define CYCLES 100663296u

struct goheap {
	const struct root *proc;
	struct pid_id id;
	struct process_memory process;
	struct memory *memory;
	struct goruntime rt;
	struct image *unpacked;	    /* owned; NULL unless rt belongs to no file */
	enum goruntime_state found; /* result of goheap_new() */
	enum goruntime_state state;
	bool force;
	bool force_tried;
	bool was_forced;
	enum force_outcome force_outcome; /* of the last read */
	bool was_read;
	struct buckets buckets;
	struct goruntime_now now; /* of the last or the unfinished read */
	bool has_now;
	uint64_t cycles; /* now.cycle without wrapping */
	struct reading reading;
	size_t failed_bytes; /* the ceiling at which there were too many records; 0: none */
	size_t slot;	     /* published next: 1 + cycle % 3 */
	bool all_slots;	     /* nothing was published yet */
	const struct goversion_stats *totals; /* layout of the counters; NULL: unknown */
	struct gosched sched;
	struct contention
		*contention[GO_PROFILE_KIND_MAX]; /* owned; NULL before the first request */
};

/* ---------------------------------------------------------------- a reader */

static struct goheap *goheap_alloc(size_t max_bytes)
{
	struct goheap *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->process.fd = -1;
	buckets_init(&h->buckets, BUCKETS_MEMORY, max_bytes ? max_bytes : GOHEAP_BYTES_DEFAULT);
	return h;
}

void goheap_free(struct goheap *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < GO_PROFILE_KIND_MAX; i++)
		contention_free(h->contention[i]);
	buckets_deinit(&h->buckets);
	process_memory_deinit(&h->process);
	image_unref(h->unpacked);
	free(h);
}

DEFINE_CLEANUP(struct goheap *, goheap_freep, goheap_free);

/* Find the first runtime of the process. */
static int find_runtime(struct goheap *h, struct memory *m)
{
	_cleanup_(goimages_freep) struct goimages *images = NULL;
	_cleanup_(freep) struct goruntimes *found = calloc(1, sizeof(*found));
	const struct goruntime *first;
	int r = found ? goimages_new(&images) : -ENOMEM;

	if (!r)
		r = goruntimes_find(images, h->proc, &h->id, m, 0, found);
	first = r >= 0 ? goruntimes_first(found) : NULL;
	if (first)
		h->rt = *first;
	return r;
}

/* Opens the address space first, so that all later findings belong to it, or the check after
 * each read fails. Opening needs a permission that podprof may lack. The result is then "denied"
 * for Go programs only; other programs are not Go in any case. */
static int attach(struct goheap *h, const struct goruntime *runtime)
{
	int denied = gostate_of_memory(process_memory_init(&h->process, h->proc, &h->id));
	int state;

	if (denied < 0 || denied == GORUNTIME_GONE)
		return denied;
	if (runtime)
		h->rt = *runtime;
	state = runtime ? (int)runtime->state : find_runtime(h, denied ? NULL : &h->process.memory);
	if ((state == GORUNTIME_OK || state == GORUNTIME_UNKNOWN_LAYOUT) && !denied)
		h->memory = &h->process.memory;
	else
		process_memory_deinit(&h->process);
	return state == GORUNTIME_OK ? denied : state;
}

int goheap_new(const struct goheap_opts *opts, struct goheap **ret)
{
	_cleanup_(goheap_freep) struct goheap *h = goheap_alloc(opts->max_bytes);
	int r;

	if (!h)
		return -ENOMEM;
	h->proc = opts->proc;
	h->id = opts->id;
	h->force = opts->force;
	h->was_forced = opts->was_forced;
	r = attach(h, opts->runtime);
	if (r < 0)
		return r;
	h->found = h->state = (enum goruntime_state)r;
	/* on failure the heap is still read, but functions have no names */
	r = h->memory && h->rt.is_unpacked ? gounpacked_image(h->proc, &h->id, &h->rt, &h->unpacked)
					   : 0;
	if (r < 0)
		return r;
	*ret = take_ptr(h);
	return 0;
}

int goheap_new_of_memory(const struct goruntime *rt, struct memory *memory, size_t max_bytes,
			 struct goheap **ret)
{
	struct goheap *h = goheap_alloc(max_bytes);

	if (!h)
		return -ENOMEM;
	h->rt = *rt;
	h->memory = memory;
	h->found = h->state = GORUNTIME_OK;
	*ret = h;
	return 0;
}

enum goruntime_state goheap_state(const struct goheap *h)
{
	return h->state;
}

const struct goruntime *goheap_runtime(const struct goheap *h)
{
	return h->found == GORUNTIME_OK || h->found == GORUNTIME_UNKNOWN_LAYOUT ? &h->rt : NULL;
}

struct memory *goheap_memory(struct goheap *h)
{
	return h->found == GORUNTIME_OK ? h->memory : NULL;
}

int goheap_check(struct goheap *h)
{
	int r = gostate_of_memory(memory_check(h->memory));

	if (r == GORUNTIME_GONE)
		h->found = h->state = GORUNTIME_GONE;
	return r;
}

int goheap_contention(struct goheap *h, enum go_profile_kind kind, struct contention_profile *ret)
{
	int r = 0;

	if (h->found != GORUNTIME_OK)
		return (int)h->found;
	if (!h->contention[kind])
		r = contention_new(kind, &h->rt, h->memory, CONTENTION_BYTES_DEFAULT,
				   &h->contention[kind]);
	return r ? r : contention_read(h->contention[kind], ret);
}

bool goheap_resolve(const struct goheap *h, uint64_t pc, struct frame *ret)
{
	for (size_t i = 0; h->unpacked && i < h->rt.file.n_codes; i++) {
		const struct goruntime_code *code = &h->rt.file.codes[i];

		if (pc < code->vaddr || pc - code->vaddr >= code->n_bytes)
			continue;
		*ret = (struct frame){image_ref(h->unpacked), pc};
		return true;
	}
	return false;
}

bool goheap_was_forced(const struct goheap *h)
{
	return h->was_forced;
}

void goheap_set_force(struct goheap *h, bool force)
{
	h->force = force;
}

enum force_outcome goheap_force_outcome(const struct goheap *h)
{
	return h->force_outcome;
}

size_t goheap_bytes(const struct goheap *h)
{
	size_t n = sizeof(*h) + buckets_bytes(&h->buckets);

	for (size_t i = 0; i < GO_PROFILE_KIND_MAX; i++)
		n += h->contention[i] ? contention_bytes(h->contention[i]) : 0;
	return n;
}

/* ---------------------------------------------------------------- reading */

/* Turn sampling on if it is off. There is only one attempt. A program with sampling on earlier,
 * set by the program or by a previous run of the agent, has turned it off on purpose. */
static int force(struct goheap *h)
{
	int r;

	if (h->now.rate != 0 || !h->force || h->force_tried || h->process.fd < 0)
		return 0;
	h->force_tried = true;
	r = gostate_of_memory(memory_check(h->memory));
	if (r)
		return r;
	r = h->now.was_on || h->was_forced ? (int)FORCE_WAS_ON
					   : force_sampling(h->proc, &h->id, &h->rt);
	if (r < 0)
		return r;
	h->force_outcome = (enum force_outcome)r;
	h->was_forced |= r == FORCE_OK;
	if (r == FORCE_OK ||
	    r == FORCE_NOT_ZERO) /* the program may have set the rate itself meanwhile */
		return gostate_of_memory(goruntime_read_now(&h->rt, h->memory, &h->now));
	return r == FORCE_GONE ? GORUNTIME_GONE : 0;
}

/* Search for the head of the list. The search fails before the first record exists. */
static int find_head(struct goheap *h)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	struct goruntime_place *place = &h->rt.file.vars[GORUNTIME_MBUCKETS];
	uint64_t addr;
	int r = maps_read(h->proc, &h->id, &maps);

	if (r)
		return r < 0 ? r : r == MAPS_DENIED ? GORUNTIME_DENIED : GORUNTIME_GONE;
	r = gobss_find(&h->rt, h->memory, &maps, &addr);
	switch (r) {
	case GOBSS_OK:
		*place = (struct goruntime_place){addr - h->rt.bias, GORUNTIME_FROM_SCAN, ""};
		return 0;
	case GOBSS_GONE:
		return GORUNTIME_GONE;
	case GOBSS_DENIED:
		return GORUNTIME_DENIED;
	default:
		return r < 0 ? r : 0;
	}
}

/* Read the variables. The list is searched for before a read, and before sampling is
 * turned on, to see whether sampling was on before. */
static int read_now(struct goheap *h)
{
	int r = gostate_of_memory(goruntime_read_now(&h->rt, h->memory, &h->now));
	bool wanted = h->now.rate > 0 || (h->force && !h->force_tried);

	if (r || !wanted || !h->proc || goruntime_has(&h->rt.file, GORUNTIME_MBUCKETS))
		return r;
	r = find_head(h);
	return r ? r : gostate_of_memory(goruntime_read_now(&h->rt, h->memory, &h->now));
}

/* Read the variables; turn sampling on if requested. */
static int look(struct goheap *h)
{
	struct goruntime_now *now = &h->now;
	int r = read_now(h);

	h->force_outcome = FORCE_OUTCOME_MAX;
	h->has_now = r == 0;
	if (!r) {
		uint32_t last = (uint32_t)(h->cycles % CYCLES);

		h->cycles += ((uint64_t)CYCLES + h->now.cycle % CYCLES - last) % CYCLES;
		r = force(h);
	}
	if (r)
		return r;
	return h->was_forced && now->rate > 0 ? GORUNTIME_FORCED : (int)goruntime_state_now(now);
}

/* Begin a read, with the state given by the variables. Only two states have records. */
static int reading_begin(struct goheap *h)
{
	struct reading *reading = &h->reading;
	int state;

	reading->n_calls = h->memory->n_calls;
	reading->n_bytes = h->memory->n_bytes;
	h->has_now = false;
	state = look(h);
	/* of all later records nothing is from before this read */
	if (h->has_now && !h->now.mbuckets && goruntime_has(&h->rt.file, GORUNTIME_MBUCKETS))
		h->was_read = true;
	if (state != GORUNTIME_OK && state != GORUNTIME_FORCED)
		return state;
	if (h->failed_bytes)
		return GORUNTIME_TOO_LARGE;
	buckets_begin(&h->buckets);
	reading->phase = READING_NEW;
	reading->state = (enum goruntime_state)state;
	reading->tries = 0;
	reading->n_known = h->buckets.n;
	return state;
}

/* An attempt to read all records and counters of one moment. New records come with their
 * counters. */
static int reading_try(struct goheap *h, size_t *budget)
{
	struct reading *reading = &h->reading;
	int r = 0;

	if (reading->phase == READING_NEW)
		r = buckets_update(&h->buckets, h->memory, h->now.mbuckets,
				   goruntime_minor(&h->rt.file), budget);
	if (!r) {
		reading->phase = READING_COUNTERS;
		r = buckets_refresh(&h->buckets, h->memory, reading->n_known, budget);
	}
	return r == BUCKETS_UNFINISHED ? (int)GOHEAP_UNFINISHED : gostate_of_buckets(r);
}

/* Retry, within limits, until no collection ends during an attempt. */
static int reading_on(struct goheap *h, size_t budget, bool *ret_settled)
{
	struct reading *reading = &h->reading;

	for (;;) {
		struct goruntime_now after;
		int r = reading_try(h, &budget);

		if (!r)
			r = gostate_of_memory(goruntime_read_now(&h->rt, h->memory, &after));
		if (r)
			return r;
		*ret_settled = after.cycle_word == h->now.cycle_word;
		if (*ret_settled || ++reading->tries == GOHEAP_TRIES)
			return gostate_of_memory(memory_check(h->memory));
		if (after.rate <= 0) /* turned off meanwhile: the counts are of the rate before */
			after.rate = h->now.rate;
		h->now = after;
		reading->phase = READING_NEW;
		reading->n_known = h->buckets.n;
	}
}

static void profile_of(struct goheap *h, bool settled, struct goheap_profile *ret)
{
	/* Choose the published slots: see the top of this file. */
	h->slot = 1 + h->now.cycle % 3;
	h->all_slots = true;
	for (size_t i = 0; i < h->buckets.n && h->all_slots; i++) {
		const struct bucket *b = &h->buckets.items[i];

		h->all_slots =
			!b->allocs[0] && !b->frees[0] && !b->allocs[h->slot] && !b->frees[h->slot];
	}
	*ret = (struct goheap_profile){
		.heap = h,
		.rate = h->now.rate,
		.n_records = h->buckets.n,
		.pcs = h->buckets.pcs.pcs,
		.n_pcs = h->buckets.pcs.n,
		.first = !h->was_read,
		.settled = settled,
		.blank_label = h->buckets.layout == BUCKETS_LAYOUT_WIDE,
		.n_calls = h->memory->n_calls - h->reading.n_calls,
		.n_bytes = h->memory->n_bytes - h->reading.n_bytes,
	};
	h->was_read = true;
}

static int step(struct goheap *h, size_t budget, struct goheap_profile *ret)
{
	bool settled = true;
	int state, r;

	if (h->reading.phase == READING_NOTHING) {
		state = reading_begin(h);
		if (h->reading.phase == READING_NOTHING) {
			r = state >= 0 ? gostate_of_memory(memory_check(h->memory)) : 0;
			return r ? r : state;
		}
	}
	r = reading_on(h, budget, &settled);
	if (r)
		return r;
	profile_of(h, settled, ret);
	return (int)h->reading.state;
}

int goheap_step(struct goheap *h, size_t budget, struct goheap_profile *ret)
{
	int r;

	if (h->found != GORUNTIME_OK)
		return (int)h->found;
	r = step(h, budget, ret);
	if (r == (int)GOHEAP_UNFINISHED)
		return r;
	h->reading.phase = READING_NOTHING;
	/* unexpected content may belong to another program by now */
	if (r == GORUNTIME_UNKNOWN_LAYOUT && memory_check(h->memory) == MEMORY_GONE)
		r = GORUNTIME_GONE;
	if (r == GORUNTIME_UNKNOWN_LAYOUT || r == GORUNTIME_TOO_LARGE) {
		/* The kept records do not fit the process: start again at the next read. */
		if (r == GORUNTIME_TOO_LARGE && !h->failed_bytes)
			h->failed_bytes = h->buckets.max_bytes;
		buckets_reset(&h->buckets);
		h->was_read = false;
	}
	if (r == GORUNTIME_GONE)
		h->found = GORUNTIME_GONE;
	if (r < 0 || r == GORUNTIME_GONE)
		h->has_now = false;
	if (r >= 0)
		h->state = (enum goruntime_state)r;
	return r;
}

int goheap_read(struct goheap *h, struct goheap_profile *ret)
{
	int r;

	do
		r = goheap_step(h, SIZE_MAX, ret);
	while (r == (int)GOHEAP_UNFINISHED);
	return r;
}

void goheap_set_max_bytes(struct goheap *h, size_t max_bytes)
{
	h->buckets.max_bytes = max_bytes;
	if (max_bytes - max_bytes / 5 >= h->failed_bytes)
		h->failed_bytes = 0;
}

/* The allocator's counters may be readable even if the profile has an unknown layout or place:
 * since Go 1.19 there are two copies of each, with a check of their agreement. */
static bool may_count(const struct goheap *h)
{
	return h->found == GORUNTIME_OK ||
	       (h->found == GORUNTIME_UNKNOWN_LAYOUT && h->memory && h->rt.file.total_alloc);
}

int goheap_exact(struct goheap *h, struct gototals *ret)
{
	struct gototals totals;
	int r;

	if (!may_count(h))
		return h->found == GORUNTIME_GONE ? GOTOTALS_GONE : GOTOTALS_ABSENT;
	r = gototals_read(&h->rt, h->memory, &h->totals, &totals);
	if (!r && memory_check(h->memory))
		r = GOTOTALS_GONE;
	if (r == GOTOTALS_GONE)
		h->found = h->state = GORUNTIME_GONE;
	if (!r)
		*ret = totals;
	return r;
}

int goheap_cycles(const struct goheap *h, uint64_t *ret)
{
	if (!h->has_now)
		return h->found == GORUNTIME_GONE ? GOTOTALS_GONE : GOTOTALS_ABSENT;
	*ret = h->cycles;
	return 0;
}

int goheap_gauges(struct goheap *h, struct goheap_gauges *ret)
{
	struct goheap_gauges found = {0};
	int r;

	*ret = found;
	/* without a readable profile, only with counters that passed their check */
	if (h->found != GORUNTIME_OK && (!may_count(h) || !h->totals))
		return 0;
	r = gopacer_read(&h->rt, h->memory, &found.pacer);
	found.has_pacer = r == 0;
	if (r >= 0)
		r = gosched_read(&h->rt, h->memory, &h->sched, &found.goroutines);
	found.has_goroutines = r == 0;
	if (r < 0)
		return r;
	if (!memory_check(h->memory))
		*ret = found;
	return 0;
}

/* ---------------------------------------------------------------- records */

static uint64_t published(const struct goheap *h, const uint64_t counts[BUCKETS_SLOTS])
{
	uint64_t sum = counts[0];

	for (size_t i = 1; i < BUCKETS_SLOTS; i++)
		if ((h->all_slots || i == h->slot) && __builtin_add_overflow(sum, counts[i], &sum))
			return UINT64_MAX;
	return sum;
}

void goheap_record(const struct goheap_profile *p, size_t i, struct goheap_record *ret)
{
	const struct goheap *h = p->heap;
	const struct bucket *b = &h->buckets.items[i];

	*ret = (struct goheap_record){
		.stack = h->buckets.stacks + b->first_pc,
		.n_pcs = b->n_pcs,
		.size = b->size,
		.allocs = published(h, b->allocs),
		.frees = published(h, b->frees),
		.fresh_allocs = bucket_allocs(b),
		.before_allocs = b->before,
	};
}

static void add(struct unsampled *sum, struct unsampled u)
{
	if (__builtin_add_overflow(sum->objects, u.objects, &sum->objects))
		sum->objects = INT64_MAX;
	if (__builtin_add_overflow(sum->bytes, u.bytes, &sum->bytes))
		sum->bytes = INT64_MAX;
}

void goheap_totals(const struct goheap_profile *p, struct goheap_totals *ret)
{
	struct goheap_record record;

	*ret = (struct goheap_totals){0};
	for (size_t i = 0; i < p->n_records; i++) {
		goheap_record(p, i, &record);
		add(&ret->alloc, unsample(record.fresh_allocs, record.size, p->rate));
		add(&ret->inuse, unsample(goheap_record_inuse(&record), record.size, p->rate));
	}
}

/* ---------------------------------------------------------------- unsampling */

/*
 * Go samples allocations as a Poisson process over bytes: an object of S bytes is recorded with
 * probability 1 - exp(-S/R) at rate R. The recorded count divided by this probability is an
 * unbiased estimate. Without the division a program of 16-byte objects would seem to allocate 32768
 * times less (R is 512 KiB).
 *
 * The arithmetic is in doubles, in the order and with the truncation of scaleHeapSample() in
 * runtime/pprof/protomem.go, so the numbers equal those of the process itself. Up to Go 1.26 that
 * function divides the record's bytes by the count to get S, with the same result. Only the last
 * bit of exp() may differ, because Go has its own implementation for some processors. For 16-byte
 * objects such an error is multiplied by 32768 and then truncated, so one profile in some thousands
 * has a number off by one.
 *
 * R of 1 means that every allocation is recorded; R of 0 or less means that the rate is unknown.
 * Both disable the scaling.
 */

static int64_t to_int64(double x)
{
	/* 2^63 is exact as a double, INT64_MAX is not */
	return x < 9223372036854775808.0 ? (int64_t)x : INT64_MAX;
}

struct unsampled unsample(uint64_t count, uint64_t size, int64_t rate)
{
	double scale, bytes = (double)count * (double)size;

	if (count == 0 || size == 0)
		return (struct unsampled){0, 0};
	if (rate <= 1)
		return (struct unsampled){to_int64((double)count), to_int64(bytes)};
	scale = 1 / (1 - exp(-(double)size / (double)rate));
	return (struct unsampled){to_int64((double)count * scale), to_int64(bytes * scale)};
}
