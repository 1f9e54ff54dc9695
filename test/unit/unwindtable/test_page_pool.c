// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwindtable/page_pool.h"

DEFINE_CLEANUP(struct page_pool *, page_pool_freep, page_pool_free);

#define SLABS	 4
#define SUBPAGES (TABLE_PAGE_BYTES / TABLE_SUBPAGE_BYTES)

/* Slabs in one piece, so the test can compare addresses. */
static struct {
	struct table_page *all;
	uint32_t n;
	int mapped;
	uint32_t mapped_pages;
	int n_maps; /* ever */
	int error;  /* of the next slab */
	bool later; /* page_pool_made() is to be called */
	bool making;
} kernel;

static int make(void *ctx, uint32_t number)
{
	assert_int_equal(number, kernel.n);
	assert_false(kernel.making);
	kernel.making = kernel.later;
	if (kernel.later)
		return PAGE_POOL_LATER;
	if (kernel.error)
		return kernel.error;
	kernel.n++;
	return 0;
}

/* The deferred slab is made, or failed. */
static void made(struct page_pool *e, int result)
{
	assert_true(kernel.making);
	kernel.making = false;
	kernel.n += !result;
	page_pool_made(e, result);
}

static struct table_page *map(void *ctx, uint32_t number, uint32_t first, uint32_t n)
{
	assert_true(number < kernel.n);
	assert_true(n && first + n <= TABLE_SLAB_PAGES);
	kernel.mapped++;
	kernel.mapped_pages += n;
	kernel.n_maps++;
	return kernel.all + (size_t)number * TABLE_SLAB_PAGES + first;
}

static void unmap(void *ctx, struct table_page *mem, uint32_t n)
{
	assert_in_range(mem - kernel.all, 0, (uint64_t)kernel.n * TABLE_SLAB_PAGES - n);
	kernel.mapped--;
	kernel.mapped_pages -= n;
}

static struct page_pool *table_pages(uint32_t n_slabs)
{
	const struct page_pool_slabs slabs = {NULL, make, map, unmap};
	struct page_pool *e;

	kernel.n = 0;
	kernel.error = 0;
	kernel.later = kernel.making = false;
	assert_int_equal(page_pool_new(&slabs, n_slabs, &e), 0);
	return e;
}

static int setup(void **state)
{
	kernel.all = calloc((size_t)SLABS * TABLE_SLAB_PAGES, sizeof(*kernel.all));
	return !kernel.all;
}

static int teardown(void **state)
{
	free(kernel.all);
	return 0;
}

static void test_rows_of_pages(void **state)
{
	_cleanup_(page_pool_freep) struct page_pool *e = table_pages(4);
	uint32_t a, b, c, d;

	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 10, &a), 0);
	/* over the end of a slab, and of two */
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 500, &b), 0);
	assert_int_equal(kernel.n, 2);
	assert_int_equal(b, a + 10);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 300, &c), PAGE_POOL_FULL);
	assert_int_equal(kernel.n, 2);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 258, &c), 0);
	assert_int_equal(kernel.n, 3);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 1, &d), PAGE_POOL_FULL);
	page_pool_release(e, a, 10);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 11, &d), PAGE_POOL_FULL);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 9, &d), 0);
	assert_int_equal(d, a);
	assert_int_equal(page_pool_reserved_bytes(e), (500 + 258 + 9) * TABLE_PAGE_BYTES);
	assert_int_equal(page_pool_bytes(e), 3 << 20);
}

static void test_kinds_apart(void **state)
{
	_cleanup_(page_pool_freep) struct page_pool *e = table_pages(3);
	uint32_t a, b, c;

	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 1, &a), 0);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_MAPPINGS, 1, &b), 0);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 256, &c), 0);
	assert_int_equal(b / TABLE_SLAB_PAGES, 1);
	assert_int_equal(c / TABLE_SLAB_PAGES, 2);
	assert_ptr_equal(page_pool_at(e, b), &kernel.all[b]);
	assert_int_equal(kernel.mapped, 1);
	assert_ptr_equal(page_pool_at(e, b), &kernel.all[b]);
	assert_int_equal(kernel.mapped, 1);
}

/* Table images leave a slab for mapping tables. */
static void test_kept(void **state)
{
	_cleanup_(page_pool_freep) struct page_pool *e = table_pages(2);
	uint32_t a;

	assert_int_equal(page_pool_room(e).whole_bytes, 1 << 20);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 257, &a), PAGE_POOL_FULL);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 256, &a), 0);
	assert_int_equal(page_pool_room(e).whole_bytes, 0);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 1, &a), PAGE_POOL_FULL);
	assert_int_equal(page_pool_reserve_subpages(e, 1, &a), PAGE_POOL_FULL);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_MAPPINGS, 256, &a), 0);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_MAPPINGS, 1, &a), PAGE_POOL_FULL);
}

