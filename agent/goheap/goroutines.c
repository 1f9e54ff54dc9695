// SPDX-License-Identifier: Apache-2.0
/*
 * runtime.allgs is a slice of pointers to descriptions of goroutines. Descriptions are never freed;
 * descriptions of ended goroutines are reused. The array is replaced for growth, and the old array
 * stays readable.
 *
 * A description (type g in runtime/runtime2.go) begins with the stack's bounds. The offsets of
 * other fields depend on the release, and a stripped program does not reveal the offsets.
 * So podprof takes the offsets by version (gofile/goversion.c), and checks that the values are
 * plausible for most goroutines: a known status, a valid stack size, a stack pointer inside the
 * stack, unique numbers.
 *
 * A goroutine that does not run has its stack pointer and resume address in "sched" or, in a system
 * call, in "syscallsp" and "syscallpc". The goroutine may resume during the read, so podprof reads
 * the description again after the stack. After a change the data may be of two moments, and the
 * goroutine is dropped. A goroutine that has run and waits at the same place again has a stack with
 * other values but the same return addresses, and only return addresses are used.
 *
 * Goroutines are read in batches of 512 descriptions, each with as many stacks as the buffer holds.
 */
#include "goheap/goroutines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gofile/goversion.h"
#include "goheap/goruntime.h"
#include "procmap/memory.h"

/* Words read of a description. */
#define G_WORDS		 (GOVERSION_G_BYTES / 8)
#define BATCH_GOROUTINES 512
#define BATCH_BYTES	 (4u << 20)
/* Bytes of a stack: powers of two, from 2 KiB to the largest that the runtime allows. Reached:
 * the goroutine is odd; if most of them are, `unknown_layout`. */
#define STACK_BYTES_MAX	 (1ull << 30)
#define SCAN_BIT	 0x1000u
/* A goroutine's number; the runtime numbers goroutines consecutively. Reached: as above. */
#define IDS_MAX		 (1ull << 48)
/* Reasons read, and bytes of one; Go 1.27 has 47. Reached: no reason. */
#define REASONS_MAX	 64
#define REASON_BYTES	 48

/* Offsets of stack and sched, the same in all releases. */
enum { G_STACK_LO = 0, G_STACK_HI = 8, G_SCHED_SP = 56, G_SCHED_PC = 64 };

/* The fields used of a description. */
struct look {
	uint64_t stack_lo;
	uint64_t stack_hi;
	uint64_t sp;
	uint64_t pc;
	uint64_t id;
	uint64_t go_pc;
	uint64_t start_pc;
	uint32_t status;
	uint8_t wait_reason;
};

struct reader {
	const struct goruntime *rt;
	struct memory *memory;
	const struct goversion_g *layout;
	uint64_t *all;
	uint64_t n_all;
	char reasons[REASONS_MAX][REASON_BYTES];
	uint64_t words[BATCH_GOROUTINES][G_WORDS];
	struct look looks[BATCH_GOROUTINES];
	struct memory_range ranges[BATCH_GOROUTINES];
	size_t order[BATCH_GOROUTINES]; /* index of the goroutine of each range */
	struct memory_range again[BATCH_GOROUTINES];
	uint8_t stacks[BATCH_BYTES];
	uint64_t n_bytes;  /* of stacks */
	uint64_t n_looked; /* for the plausibility check */
	uint64_t n_odd;
	struct goroutines_stats stats;
};

const char *goroutine_status_name(enum goroutine_status status)
{
	static const char *const names[GOROUTINE_STATUS_MAX] = {
		[GOROUTINE_IDLE] = "idle",	     [GOROUTINE_RUNNABLE] = "runnable",
		[GOROUTINE_RUNNING] = "running",     [GOROUTINE_SYSCALL] = "syscall",
		[GOROUTINE_WAITING] = "waiting",     [GOROUTINE_DEAD] = "dead",
		[GOROUTINE_COPYSTACK] = "copystack", [GOROUTINE_PREEMPTED] = "preempted",
		[GOROUTINE_LEAKED] = "leaked",	     [GOROUTINE_DEADEXTRA] = "dead",
	};
	const char *name = status < GOROUTINE_STATUS_MAX ? names[status] : NULL;

	return name ? name : "unknown";
}

/* An unknown release gets the newest layout; the plausibility check decides. */
static const struct goversion_g *layout_of(const struct goruntime *rt)
{
	const struct goversion *v = goversion_find(goruntime_minor(&rt->file));

	return v ? &v->g : &goversion_newest()->g;
}

/* ---------------------------------------------------------------- one description */

static uint64_t word(const uint64_t words[G_WORDS], size_t off)
{
	return words[off / 8];
}

