// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <pthread.h>

#include "base/loop.h"
#include "support/until.h"
#include "unwindtable/slabmaker.h"

struct bench {
	struct loop *loop;
	struct slabmaker *maker;
	struct page_pool_slabs slabs;
	pthread_t thread; /* maker of the last slab */
	int n_made;
	int n_told;
	int result;
	struct table_page table_page;
};

static int make(void *ctx, uint32_t number)
{
	struct bench *b = ctx;

	b->thread = pthread_self();
	b->n_made++;
	return number == 7 ? -ENOMEM : 0;
}

static struct table_page *map(void *ctx, uint32_t number, uint32_t first, uint32_t n)
{
	struct bench *b = ctx;

	return number == 3 && first == 16 && n == 8 ? &b->table_page : NULL;
}

static void unmap(void *ctx, struct table_page *mem, uint32_t n)
{
	struct bench *b = ctx;

	assert_ptr_equal(mem, &b->table_page);
	assert_int_equal(n, 8);
	b->table_page.bytes[0]++;
}

static void made(void *ctx, int result)
{
	struct bench *b = ctx;

	b->n_told++;
	b->result = result;
	/* ask for the next one at once, like a caller who needs two */
	if (b->n_told == 1)
		assert_int_equal(b->slabs.make(b->slabs.ctx, 7), PAGE_POOL_LATER);
}

static bool told_twice(void *ctx)
{
	const struct bench *b = ctx;

	return b->n_told == 2;
}

static void start(struct bench *b)
{
	struct slabmaker_opts opts = {.slabs = {b, make, map, unmap}, .made = made, .ctx = b};

	*b = (struct bench){.result = 99};
	assert_int_equal(loop_new(&b->loop), 0);
	opts.loop = b->loop;
	assert_int_equal(slabmaker_new(&opts, &b->maker), 0);
	b->slabs = slabmaker_slabs(b->maker);
}

static void test_made(void **state)
{
	struct bench b;

	start(&b);
	assert_int_equal(b.slabs.make(b.slabs.ctx, 3), PAGE_POOL_LATER);
	loop_until(b.loop, told_twice, &b);
	assert_int_equal(b.n_made, 2);
	assert_int_equal(b.result, -ENOMEM);
	assert_false(pthread_equal(b.thread, pthread_self()));
	assert_ptr_equal(b.slabs.map(b.slabs.ctx, 3, 16, 8), &b.table_page);
	b.slabs.unmap(b.slabs.ctx, &b.table_page, 8);
	assert_int_equal(b.table_page.bytes[0], 1);
	slabmaker_free(b.maker);
	loop_free(b.loop);
}

/* The receiver may be gone. */
static void test_freed(void **state)
{
	struct bench b;

	start(&b);
	assert_int_equal(b.slabs.make(b.slabs.ctx, 1), PAGE_POOL_LATER);
	slabmaker_free(b.maker);
	assert_int_equal(b.n_told, 0);
	loop_free(b.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made),
		cmocka_unit_test(test_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