/* Fitting requests, with free space in pieces. */
static void test_room(void **state)
{
	_cleanup_(page_pool_freep) struct page_pool *e = table_pages(2);
	uint32_t a, b, c, d;

	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 100, &a), 0);
	assert_int_equal(page_pool_reserve_subpages(e, 60, &b), 0);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 100, &c), 0);
	assert_int_equal(page_pool_room(e).whole_bytes, 55 * TABLE_PAGE_BYTES);
	assert_int_equal(page_pool_room(e).subpage_bytes, TABLE_PAGE_BYTES);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 55, &d), 0);
	assert_int_equal(page_pool_room(e).whole_bytes, 0);
	assert_int_equal(page_pool_room(e).subpage_bytes, 4 * TABLE_SUBPAGE_BYTES);
	page_pool_release(e, a, 100);
	page_pool_release(e, d, 50);
	assert_int_equal(page_pool_room(e).whole_bytes, 100 * TABLE_PAGE_BYTES);
}

static void test_unmapped(void **state)
{
	assert_int_equal(kernel.mapped, 0);
}

static void test_kernel_fails(void **state)
{
	_cleanup_(page_pool_freep) struct page_pool *e = table_pages(3);
	uint32_t a;

	kernel.error = -ENOMEM;
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 1, &a), -ENOMEM);
	assert_int_equal(page_pool_reserve_subpages(e, 1, &a), -ENOMEM);
	assert_int_equal(page_pool_reserved_bytes(e), 0);
	kernel.error = 0;
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 1, &a), 0);
}

static void test_later(void **state)
{
	_cleanup_(page_pool_freep) struct page_pool *e = table_pages(4);
	uint32_t a, b;

	kernel.later = true;
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 300, &a), PAGE_POOL_LATER);
	/* one at a time */
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 1, &b), PAGE_POOL_LATER);
	assert_int_equal(page_pool_reserve_subpages(e, 1, &b), PAGE_POOL_LATER);
	assert_int_equal(page_pool_reserved_bytes(e), 0);
	made(e, 0);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 300, &a), PAGE_POOL_LATER);
	/* requests meanwhile do not wait */
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_MAPPINGS, 1, &b), 0);
	made(e, 0);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 300, &a), PAGE_POOL_LATER);
	made(e, -ENOMEM);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 300, &a), PAGE_POOL_LATER);
	made(e, 0);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 300, &a), 0);
	assert_int_equal(a, TABLE_SLAB_PAGES);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 469, &a), PAGE_POOL_FULL);
	assert_false(kernel.making);
}

/* One spare slab, invisible otherwise, up to the ceiling. */
static void test_ahead(void **state)
{
	_cleanup_(page_pool_freep) struct page_pool *e = table_pages(2);
	uint32_t a;

	kernel.later = true;
	page_pool_ahead(e);
	page_pool_ahead(e);
	made(e, 0);
	page_pool_ahead(e);
	assert_false(kernel.making);
	assert_int_equal(page_pool_bytes(e), 1 << 20);
	assert_int_equal(page_pool_room(e).whole_bytes, 1 << 20);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_MAPPINGS, 256, &a), 0);
	page_pool_ahead(e);
	made(e, -ENOMEM);
	page_pool_ahead(e);
	made(e, 0);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_MAPPINGS, 256, &a), 0);
	page_pool_ahead(e);
	assert_false(kernel.making);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_MAPPINGS, 1, &a), PAGE_POOL_FULL);
}

static void test_write(void **state)
{
	_cleanup_(page_pool_freep) struct page_pool *e = table_pages(3);
	uint8_t bytes[3000];
	uint32_t a;

	memset(bytes, 0xa5, sizeof(bytes));
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 512, &a), 0);
	assert_int_equal(page_pool_write(e, (1 << 20) - 1000, bytes, sizeof(bytes)), 0);
	assert_memory_equal((uint8_t *)kernel.all + (1 << 20) - 1000, bytes, sizeof(bytes));
	assert_int_equal(((uint8_t *)kernel.all)[(1 << 20) - 1001], 0);
	assert_int_equal(kernel.mapped, 2);
	page_pool_settle(e);
	assert_int_equal(kernel.mapped, 0);
}