static void look_at(const struct goversion_g *l, const uint64_t words[G_WORDS], struct look *ret)
{
	uint32_t status = (uint32_t)word(words, l->status) & ~SCAN_BIT;
	bool outside = status == GOROUTINE_SYSCALL && word(words, l->syscall_sp);

	*ret = (struct look){
		.stack_lo = word(words, G_STACK_LO),
		.stack_hi = word(words, G_STACK_HI),
		.sp = word(words, outside ? l->syscall_sp : (size_t)G_SCHED_SP),
		.pc = word(words, outside ? l->syscall_sp + 8u : (size_t)G_SCHED_PC),
		.id = word(words, l->id),
		.go_pc = word(words, l->go_pc),
		.start_pc = word(words, l->start_pc),
		.status = status,
		.wait_reason = (uint8_t)(word(words, l->wait_reason) & 0xff),
	};
}

static bool is_alive(const struct look *g)
{
	return g->status != GOROUTINE_IDLE && g->status != GOROUTINE_DEAD &&
	       g->status != GOROUTINE_DEADEXTRA;
}

static bool has_stack(const struct look *g)
{
	return is_alive(g) && g->status != GOROUTINE_RUNNING && g->status != GOROUTINE_COPYSTACK;
}

static bool makes_sense(const struct look *g)
{
	uint64_t bytes = g->stack_hi - g->stack_lo;

	if (g->status >= GOROUTINE_STATUS_MAX)
		return false;
	if (!is_alive(g))
		return true;
	if (g->stack_hi <= g->stack_lo || bytes > STACK_BYTES_MAX || (bytes & (bytes - 1)) ||
	    !g->id || g->id > IDS_MAX || !g->start_pc)
		return false;
	return !has_stack(g) ||
	       (g->sp >= g->stack_lo && g->sp <= g->stack_hi && g->sp % 8 == 0 && g->pc);
}

static bool is_same(const struct look *a, const struct look *b)
{
	return a->status == b->status && a->sp == b->sp && a->pc == b->pc && a->id == b->id &&
	       a->stack_lo == b->stack_lo && a->stack_hi == b->stack_hi;
}

/* ---------------------------------------------------------------- reasons */

/* Keep a Go string if it is printable. */
static void keep_reason(struct reader *r, size_t i, uint64_t addr, uint64_t n)
{
	char text[REASON_BYTES] = {0};

	if (!n || n >= sizeof(text) || memory_read(r->memory, addr, text, n))
		return;
	for (size_t k = 0; k < n; k++)
		if (text[k] < ' ' || text[k] > '~')
			return;
	memcpy(r->reasons[i], text, sizeof(text));
}

/* Read all strings present; without them goroutines have no reason. */
static void read_reasons(struct reader *r)
{
	uint64_t addr = goruntime_addr(r->rt, GORUNTIME_WAIT_REASONS);
	uint64_t strings[2 * REASONS_MAX];
	size_t n = 0;

	if (!addr || memory_read_some(r->memory, addr, strings, sizeof(strings), &n))
		return;
	for (size_t i = 0; i < n / 16; i++)
		keep_reason(r, i, strings[2 * i], strings[2 * i + 1]);
}

/* ---------------------------------------------------------------- batches */

/* Read the descriptions of @n goroutines, from @first on. */
static int read_looks(struct reader *r, size_t first, size_t n)
{
	int err;

	for (size_t i = 0; i < n; i++)
		r->ranges[i] =
			(struct memory_range){r->all[first + i], r->words[i], GOVERSION_G_BYTES};
	err = gostate_of_memory(memory_read_ranges(r->memory, r->ranges, n));
	for (size_t i = 0; !err && i < n; i++)
		look_at(r->layout, r->words[i], &r->looks[i]);
	return err;
}

static size_t stack_bytes(const struct look *g)
{
	uint64_t n = has_stack(g) ? g->stack_hi - g->sp : 0;

	return n < GOROUTINES_STACK_MAX ? (size_t)n : GOROUTINES_STACK_MAX;
}

/* Read the stacks of the @n goroutines of the batch, from *@next on, up to the size of the
 * buffer. Sets *@ret_n to the number of ranges. */
static int read_stacks(struct reader *r, size_t n, size_t *next, size_t *ret_n)
{
	size_t used = 0, n_ranges = 0;
	int err;

	for (; *next < n; ++*next) {
		const struct look *g = &r->looks[*next];
		size_t bytes = stack_bytes(g);

		if (used + bytes > sizeof(r->stacks))
			break;
		if (!is_alive(g) || !makes_sense(g))
			continue;
		r->order[n_ranges] = *next;
		r->ranges[n_ranges++] = (struct memory_range){g->sp, r->stacks + used, bytes};
		used += bytes;
	}
	*ret_n = n_ranges;
	r->n_bytes += used;
	err = memory_read_ranges(r->memory, r->ranges, n_ranges);
	if (err != MEMORY_UNMAPPED)
		return gostate_of_memory(err);
	/* a stack has been unmapped: read each by itself; unreadable ones are dropped below */
	for (size_t i = 0; i < n_ranges; i++) {
		err = memory_read(r->memory, r->ranges[i].addr, r->ranges[i].to, r->ranges[i].n);
		if (err && err != MEMORY_UNMAPPED)
			return gostate_of_memory(err);
		if (err)
			r->looks[r->order[i]].status = GOROUTINE_STATUS_MAX;
	}
	return 0;
}

