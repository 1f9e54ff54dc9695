/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWINDTABLE_PAGE_POOL_H
#define PODPROF_UNWINDTABLE_PAGE_POOL_H

/*
 * Who has which part of page space (bpf/shared/table.h): whole pages in a row, and pieces of
 * sub-pages in a page that is shared. Grows by one slab at a time and never shrinks. What is
 * released is free at once: whoever releases has waited until no walker reads there.
 *
 * A slab takes the kernel a long time (slabmaker.h), so one can be made while nobody waits for it
 * yet, and reserving may say that it will be possible later.
 */

#include <stddef.h>
#include <stdint.h>

#include "shared/table.h"

enum page_pool_outcome {
	PAGE_POOL_OK = 0,
	PAGE_POOL_FULL,	 /* not so many in a row, and no more slabs */
	PAGE_POOL_LATER, /* when the slab that is being made is there */
};

/**
 * struct page_pool_slabs - where slabs come from
 * @make:  make slab @number, all zeros, and show it to the walkers; 0, -errno, or PAGE_POOL_LATER:
 *         it is being made, page_pool_made() tells when it is there. One at a time
 * @map:   its TABLE_SLAB_PAGES pages, to be written to; NULL if that fails
 * @unmap: done with that
 */
struct page_pool_slabs {
	void *ctx;
	int (*make)(void *ctx, uint32_t number);
	struct table_page *(*map)(void *ctx, uint32_t number);
	void (*unmap)(void *ctx, uint32_t number, struct table_page *mem);
};

/* Each kind has slabs of its own, and table images cannot have all that there may be. */
enum page_pool_kind {
	PAGE_POOL_IMAGES,   /* mapped while they are viewed, or written until page_pool_settle() */
	PAGE_POOL_MAPPINGS, /* written all the time: stay mapped, so they count as ours */
	PAGE_POOL_KIND_MAX,
};

struct page_pool;

/* @n_slabs: at most so many, TABLE_SLABS at most. @slabs is copied, its ctx borrowed. 0, -ENOMEM.
 */
int page_pool_new(const struct page_pool_slabs *slabs, uint32_t n_slabs, struct page_pool **ret);
void page_pool_free(struct page_pool *pool);

/* The slab that was to be there later is (0), or cannot be made (-errno). */
void page_pool_made(struct page_pool *pool, int result);
/* Have a slab made now that will be needed later, if there is none to spare. */
void page_pool_ahead(struct page_pool *pool);

/* @n whole pages in a row, @n > 0. 0, PAGE_POOL_FULL, PAGE_POOL_LATER or -errno. */
int page_pool_reserve(struct page_pool *pool, enum page_pool_kind kind, uint32_t n, uint32_t *ret);
void page_pool_release(struct page_pool *pool, uint32_t first, uint32_t n);

/* @n sub-pages, less than a page, that are in one; @ret is their number counted in sub-pages. 0,
 * PAGE_POOL_FULL, PAGE_POOL_LATER or -errno. */
int page_pool_reserve_subpages(struct page_pool *pool, uint32_t n, uint32_t *ret);
void page_pool_release_subpages(struct page_pool *pool, uint32_t first, uint32_t n);

/* A page of PAGE_POOL_MAPPINGS; stays there. NULL if its slab cannot be mapped. */
struct table_page *page_pool_at(struct page_pool *pool, uint32_t number);

/* Write @n bytes at @address of page space, in bytes, to pages of PAGE_POOL_IMAGES. 0 or
 * -errno. */
int page_pool_write(struct page_pool *pool, uint64_t address, const void *data, size_t n);

/* A page as walkers see it, to be read, until page_pool_unview(). NULL if there is no such one,
 * or its slab cannot be mapped. */
const struct table_page *page_pool_view(struct page_pool *pool, uint32_t number);
void page_pool_unview(struct page_pool *pool);

/* Nothing more is to be written for a while: what is mapped for that is not any more. */
void page_pool_settle(struct page_pool *pool);

/* Bytes of all slabs, and of what is reserved in them. */
size_t page_pool_bytes(const struct page_pool *pool);
size_t page_pool_reserved_bytes(const struct page_pool *pool);
/* Bytes that the largest table image could have for which there is room: in whole pages, and if it
 * is less than one. */
struct page_pool_room {
	size_t whole_bytes;
	size_t subpage_bytes;
};
struct page_pool_room page_pool_room(const struct page_pool *pool);

#endif
