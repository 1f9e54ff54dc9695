// SPDX-License-Identifier: Apache-2.0
/*
 * First-fit allocation of page space: a bit for each page and, in shared pages with the ends of
 * table images, a bit for each sub-page. A search reads all bits, a few thousand words on a node
 * full of tables. It happens once for each loaded executable.
 *
 * Slabs are numbered in the order of creation. The first slabs belong to a kind, the others are
 * spare. One slab holds 60 tables of the usual size.
 */
#include "unwindtable/page_pool.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Mapping tables keep a reserve of one slab and this fraction of all. Without them no table image
 * is found. */
#define KEEP_PART 16

#define WORDS	 (TABLE_SLAB_PAGES / 64)
#define SUBPAGES (TABLE_PAGE_BYTES / TABLE_SUBPAGE_BYTES)
_Static_assert(SUBPAGES == 64, "a page's sub-pages are one word of bits");

/* Pages mapped at once for a view: the kernel maps each of them, used or not, and a walk reads a
 * few pages of an image. */
#define VIEW_PAGES 16
#define VIEWS	   (TABLE_SLAB_PAGES / VIEW_PAGES)

struct slab {
	enum page_pool_kind kind;
	struct table_page *mem;		 /* PAGE_POOL_MAPPINGS: once requested */
	struct table_page *views[VIEWS]; /* PAGE_POOL_IMAGES: each once requested, for a view */
	uint64_t used[WORDS];
	uint64_t *subpages; /* of shared pages, by page; NULL if there never was a shared page */
};

/* A slab open for writing. */
struct open_slab {
	uint32_t number;
	struct table_page *mem; /* NULL: none */
};

struct page_pool {
	struct page_pool_slabs source;
	struct slab *slabs;
	struct open_slab open[2]; /* of an image, and of its end; the last used slab first */
	uint32_t n, n_spare, max;
	bool making;
	uint32_t n_of[PAGE_POOL_KIND_MAX], max_of[PAGE_POOL_KIND_MAX];
	size_t reserved_bytes[PAGE_POOL_KIND_MAX];
};

DEFINE_CLEANUP(struct page_pool *, page_pool_freep, page_pool_free);

int page_pool_new(const struct page_pool_slabs *slabs, uint32_t n_slabs, struct page_pool **ret)
{
	_cleanup_(page_pool_freep) struct page_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pool->source = *slabs;
	pool->max = n_slabs < TABLE_SLABS ? n_slabs : TABLE_SLABS;
	pool->max_of[PAGE_POOL_IMAGES] =
		pool->max > 1 ? pool->max - 1 - pool->max / KEEP_PART : pool->max;
	pool->max_of[PAGE_POOL_MAPPINGS] = pool->max;
	pool->slabs = calloc(pool->max + 1, sizeof(*pool->slabs));
	if (!pool->slabs)
		return -ENOMEM;
	*ret = take_ptr(pool);
	return 0;
}

static struct table_page *map_slab(struct page_pool *pool, uint32_t number)
{
	return pool->source.map(pool->source.ctx, number, 0, TABLE_SLAB_PAGES);
}

static void unmap_slab(struct page_pool *pool, struct table_page *mem)
{
	if (mem)
		pool->source.unmap(pool->source.ctx, mem, TABLE_SLAB_PAGES);
}

void page_pool_free(struct page_pool *pool)
{
	if (!pool)
		return;
	page_pool_settle(pool);
	page_pool_unview(pool);
	for (uint32_t i = 0; i < pool->n; i++) {
		unmap_slab(pool, pool->slabs[i].mem);
		free(pool->slabs[i].subpages);
	}
	free(pool->slabs);
	free(pool);
}

/* ---------------------------------------------------------------- whole pages */

static bool is_used(const struct page_pool *pool, uint32_t number)
{
	const struct slab *slab = &pool->slabs[number / TABLE_SLAB_PAGES];

	return slab->used[number % TABLE_SLAB_PAGES / 64] >> number % 64 & 1;
}

