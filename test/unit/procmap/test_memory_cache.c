// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "procmap/memory_cache.h"
#include "support/flatmemory.h"

#define BLOCK MEMORY_CACHE_BLOCK_BYTES
#define BYTES ((size_t)BLOCK * (MEMORY_CACHE_BLOCKS_MAX + 8))

struct fixture {
	uint8_t bytes[BYTES];
	struct flatmemory flat;
	struct memory_cache cache;
};

static int setup(void **state)
{
	static struct fixture f;

	for (size_t i = 0; i < BYTES; i++)
		f.bytes[i] = (uint8_t)(i * 7 + i / BLOCK);
	flatmemory_init(&f.flat, f.bytes, BYTES);
	memory_cache_init(&f.cache, &f.flat.memory);
	*state = &f;
	return 0;
}

/* Reads @n bytes at @off, which must be right, in @calls of the memory beneath. */
static void reads(struct fixture *f, size_t off, size_t n, uint64_t calls)
{
	const uint64_t before = f->flat.memory.n_calls;
	uint8_t got[4 * BLOCK];

	assert_true(n <= sizeof(got));
	assert_int_equal(memory_read(&f->cache.memory, FLATMEMORY_BASE + off, got, n), 0);
	assert_memory_equal(got, f->bytes + off, n);
	assert_int_equal(f->flat.memory.n_calls - before, calls);
}

static void test_blocks(void **state)
{
	struct fixture *f = *state;

	reads(f, 10, 8, 1);
	reads(f, 0, 8, 0);
	reads(f, 0, BLOCK, 0);
	reads(f, BLOCK - 8, 8, 0);
	reads(f, BLOCK - 4, 8, 1); /* and the next block */
	reads(f, BLOCK, BLOCK, 0);
	reads(f, 2 * BLOCK - 1, BLOCK, 1);
	reads(f, 8 * BLOCK, BLOCK + 1, 1); /* larger: not kept */
	reads(f, 8 * BLOCK, BLOCK + 1, 1);
	reads(f, 8 * BLOCK, 8, 1);
	reads(f, 9 * BLOCK, 0, 0);
}

/* Several ranges take one call, with a block of two of them once. */
static void test_ranges(void **state)
{
	struct fixture *f = *state;
	uint8_t got[4][2 * BLOCK];
	const struct memory_range ranges[] = {
		{FLATMEMORY_BASE + 3 * BLOCK, got[0], 16},
		{FLATMEMORY_BASE + 3 * BLOCK + 64, got[1], BLOCK},
		{FLATMEMORY_BASE + 5 * BLOCK + 1, got[2], 2 * BLOCK},
		{FLATMEMORY_BASE + 5, got[3], 0},
	};

	assert_int_equal(memory_read_ranges(&f->cache.memory, ranges, array_size(ranges)), 0);
	assert_int_equal(f->flat.memory.n_calls, 1);
	for (size_t i = 0; i < array_size(ranges); i++)
		assert_memory_equal(got[i], f->bytes + (ranges[i].addr - FLATMEMORY_BASE),
				    ranges[i].n);
	reads(f, 4 * BLOCK, 64, 0);
	reads(f, 5 * BLOCK, 64, 1);
}

/* The cache has the words of then, until it is to forget them. */
static void test_forget(void **state)
{
	struct fixture *f = *state;
	uint8_t before = f->bytes[40], got;

	reads(f, 0, 64, 1);
	f->bytes[40]++;
	assert_int_equal(memory_read(&f->cache.memory, FLATMEMORY_BASE + 40, &got, 1), 0);
	assert_int_equal(got, before);
	assert_int_equal(
		memory_read(memory_beneath(&f->cache.memory), FLATMEMORY_BASE + 40, &got, 1), 0);
	assert_int_equal(got, f->bytes[40]);
	memory_forget(&f->cache.memory);
	reads(f, 40, 1, 1);

	memory_forget(&f->flat.memory); /* no cache */
	assert_ptr_equal(memory_beneath(&f->flat.memory), &f->flat.memory);
}

/* A full cache begins anew, also with a call that fills it alone. */
static void test_ceiling(void **state)
{
	static uint8_t got[MEMORY_CACHE_BLOCKS_MAX + 1];
	struct memory_range ranges[MEMORY_CACHE_BLOCKS_MAX + 1];
	struct fixture *f = *state;

	for (size_t i = 0; i < MEMORY_CACHE_BLOCKS_MAX; i++)
		reads(f, i * BLOCK + 9, 8, 1);
	reads(f, 0, 8, 0);
	reads(f, MEMORY_CACHE_BLOCKS_MAX * BLOCK, 8, 1);
	reads(f, 0, 8, 1);

	for (size_t i = 0; i < array_size(ranges); i++)
		ranges[i] = (struct memory_range){FLATMEMORY_BASE + i * BLOCK, &got[i], 1};
	f->flat.memory.n_calls = 0;
	assert_int_equal(memory_read_ranges(&f->cache.memory, ranges, MEMORY_CACHE_BLOCKS_MAX), 0);
	reads(f, (MEMORY_CACHE_BLOCKS_MAX - 1) * BLOCK, 8, 0);
	assert_int_equal(memory_read_ranges(&f->cache.memory, ranges, array_size(ranges)), 0);
	for (size_t i = 0; i < array_size(ranges); i++)
		assert_int_equal(got[i], f->bytes[i * BLOCK]);
	reads(f, 0, 8, 1);
}

/* At the end of the memory the answers are those without a cache. */
static void test_end(void **state)
{
	struct fixture *f = *state;
	uint8_t got[64];
	size_t n = 0;

	flatmemory_init(&f->flat, f->bytes, BLOCK + 100); /* ends in a block */
	reads(f, 10, 8, 1);
	reads(f, BLOCK + 60, 32, 2);
	reads(f, 10, 8, 1); /* forgotten */
	assert_int_equal(memory_read(&f->cache.memory, FLATMEMORY_BASE + BLOCK + 69, got, 32),
			 MEMORY_UNMAPPED);
	assert_int_equal(
		memory_read_some(&f->cache.memory, FLATMEMORY_BASE + BLOCK + 69, got, 32, &n), 0);
	assert_int_equal(n, 31);
	assert_memory_equal(got, f->bytes + BLOCK + 69, n);
	assert_int_equal(memory_read(&f->cache.memory, UINT64_MAX - 3, got, 4), MEMORY_UNMAPPED);
	assert_int_equal(memory_read(&f->cache.memory, UINT64_MAX - 3, got, 16), MEMORY_UNMAPPED);
	assert_int_equal(memory_check(&f->cache.memory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_blocks, setup),
		cmocka_unit_test_setup(test_ranges, setup),
		cmocka_unit_test_setup(test_forget, setup),
		cmocka_unit_test_setup(test_ceiling, setup),
		cmocka_unit_test_setup(test_end, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