/* At most two slabs are mapped for writing; a third one replaces the least recently used. */
static void test_open(void **state)
{
	_cleanup_(page_pool_freep) struct page_pool *e = table_pages(4);
	static const uint64_t slabs[] = {0, 1, 0, 2, 0, 2, 1, 1, 0};
	static const int maps[] = {1, 2, 2, 3, 3, 3, 4, 4, 5};
	uint32_t a;

	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 768, &a), 0);
	kernel.n_maps = 0;
	for (size_t i = 0; i < array_size(slabs); i++) {
		uint8_t byte = (uint8_t)(i + 1);

		assert_int_equal(page_pool_write(e, (slabs[i] << 20) + i, &byte, 1), 0);
		assert_int_equal(((uint8_t *)kernel.all)[(slabs[i] << 20) + i], byte);
		assert_int_equal(kernel.n_maps, maps[i]);
		assert_true(kernel.mapped <= 2);
	}
}

/* The walkers' data is readable on this side, without a permanent mapping. */
static void test_view(void **state)
{
	_cleanup_(page_pool_freep) struct page_pool *e = table_pages(4);
	uint32_t table_image, maps;

	assert_int_equal(page_pool_reserve(e, PAGE_POOL_IMAGES, 1, &table_image), 0);
	assert_int_equal(page_pool_reserve(e, PAGE_POOL_MAPPINGS, 1, &maps), 0);
	assert_ptr_equal(page_pool_at(e, maps), &kernel.all[maps]);
	assert_int_equal(kernel.mapped, 1);
	assert_ptr_equal(page_pool_view(e, table_image), &kernel.all[table_image]);
	assert_ptr_equal(page_pool_view(e, table_image + 1), &kernel.all[table_image + 1]);
	assert_ptr_equal(page_pool_view(e, maps), &kernel.all[maps]);
	assert_int_equal(kernel.mapped, 2);
	assert_ptr_equal(page_pool_view(e, TABLE_SLAB_PAGES - 1),
			 &kernel.all[TABLE_SLAB_PAGES - 1]);
	assert_int_equal(kernel.mapped, 3);
	assert_in_range(kernel.mapped_pages, TABLE_SLAB_PAGES + 3, TABLE_SLAB_PAGES * 3 / 2);
	assert_null(page_pool_view(e, 2 * TABLE_SLAB_PAGES));
	assert_null(page_pool_view(e, UINT32_MAX));
	page_pool_unview(e);
	assert_int_equal(kernel.mapped, 1);
	page_pool_unview(e);
	assert_int_equal(kernel.mapped, 1);
}

/* By chance, against a byte for each sub-page of the space. */
#define RESERVATIONS 300
struct piece {
	uint32_t first, n; /* in sub-pages */
	bool whole;
};

static void test_churn(void **state)
{
	_cleanup_(page_pool_freep) struct page_pool *e = table_pages(3);
	static uint8_t owner[SLABS * TABLE_SLAB_PAGES * SUBPAGES];
	static struct piece pieces[RESERVATIONS];
	uint64_t seed = 3;
	size_t reserved = 0, refused = 0;

	for (int i = 0; i < 30000; i++) {
		struct piece *p;
		int r;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		p = &pieces[(seed >> 33) % RESERVATIONS];
		if (p->n) {
			memset(&owner[p->first], 0, p->n);
			reserved -= p->n;
			if (p->whole)
				page_pool_release(e, p->first / SUBPAGES, p->n / SUBPAGES);
			else
				page_pool_release_subpages(e, p->first, p->n);
			p->n = 0;
			continue;
		}
		p->whole = seed >> 62 & 1;
		p->n = 1 + (seed >> 20) % (p->whole ? 12 : SUBPAGES - 1);
		if (p->whole)
			r = page_pool_reserve(e, PAGE_POOL_IMAGES, p->n, &p->first);
		else
			r = page_pool_reserve_subpages(e, p->n, &p->first);
		if (r) {
			assert_int_equal(r, PAGE_POOL_FULL);
			refused++;
			p->n = 0;
			continue;
		}
		p->first *= p->whole ? SUBPAGES : 1;
		p->n *= p->whole ? SUBPAGES : 1;
		if (!p->whole)
			assert_int_equal(p->first / SUBPAGES, (p->first + p->n - 1) / SUBPAGES);
		reserved += p->n;
		for (uint32_t k = 0; k < p->n; k++)
			assert_int_equal(owner[p->first + k]++, 0);
		assert_int_equal(page_pool_reserved_bytes(e), reserved * TABLE_SUBPAGE_BYTES);
	}
	assert_true(refused > 0 && refused < 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_of_pages), cmocka_unit_test(test_kinds_apart),
		cmocka_unit_test(test_kept),	      cmocka_unit_test(test_room),
		cmocka_unit_test(test_unmapped),      cmocka_unit_test(test_kernel_fails),
		cmocka_unit_test(test_later),	      cmocka_unit_test(test_ahead),
		cmocka_unit_test(test_write),	      cmocka_unit_test(test_open),
		cmocka_unit_test(test_view),	      cmocka_unit_test(test_churn),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