static void mark(struct page_pool *pool, uint32_t first, uint32_t n, bool used)
{
	for (uint32_t number = first; number < first + n; number++) {
		struct slab *slab = &pool->slabs[number / TABLE_SLAB_PAGES];
		uint64_t *word = &slab->used[number % TABLE_SLAB_PAGES / 64];

		*word = used ? *word | 1ull << number % 64 : *word & ~(1ull << number % 64);
	}
}

/* Slabs that this kind can still get. */
static uint32_t slabs_left(const struct page_pool *pool, enum page_pool_kind kind)
{
	uint32_t of_kind = pool->max_of[kind] - pool->n_of[kind], of_all = pool->max - pool->n;

	return of_kind < of_all ? of_kind : of_all;
}

static int make_slab(struct page_pool *pool)
{
	int r = pool->making ? PAGE_POOL_LATER
			     : pool->source.make(pool->source.ctx, pool->n + pool->n_spare);

	if (!r)
		pool->n_spare++;
	else if (r == PAGE_POOL_LATER)
		pool->making = true;
	return r;
}

void page_pool_made(struct page_pool *pool, int result)
{
	pool->making = false;
	if (!result)
		pool->n_spare++;
}

void page_pool_ahead(struct page_pool *pool)
{
	if (!pool->n_spare && pool->n < pool->max)
		(void)make_slab(pool); /* a failure is retried at the next need */
}

/* Gives @n more slabs to this kind, within its limit. */
static int add_slabs(struct page_pool *pool, enum page_pool_kind kind, uint32_t n)
{
	int r = 0;

	while (!r && pool->n_spare < n)
		r = make_slab(pool);
	if (r)
		return r;
	for (uint32_t i = 0; i < n; i++)
		pool->slabs[pool->n + i].kind = kind;
	pool->n += n;
	pool->n_spare -= n;
	pool->n_of[kind] += n;
	return 0;
}

/* Finds the first @n consecutive free pages: true. Otherwise *@ret_end is the number of free pages
 * at the very end. */
static bool find_run(const struct page_pool *pool, enum page_pool_kind kind, uint32_t n,
		     uint32_t *ret, uint32_t *ret_end)
{
	uint32_t number = 0, run = 0;

	while (number < pool->n * TABLE_SLAB_PAGES) {
		const struct slab *slab = &pool->slabs[number / TABLE_SLAB_PAGES];

		if (slab->kind != kind) {
			run = 0;
			number += TABLE_SLAB_PAGES;
			continue;
		}
		run = is_used(pool, number++) ? 0 : run + 1;
		if (run == n) {
			*ret = number - n;
			return true;
		}
	}
	*ret_end = run;
	return false;
}

int page_pool_reserve(struct page_pool *pool, enum page_pool_kind kind, uint32_t n, uint32_t *ret)
{
	uint32_t first, end;
	uint64_t slabs;
	int r = 0;

	if (!find_run(pool, kind, n, &first, &end)) {
		first = pool->n * TABLE_SLAB_PAGES - end;
		slabs = ((uint64_t)first + n + TABLE_SLAB_PAGES - 1) / TABLE_SLAB_PAGES - pool->n;
		r = slabs > slabs_left(pool, kind) ? PAGE_POOL_FULL
						   : add_slabs(pool, kind, (uint32_t)slabs);
	}
	if (r)
		return r;
	mark(pool, first, n, true);
	pool->reserved_bytes[kind] += (size_t)n * TABLE_PAGE_BYTES;
	*ret = first;
	return 0;
}

void page_pool_release(struct page_pool *pool, uint32_t first, uint32_t n)
{
	mark(pool, first, n, false);
	pool->reserved_bytes[pool->slabs[first / TABLE_SLAB_PAGES].kind] -=
		(size_t)n * TABLE_PAGE_BYTES;
}

/* ---------------------------------------------------------------- pieces */

/* A mask of @n bits from bit @at on; n is below 64. */
static uint64_t bits(uint32_t at, uint32_t n)
{
	return ((1ull << n) - 1) << at;
}

