/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_PAGE_POOL_H
#define PODPROF_UNWINDTABLE_PAGE_POOL_H

/*
 * The allocator of page space (bpf/shared/table.h): consecutive whole pages, and sub-pages of
 * shared pages. Page space grows by a slab at a time and never shrinks. Released space is free at
 * once: the caller has waited until no walker reads there.
 *
 * The kernel takes long to make a slab (slabmaker.h). So the pool can make a slab in advance, and a
 * reservation may answer "later".
 */

#include <stddef.h>
#include <stdint.h>

#include "shared/table.h"

enum page_pool_outcome {
	PAGE_POOL_OK = 0,
	PAGE_POOL_FULL,	 /* not so many in a row, and no more slabs */
	PAGE_POOL_LATER, /* result while the slab is being made */
};

/**
 * struct page_pool_slabs - source of slabs
 * @make:  make slab @number, all zeros, and show it to the walkers; 0, -errno, or PAGE_POOL_LATER:
 *         the slab is being made, and page_pool_made() reports the end. One slab at a time
 * @map:   @n of its pages from @first on, writable; NULL on a failure
 * @unmap: ends the use of the @n pages at @mem
 */
struct page_pool_slabs {
	void *ctx;
	int (*make)(void *ctx, uint32_t number);
	struct table_page *(*map)(void *ctx, uint32_t number, uint32_t first, uint32_t n);
	void (*unmap)(void *ctx, struct table_page *mem, uint32_t n);
};

/* Each kind has its own slabs. Table images cannot take all slabs. */
enum page_pool_kind {
	PAGE_POOL_IMAGES,   /* mapped during a view, or until page_pool_settle() for writing */
	PAGE_POOL_MAPPINGS, /* written all the time: stay mapped, so these count as the agent's
			       memory */
	PAGE_POOL_KIND_MAX,
};

struct page_pool;

/* @n_slabs: ceiling of slabs, itself at most TABLE_SLABS. @slabs is copied, its ctx borrowed. 0,
 *           -ENOMEM. */
int page_pool_new(const struct page_pool_slabs *slabs, uint32_t n_slabs, struct page_pool **ret);
void page_pool_free(struct page_pool *pool);

/* Reports the slab after PAGE_POOL_LATER: made (0), or failed (-errno). */
void page_pool_made(struct page_pool *pool, int result);
/* Makes a slab in advance if no spare slab is left. */
void page_pool_ahead(struct page_pool *pool);

/* @n whole pages in a row, @n > 0. 0, PAGE_POOL_FULL, PAGE_POOL_LATER or -errno. */
int page_pool_reserve(struct page_pool *pool, enum page_pool_kind kind, uint32_t n, uint32_t *ret);
void page_pool_release(struct page_pool *pool, uint32_t first, uint32_t n);

/* Reserves @n sub-pages, less than a page, within one page; @ret is their number in sub-pages. 0,
 * PAGE_POOL_FULL, PAGE_POOL_LATER or -errno. */
int page_pool_reserve_subpages(struct page_pool *pool, uint32_t n, uint32_t *ret);
void page_pool_release_subpages(struct page_pool *pool, uint32_t first, uint32_t n);

/* A page of PAGE_POOL_MAPPINGS; its address is stable. NULL if its slab cannot be mapped. */
struct table_page *page_pool_at(struct page_pool *pool, uint32_t number);

/* Write @n bytes at @address of page space, in bytes, to pages of PAGE_POOL_IMAGES. 0 or
 * -errno. */
int page_pool_write(struct page_pool *pool, uint64_t address, const void *data, size_t n);

/* A read-only page as the walkers have it, until page_pool_unview(). NULL if the page does not
 * exist, or cannot be mapped. */
const struct table_page *page_pool_view(struct page_pool *pool, uint32_t number);
void page_pool_unview(struct page_pool *pool);

/* Ends a period of writing: unmaps the slabs mapped for it. */
void page_pool_settle(struct page_pool *pool);

/* Bytes of all slabs, and of the reserved parts. */
size_t page_pool_bytes(const struct page_pool *pool);
size_t page_pool_reserved_bytes(const struct page_pool *pool);
/* Largest table image, in bytes, that would find room: in whole pages, and as an image below a
 * page. */
struct page_pool_room {
	size_t whole_bytes;
	size_t subpage_bytes;
};
struct page_pool_room page_pool_room(const struct page_pool *pool);

#endif