static int give(struct reader *r, size_t i, goroutine_fn fn, void *ctx)
{
	const struct look *g = &r->looks[r->order[i]];
	const struct memory_range *range = &r->ranges[i];
	bool stack = has_stack(g);
	const char *reason = g->wait_reason < REASONS_MAX ? r->reasons[g->wait_reason] : "";
	const struct goroutine goroutine = {
		.id = g->id,
		.status = (enum goroutine_status)g->status,
		.wait_reason = g->status == GOROUTINE_WAITING || g->status == GOROUTINE_LEAKED
				       ? reason
				       : "",
		.start_pc = g->start_pc,
		.go_pc = g->go_pc,
		.pc = stack ? g->pc : 0,
		.sp = stack ? g->sp : 0,
		.stack = range->to,
		.n_stack = range->n,
		.limit = g->stack_hi,
	};

	r->stats.n++;
	return fn(ctx, &goroutine);
}

/* Read the descriptions again for all stacks read, and pass unchanged goroutines to the caller. */
static int give_all(struct reader *r, size_t first, size_t n_ranges, goroutine_fn fn, void *ctx)
{
	int err;

	for (size_t i = 0; i < n_ranges; i++)
		r->again[i] = (struct memory_range){r->all[first + r->order[i]],
						    r->words[r->order[i]], GOVERSION_G_BYTES};
	err = gostate_of_memory(memory_read_ranges(r->memory, r->again, n_ranges));
	for (size_t i = 0; !err && i < n_ranges; i++) {
		struct look now;

		look_at(r->layout, r->words[r->order[i]], &now);
		if (is_same(&now, &r->looks[r->order[i]]))
			err = give(r, i, fn, ctx);
		else
			r->stats.n_changed++;
	}
	return err;
}

static int read_batch(struct reader *r, size_t first, size_t n, goroutine_fn fn, void *ctx)
{
	size_t next = 0, n_ranges;
	int err = read_looks(r, first, n);

	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		r->n_looked += is_alive(&r->looks[i]);
		r->n_odd += !makes_sense(&r->looks[i]);
	}
	if (r->n_odd > 8 && r->n_odd > r->n_looked / 8)
		return GORUNTIME_UNKNOWN_LAYOUT;
	while (!err && next < n) {
		err = read_stacks(r, n, &next, &n_ranges);
		if (!err)
			err = give_all(r, first, n_ranges, fn, ctx);
	}
	return err;
}

/* ---------------------------------------------------------------- all */

static int read_list(struct reader *r)
{
	uint64_t slice[3],
		addr = goruntime_addr(r->rt, GORUNTIME_ALLGS); /* address, length, capacity */
	int err;

	if (!addr)
		return GORUNTIME_UNKNOWN_LAYOUT;
	err = gostate_of_memory(memory_read(r->memory, addr, slice, sizeof(slice)));
	if (err)
		return err;
	if (!slice[0] || !slice[1] || slice[1] > slice[2])
		return GORUNTIME_UNKNOWN_LAYOUT;
	r->n_all = slice[1] < GOROUTINES_MAX ? slice[1] : GOROUTINES_MAX;
	r->stats.n_left_out = slice[1] - r->n_all;
	r->all = malloc(r->n_all * sizeof(*r->all));
	if (!r->all)
		return -ENOMEM;
	return gostate_of_memory(
		memory_read(r->memory, slice[0], r->all, r->n_all * sizeof(*r->all)));
}

static int read_all(struct reader *r, goroutine_fn fn, void *ctx)
{
	int err = read_list(r);
	size_t left;

	if (err)
		return err;
	read_reasons(r);
	for (left = r->n_all; !err && left && r->n_bytes < GOROUTINES_BYTES_MAX;) {
		size_t n = left < BATCH_GOROUTINES ? left : BATCH_GOROUTINES;

		err = read_batch(r, r->n_all - left, n, fn, ctx);
		left -= n;
	}
	r->stats.n_left_out += left;
	if (!err && (!r->n_looked || r->n_odd > r->n_looked / 8))
		err = GORUNTIME_UNKNOWN_LAYOUT;
	return err ? err : gostate_of_memory(memory_check(r->memory));
}

int goroutines_read(const struct goruntime *rt, struct memory *m, goroutine_fn fn, void *ctx,
		    struct goroutines_stats *ret)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->rt = rt;
	r->memory = m;
	r->layout = layout_of(rt);
	err = read_all(r, fn, ctx);
	if (!err)
		*ret = r->stats;
	free(r->all);
	free(r);
	return err;
}