/* Where in @used @n bits in a row are free; SUBPAGES if nowhere. */
static uint32_t find_bits(uint64_t used, uint32_t n)
{
	for (uint32_t at = 0; at + n <= SUBPAGES; at++)
		if (!(used & bits(at, n)))
			return at;
	return SUBPAGES;
}

static void take_subpages(struct page_pool *pool, uint32_t number, uint32_t at, uint32_t n,
			  uint32_t *ret)
{
	pool->slabs[number / TABLE_SLAB_PAGES].subpages[number % TABLE_SLAB_PAGES] |= bits(at, n);
	pool->reserved_bytes[PAGE_POOL_IMAGES] += (size_t)n * TABLE_SUBPAGE_BYTES;
	*ret = number * SUBPAGES + at;
}

/* Reserves in a page that is already shared. */
static bool join_subpages(struct page_pool *pool, uint32_t n, uint32_t *ret)
{
	for (uint32_t number = 0; number < pool->n * TABLE_SLAB_PAGES; number++) {
		const uint64_t *subpages = pool->slabs[number / TABLE_SLAB_PAGES].subpages;
		uint64_t used = subpages ? subpages[number % TABLE_SLAB_PAGES] : 0;
		uint32_t at = used ? find_bits(used, n) : SUBPAGES;

		if (at == SUBPAGES)
			continue;
		take_subpages(pool, number, at, n, ret);
		return true;
	}
	return false;
}

int page_pool_reserve_subpages(struct page_pool *pool, uint32_t n, uint32_t *ret)
{
	struct slab *slab;
	uint32_t number;
	int r;

	if (join_subpages(pool, n, ret))
		return 0;
	r = page_pool_reserve(pool, PAGE_POOL_IMAGES, 1, &number);
	if (r)
		return r;
	pool->reserved_bytes[PAGE_POOL_IMAGES] -= TABLE_PAGE_BYTES;
	slab = &pool->slabs[number / TABLE_SLAB_PAGES];
	if (!slab->subpages)
		slab->subpages = calloc(TABLE_SLAB_PAGES, sizeof(*slab->subpages));
	if (!slab->subpages) {
		mark(pool, number, 1, false);
		return -ENOMEM;
	}
	take_subpages(pool, number, 0, n, ret);
	return 0;
}

void page_pool_release_subpages(struct page_pool *pool, uint32_t first, uint32_t n)
{
	uint32_t number = first / SUBPAGES;
	uint64_t *used =
		&pool->slabs[number / TABLE_SLAB_PAGES].subpages[number % TABLE_SLAB_PAGES];

	*used &= ~bits(first % SUBPAGES, n);
	pool->reserved_bytes[PAGE_POOL_IMAGES] -= (size_t)n * TABLE_SUBPAGE_BYTES;
	if (!*used)
		mark(pool, number, 1, false);
}

/* ---------------------------------------------------------------- memory */

struct table_page *page_pool_at(struct page_pool *pool, uint32_t number)
{
	struct slab *slab = &pool->slabs[number / TABLE_SLAB_PAGES];

	if (!slab->mem)
		slab->mem = map_slab(pool, number / TABLE_SLAB_PAGES);
	return slab->mem ? &slab->mem[number % TABLE_SLAB_PAGES] : NULL;
}

const struct table_page *page_pool_view(struct page_pool *pool, uint32_t number)
{
	uint32_t page = number % TABLE_SLAB_PAGES;
	struct table_page **view;

	if (number / TABLE_SLAB_PAGES >= pool->n)
		return NULL;
	if (pool->slabs[number / TABLE_SLAB_PAGES].kind != PAGE_POOL_IMAGES)
		return page_pool_at(pool, number);
	view = &pool->slabs[number / TABLE_SLAB_PAGES].views[page / VIEW_PAGES];
	if (!*view)
		*view = pool->source.map(pool->source.ctx, number / TABLE_SLAB_PAGES,
					 page - page % VIEW_PAGES, VIEW_PAGES);
	return *view ? *view + page % VIEW_PAGES : NULL;
}

