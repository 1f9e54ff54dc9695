// SPDX-License-Identifier: Apache-2.0
/*
 * A runtime describes itself in memory for its own stack walks: moduledata has the address of
 * the line table, the number of functions and the bounds of its data. A moduledata at the address
 * expected from file and mappings, with the same table, proves the bias and the addresses of the
 * variables, because loader and runtime have written the content.
 */
#include "goheap/goruntime.h"

#include "goheap/buckets.h"
#include "goheap/force.h"
#include "procmap/maps.h"
#include "procmap/memory.h"

const char *goruntime_state_name(int state)
{
	static const char *const names[GORUNTIME_STATE_MAX] = {
		[GORUNTIME_OK] = "ok",
		[GORUNTIME_NO_SAMPLES_YET] = "no_samples_yet",
		[GORUNTIME_DISABLED_BY_LINKER] = "disabled_by_linker",
		[GORUNTIME_DISABLED_BY_PROGRAM] = "disabled_by_program",
		[GORUNTIME_FORCED] = "forced",
		[GORUNTIME_DENIED] = "denied",
		[GORUNTIME_NO_RUNTIME] = "no_runtime",
		[GORUNTIME_UNKNOWN_LAYOUT] = "unknown_layout",
		[GORUNTIME_GONE] = "gone",
		[GORUNTIME_TOO_LARGE] = "too_large",
		[GORUNTIME_UNRESPONSIVE] = "unresponsive",
	};

	return state >= 0 && state < GORUNTIME_STATE_MAX ? names[state] : "error";
}

/* ---------------------------------------------------------------- its own description */

/* Offsets of words in moduledata, the same in all releases. */
enum {
	MODULE_TABLE = 0, /* pcHeader */
	MODULE_FTAB_LEN = 17,
	MODULE_RANGES = 24, /* noptrdata, data, bss, noptrbss: begin and end of each */
	MODULE_WORDS = 32,
	/* "next" is the last word and has no fixed offset. The longest moduledata has 74 words. */
	MODULE_WORDS_ALL = 80,
};

/* Whether a variable is in the runtime's data, according to moduledata. */
static bool in_module(const uint64_t words[MODULE_WORDS], uint64_t addr, size_t n)
{
	for (size_t i = MODULE_RANGES; i < MODULE_WORDS; i += 2)
		if (addr >= words[i] && addr < words[i + 1] && n <= words[i + 1] - addr)
			return true;
	return false;
}

int goruntime_check(struct goruntime *rt, struct memory *m)
{
	uint64_t words[MODULE_WORDS], rate = goruntime_addr(rt, GORUNTIME_RATE);
	int r;

	rt->certain = false;
	if (!rt->file.data)
		return GORUNTIME_OK; /* nothing to compare with */
	r = gostate_of_memory(memory_read(m, rt->file.data + rt->bias, words, sizeof(words)));
	if (r)
		return r;
	if (words[MODULE_TABLE] != rt->file.table + rt->bias ||
	    words[MODULE_FTAB_LEN] != rt->file.n_funcs + 1)
		return GORUNTIME_UNKNOWN_LAYOUT;
	rt->certain = rate && !rt->file.disputed &&
		      in_module(words, rate, goruntime_var_bytes(GORUNTIME_RATE));
	return GORUNTIME_OK;
}

/* A runtime's modules are a linked list with the program's own module first. */
bool goruntime_has_plugin(const struct goruntime *rt, struct memory *m,
			  const struct goruntime *other)
{
	uint64_t words[MODULE_WORDS_ALL];
	size_t n;

	if (!rt->file.data || !other->file.data ||
	    memory_read_some(m, rt->file.data + rt->bias, words, sizeof(words), &n))
		return false;
	for (size_t i = MODULE_WORDS; i < n / sizeof(words[0]); i++)
		if (words[i] == other->file.data + other->bias)
			return true;
	return false;
}

uint64_t goruntime_addr(const struct goruntime *rt, enum goruntime_var var)
{
	return goruntime_has(&rt->file, var) ? rt->file.vars[var].vaddr + rt->bias : 0;
}

