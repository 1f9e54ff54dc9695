// SPDX-License-Identifier: Apache-2.0
/*
 * A block lies in one page, so it is readable or not as a whole. A read that fails goes to the
 * other memory as it is: the answer, and the bytes before a hole, are the same as without a cache.
 */
#include "procmap/memory_cache.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

_Static_assert(MEMORY_PAGE_BYTES % MEMORY_CACHE_BLOCK_BYTES == 0, "a block is in one page");

static void forget(struct memory *m)
{
	struct memory_cache *c = container_of(m, struct memory_cache, memory);

	memset(c->slots, 0, sizeof(c->slots));
	c->n = 0;
}

/* The slot of the block at @at, or the free one in its place. */
static uint16_t *slot_of(struct memory_cache *c, uint64_t at)
{
	uint64_t i = hash_words(at, 0);

	while (c->slots[i % MEMORY_CACHE_SLOTS] &&
	       c->at[c->slots[i % MEMORY_CACHE_SLOTS] - 1] != at)
		i++;
	return &c->slots[i % MEMORY_CACHE_SLOTS];
}

/* What a call reads: new blocks, and ranges that are larger. */
struct request {
	struct memory_range ranges[MEMORY_CACHE_BLOCKS_MAX];
	size_t n;
};

/* False without room. */
static bool want(struct request *q, uint64_t addr, void *to, size_t n)
{
	if (q->n == MEMORY_CACHE_BLOCKS_MAX)
		return false;
	q->ranges[q->n++] = (struct memory_range){addr, to, n};
	return true;
}

/* The same. */
static bool want_block(struct memory_cache *c, uint64_t at, struct request *q)
{
	uint16_t *slot = slot_of(c, at);

	if (*slot)
		return true;
	if (c->n == MEMORY_CACHE_BLOCKS_MAX ||
	    !want(q, at, c->bytes[c->n], MEMORY_CACHE_BLOCK_BYTES))
		return false;
	c->at[c->n] = at;
	*slot = (uint16_t)++c->n;
	return true;
}

/* Neighbours of larger ranges are not kept. A small range is in two blocks at most. */
static bool is_small(const struct memory_range *range)
{
	return range->n <= MEMORY_CACHE_BLOCK_BYTES && range->addr <= UINT64_MAX - range->n;
}

static uint64_t block_of(uint64_t addr)
{
	return addr - addr % MEMORY_CACHE_BLOCK_BYTES;
}

static bool want_all(struct memory_cache *c, const struct memory_range *ranges, size_t n,
		     struct request *q)
{
	bool has_room = true;

	q->n = 0;
	for (size_t i = 0; i < n && has_room; i++) {
		const struct memory_range *r = &ranges[i];

		if (!is_small(r))
			has_room = want(q, r->addr, r->to, r->n);
		else if (r->n)
			has_room = want_block(c, block_of(r->addr), q) &&
				   want_block(c, block_of(r->addr + r->n - 1), q);
	}
	return has_room;
}

static size_t copy(struct memory_cache *c, const struct memory_range *range)
{
	for (size_t done = 0; done < range->n && is_small(range);) {
		const uint64_t addr = range->addr + done, at = block_of(addr);
		const size_t rest = MEMORY_CACHE_BLOCK_BYTES - (size_t)(addr - at);
		const size_t n = range->n - done < rest ? range->n - done : rest;

		memcpy((uint8_t *)range->to + done, c->bytes[*slot_of(c, at) - 1] + (addr - at), n);
		done += n;
	}
	return range->n;
}

static int pass_on(struct memory_cache *c, const struct memory_range *ranges, size_t n, size_t *ret)
{
	int r;

	forget(&c->memory);
	c->of->n_calls++;
	r = c->of->read(c->of, ranges, n, ret);
	c->of->n_bytes += r ? 0 : *ret;
	return r;
}

static int cache_read(struct memory *m, const struct memory_range *ranges, size_t n, size_t *ret)
{
	struct memory_cache *c = container_of(m, struct memory_cache, memory);
	struct request q;
	int r;

	if (!want_all(c, ranges, n, &q)) {
		forget(m);
		if (!want_all(c, ranges, n, &q))
			return pass_on(c, ranges, n, ret);
	}
	r = memory_read_ranges(c->of, q.ranges, q.n);
	if (r == MEMORY_UNMAPPED)
		return pass_on(c, ranges, n, ret);
	if (r) {
		forget(m);
		return r;
	}
	*ret = 0;
	for (size_t i = 0; i < n; i++)
		*ret += copy(c, &ranges[i]);
	return 0;
}

static int check(struct memory *m)
{
	return memory_check(container_of(m, struct memory_cache, memory)->of);
}

void memory_cache_init(struct memory_cache *c, struct memory *of)
{
	c->memory = (struct memory){
		.read = cache_read, .check = check, .forget = forget, .beneath = of};
	c->of = of;
	forget(&c->memory);
}