void page_pool_unview(struct page_pool *pool)
{
	for (uint32_t i = 0; i < pool->n; i++)
		for (uint32_t k = 0; k < VIEWS; k++) {
			struct table_page **view = &pool->slabs[i].views[k];

			if (*view)
				pool->source.unmap(pool->source.ctx, *view, VIEW_PAGES);
			*view = NULL;
		}
}

/* A slab stays mapped while tables are written to it in succession. The kernel maps all pages of a
 * slab at once, and this takes longer than writing some of them. */
static struct table_page *open_slab(struct page_pool *pool, uint32_t number)
{
	struct open_slab *o = &pool->open[0];

	if (o->mem && o->number != number) {
		struct open_slab other = pool->open[1];

		pool->open[1] = *o;
		*o = other;
	}
	if (o->mem && o->number == number)
		return o->mem;
	unmap_slab(pool, o->mem);
	o->number = number;
	o->mem = map_slab(pool, number);
	return o->mem;
}

void page_pool_settle(struct page_pool *pool)
{
	for (size_t i = 0; i < array_size(pool->open); i++) {
		unmap_slab(pool, pool->open[i].mem);
		pool->open[i].mem = NULL;
	}
}

int page_pool_write(struct page_pool *pool, uint64_t address, const void *data, size_t n)
{
	const size_t slab_bytes = (size_t)TABLE_SLAB_PAGES * TABLE_PAGE_BYTES;
	const uint8_t *from = data;

	while (n) {
		uint32_t number = (uint32_t)(address / slab_bytes);
		size_t off = address % slab_bytes;
		size_t here = n < slab_bytes - off ? n : slab_bytes - off;
		struct table_page *mem = open_slab(pool, number);

		if (!mem)
			return -ENOMEM;
		memcpy((uint8_t *)mem + off, from, here);
		address += here;
		from += here;
		n -= here;
	}
	return 0;
}

size_t page_pool_bytes(const struct page_pool *pool)
{
	return ((size_t)pool->n + pool->n_spare) * TABLE_SLAB_PAGES * TABLE_PAGE_BYTES;
}

size_t page_pool_reserved_bytes(const struct page_pool *pool)
{
	return pool->reserved_bytes[PAGE_POOL_IMAGES] + pool->reserved_bytes[PAGE_POOL_MAPPINGS];
}

/* The longest run of free pages, plus the slabs available behind the last page. */
static size_t longest_run(const struct page_pool *pool)
{
	size_t longest = 0, run = 0;

	for (uint32_t number = 0; number < pool->n * TABLE_SLAB_PAGES; number++) {
		bool ours = pool->slabs[number / TABLE_SLAB_PAGES].kind == PAGE_POOL_IMAGES;

		run = ours && !is_used(pool, number) ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	run += (size_t)slabs_left(pool, PAGE_POOL_IMAGES) * TABLE_SLAB_PAGES;
	return run > longest ? run : longest;
}

/* The longest run of free sub-pages in shared pages. */
static uint32_t longest_subpages(const struct page_pool *pool)
{
	uint32_t n = 0;

	for (uint32_t number = 0; number < pool->n * TABLE_SLAB_PAGES; number++) {
		const uint64_t *subpages = pool->slabs[number / TABLE_SLAB_PAGES].subpages;
		uint64_t used = subpages ? subpages[number % TABLE_SLAB_PAGES] : 0;

		while (used && n + 1 < SUBPAGES && find_bits(used, n + 1) < SUBPAGES)
			n++;
	}
	return n;
}

struct page_pool_room page_pool_room(const struct page_pool *pool)
{
	size_t run = longest_run(pool);

	return (struct page_pool_room){
		.whole_bytes = run * TABLE_PAGE_BYTES,
		.subpage_bytes =
			run ? TABLE_PAGE_BYTES : longest_subpages(pool) * TABLE_SUBPAGE_BYTES,
	};
}