/* ---------------------------------------------------------------- now */

/* Records prove that sampling was on. One exception: if the linker has turned sampling off, Go
 * 1.26 still has a single record of the program's start. */
static int read_was_on(struct memory *m, struct goruntime_now *now)
{
	uint64_t older = 0;
	int r;

	now->was_on = now->mbuckets != 0;
	if (!now->was_on || !now->disabled_by_linker || now->rate > 0)
		return 0;
	/* the second word of a record: the next older record */
	r = memory_read(m, now->mbuckets + 8, &older, sizeof(older));
	now->was_on = older != 0;
	return r;
}

int goruntime_read_now(const struct goruntime *rt, struct memory *m, struct goruntime_now *ret)
{
	bool old = !goruntime_has(&rt->file, GORUNTIME_CYCLE);
	enum goruntime_var cycle = old ? GORUNTIME_OLD_CYCLE : GORUNTIME_CYCLE;
	uint64_t mbuckets = 0, cycle_word = 0;
	int64_t rate = 0;
	uint8_t flag = rt->file.unread;
	struct memory_range ranges[4] = {
		{goruntime_addr(rt, GORUNTIME_RATE), &rate, sizeof(rate)},
		{goruntime_addr(rt, cycle), &cycle_word, goruntime_var_bytes(cycle)},
	};
	size_t n = 2;
	int r;

	if (goruntime_has(&rt->file, GORUNTIME_MBUCKETS))
		ranges[n++] = (struct memory_range){goruntime_addr(rt, GORUNTIME_MBUCKETS),
						    &mbuckets, sizeof(mbuckets)};
	if (goruntime_has(&rt->file, GORUNTIME_LINKER_FLAG))
		ranges[n++] = (struct memory_range){goruntime_addr(rt, GORUNTIME_LINKER_FLAG),
						    &flag, sizeof(flag)};
	r = memory_read_ranges(m, ranges, n);
	if (r)
		return r;
	*ret = (struct goruntime_now){
		.mbuckets = mbuckets,
		.rate = rate,
		.cycle = old ? (uint32_t)cycle_word : (uint32_t)cycle_word >> 1,
		.cycle_word = cycle_word,
		.disabled_by_linker = flag != 0,
	};
	return read_was_on(m, ret);
}

enum goruntime_state goruntime_state_now(const struct goruntime_now *now)
{
	if (now->rate <= 0)
		return now->disabled_by_linker && !now->was_on ? GORUNTIME_DISABLED_BY_LINKER
							       : GORUNTIME_DISABLED_BY_PROGRAM;
	/* only podprof sets this rate after the linker has turned sampling off */
	if (now->disabled_by_linker && now->rate == FORCE_RATE)
		return GORUNTIME_FORCED;
	return now->mbuckets ? GORUNTIME_OK : GORUNTIME_NO_SAMPLES_YET;
}

/* ---------------------------------------------------------------- results of reads */

int gostate_of_memory(int r)
{
	switch (r) {
	case MEMORY_GONE:
		return GORUNTIME_GONE;
	case MEMORY_DENIED:
		return GORUNTIME_DENIED;
	case MEMORY_UNMAPPED:
		return GORUNTIME_UNKNOWN_LAYOUT;
	default:
		return r;
	}
}

int gostate_of_buckets(int r)
{
	switch (r) {
	case BUCKETS_GONE:
		return GORUNTIME_GONE;
	case BUCKETS_DENIED:
		return GORUNTIME_DENIED;
	case BUCKETS_TOO_LARGE:
		return GORUNTIME_TOO_LARGE;
	case BUCKETS_MALFORMED:
	case BUCKETS_UNKNOWN_LAYOUT:
		return GORUNTIME_UNKNOWN_LAYOUT;
	default:
		return r;
	}
}

int gostate_of_maps(int r)
{
	switch (r) {
	case MAPS_GONE:
		return GORUNTIME_GONE;
	case MAPS_DENIED:
		return GORUNTIME_DENIED;
	case MAPS_TOO_LARGE:
		return GORUNTIME_TOO_LARGE;
	default:
		return r;
	}
}
