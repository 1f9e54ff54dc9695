// SPDX-License-Identifier: Apache-2.0
/* Synthetic goroutines: of each release, changing, and odd. cmd/test_heap_kinds.c compares real
 * programs with their own profiles. */
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "goheap/goroutines.h"
#include "support/allocfail.h"
#include "support/heapimage.h"

#define ALLGS	0x600000ull
#define ARRAY	0x610000ull
#define GS	0x620000ull
#define G_BYTES 0x200u
#define STACKS	0x700000ull
#define STACK	0x1000u
#define START	0x401000ull
#define N	4
#define MAPPED	(4 * STACK)

/* Offsets, as in the release's own runtime2.go. */
static const struct {
	const char *version;
	unsigned int syscall_sp, status, id, go_pc, start_pc;
} releases[] = {
	{"go1.16.15", 112, 144, 152, 280, 296},	   {"go1.17.13", 112, 144, 152, 296, 312},
	{"go1.20.14", 112, 144, 152, 296, 312},	   {"go1.21.13", 112, 144, 152, 280, 296},
	{"go1.23.12", 112, 152, 160, 288, 304},	   {"go1.25.5", 104, 144, 152, 280, 296},
	{"go1.26.8", 104, 144, 152, 288, 304},	   {"go1.27.3", 104, 144, 152, 288, 304},
	{"devel go1.99", 104, 144, 152, 288, 304},
};

static uint64_t g_at(size_t i)
{
	return GS + i * G_BYTES;
}

static void put_g(struct heapimage *image, size_t release, size_t i, uint64_t status)
{
	const uint64_t lo = STACKS + i * STACK, sp = lo + STACK - 64;

	heapimage_u64(image, g_at(i), lo);
	heapimage_u64(image, g_at(i) + 8, lo + STACK);
	heapimage_u64(image, g_at(i) + 56, sp);
	heapimage_u64(image, g_at(i) + 64, 0x402000 + i);
	heapimage_u64(image, g_at(i) + releases[release].status, status);
	heapimage_u64(image, g_at(i) + releases[release].id, i + 1);
	heapimage_u64(image, g_at(i) + releases[release].go_pc, 0x403000);
	heapimage_u64(image, g_at(i) + releases[release].start_pc, START);
	heapimage_u64(image, ARRAY + 8 * i, g_at(i));
	heapimage_u64(image, sp, 0x1111 * (i + 1));
}

/* Goroutines: waiting, running, in a system call, and ended. */
static void build(struct heapimage *image, size_t release, struct goruntime *rt)
{
	heapimage_init(image);
	heapimage_map(image, ALLGS, 24);
	heapimage_map(image, ARRAY, 0x1000);
	heapimage_map(image, GS, N * G_BYTES);
	heapimage_map(image, STACKS, MAPPED);
	heapimage_runtime(releases[release].version, rt);
	rt->file.vars[GORUNTIME_ALLGS] = (struct goruntime_place){
		.vaddr = ALLGS,
		.source = GORUNTIME_FROM_SYMTAB,
	};
	heapimage_u64(image, ALLGS, ARRAY);
	heapimage_u64(image, ALLGS + 8, N);
	heapimage_u64(image, ALLGS + 16, N);
	put_g(image, release, 0, GOROUTINE_WAITING | 0x1000); /* during a scan of the stack */
	put_g(image, release, 1, GOROUTINE_RUNNING);
	put_g(image, release, 2, GOROUTINE_SYSCALL);
	heapimage_u64(image, g_at(2) + releases[release].syscall_sp, STACKS + 2 * STACK + 128);
	heapimage_u64(image, g_at(2) + releases[release].syscall_sp + 8, 0x404000);
	put_g(image, release, 3, GOROUTINE_DEAD);
}

struct seen {
	struct goroutine items[N];
	uint64_t words[N]; /* first of the stack */
	size_t n;
	int stop;
};

static int on_goroutine(void *ctx, const struct goroutine *g)
{
	struct seen *seen = ctx;

	assert_true(seen->n < N);
	seen->items[seen->n] = *g;
	if (g->n_stack >= 8)
		memcpy(&seen->words[seen->n], g->stack, 8);
	seen->n++;
	return seen->stop;
}

static int read_image(struct heapimage *image, const struct goruntime *rt, struct seen *seen,
		      struct goroutines_stats *stats)
{
	*seen = (struct seen){.stop = seen->stop};
	return goroutines_read(rt, &image->memory, on_goroutine, seen, stats);
}

static void each_release(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(releases); i++) {
		struct goroutines_stats stats = {0};
		struct heapimage image;
		struct seen seen = {0};
		struct goruntime rt;

		row_begin(releases[i].version);
		build(&image, i, &rt);
		assert_int_equal(read_image(&image, &rt, &seen, &stats), 0);
		assert_int_equal(seen.n, 3);
		assert_true(stats.n == 3 && !stats.n_changed && !stats.n_left_out);
		assert_int_equal(seen.items[0].status, GOROUTINE_WAITING);
		assert_true(seen.items[0].pc == 0x402000 && seen.items[0].go_pc == 0x403000);
		assert_true(seen.items[0].n_stack == 64 && seen.words[0] == 0x1111);
		assert_int_equal(seen.items[1].status, GOROUTINE_RUNNING);
		assert_true(!seen.items[1].pc && !seen.items[1].n_stack);
		assert_true(seen.items[1].start_pc == START && seen.items[1].id == 2);
		assert_int_equal(seen.items[2].status, GOROUTINE_SYSCALL);
		assert_true(seen.items[2].pc == 0x404000 && seen.items[2].n_stack == STACK - 128);
		heapimage_deinit(&image);
	}
}

/* Stack, description, stack: the goroutine has run in between. */
static void goes_on(struct heapimage *image, uint64_t n)
{
	(void)n;
	if (image->memory.n_calls == 4)
		heapimage_u64(image, g_at(0) + 64, 0x405000);
}

static void changed_is_dropped(void **state)
{
	struct goroutines_stats stats = {0};
	struct heapimage image;
	struct seen seen = {0};
	struct goruntime rt;

	(void)state;
	build(&image, 6, &rt);
	image.on_read = goes_on;
	assert_int_equal(read_image(&image, &rt, &seen, &stats), 0);
	assert_int_equal(stats.n_changed, 1);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.items[0].id, 2);
	heapimage_deinit(&image);
}

enum change {
	NO_VARIABLE,
	NO_ARRAY,
	NONE_AT_ALL,
	MORE_THAN_ROOM,
	VERY_MANY,
	ARRAY_NOWHERE,
	G_NOWHERE,
	ALL_ODD,
};

static const struct {
	const char *name;
	enum change change;
} odd_rows[] = {
	{"the variable is not known", NO_VARIABLE},
	{"no array", NO_ARRAY},
	{"none at all", NONE_AT_ALL},
	{"more than the array has room for", MORE_THAN_ROOM},
	{"2^63 of them", VERY_MANY},
	{"the array is not mapped", ARRAY_NOWHERE},
	{"a description is not mapped", G_NOWHERE},
	{"another layout", ALL_ODD},
};

static void change(struct heapimage *image, struct goruntime *rt, enum change what)
{
	switch (what) {
	case NO_VARIABLE:
		rt->file.vars[GORUNTIME_ALLGS] = (struct goruntime_place){0};
		break;
	case NO_ARRAY:
		heapimage_u64(image, ALLGS, 0);
		break;
	case NONE_AT_ALL:
		heapimage_u64(image, ALLGS + 8, 0);
		break;
	case MORE_THAN_ROOM:
		heapimage_u64(image, ALLGS + 16, N - 1);
		break;
	case VERY_MANY:
		heapimage_u64(image, ALLGS + 8, 1ull << 63);
		heapimage_u64(image, ALLGS + 16, 1ull << 63);
		break;
	case ARRAY_NOWHERE:
		heapimage_u64(image, ALLGS, UINT64_MAX - 8);
		break;
	case G_NOWHERE:
		heapimage_u64(image, ARRAY + 8, 0x10);
		break;
	case ALL_ODD:
		for (size_t i = 0; i < N; i++)
			heapimage_u64(image, g_at(i) + 8, STACKS + i * STACK + 0x333);
		break;
	}
}

static void odd(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(odd_rows); i++) {
		struct goroutines_stats stats = {0};
		struct heapimage image;
		struct seen seen = {0};
		struct goruntime rt;

		row_begin(odd_rows[i].name);
		build(&image, 6, &rt);
		change(&image, &rt, odd_rows[i].change);
		assert_int_equal(read_image(&image, &rt, &seen, &stats), GORUNTIME_UNKNOWN_LAYOUT);
		assert_true(stats.n == 0);
		heapimage_deinit(&image);
	}
}

/* The stack of a goroutine is gone; the others are read. */
static void stack_is_gone(void **state)
{
	struct goroutines_stats stats = {0};
	struct heapimage image;
	struct seen seen = {0};
	struct goruntime rt;

	(void)state;
	build(&image, 6, &rt);
	heapimage_u64(&image, g_at(0), 0x900000);
	heapimage_u64(&image, g_at(0) + 8, 0x901000);
	heapimage_u64(&image, g_at(0) + 56, 0x900100);
	assert_int_equal(read_image(&image, &rt, &seen, &stats), 0);
	assert_int_equal(seen.n, 2);
	assert_int_equal(stats.n_changed, 1);
	image.outcome = MEMORY_GONE;
	assert_int_equal(read_image(&image, &rt, &seen, &stats), GORUNTIME_GONE);
	image.outcome = 0;
	seen.stop = -EIO;
	assert_int_equal(read_image(&image, &rt, &seen, &stats), -EIO);
	assert_int_equal(seen.n, 1);
	heapimage_deinit(&image);
}

struct attempt {
	struct heapimage image;
	struct goruntime rt;
};

static int attempt(void *arg)
{
	struct attempt *a = arg;
	struct goroutines_stats stats;
	struct seen seen = {0};

	return read_image(&a->image, &a->rt, &seen, &stats);
}

static void out_of_memory(void **state)
{
	struct attempt a;

	(void)state;
	build(&a.image, 6, &a.rt);
	allocfail_each(attempt, &a);
	heapimage_deinit(&a.image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_release),	 cmocka_unit_test(changed_is_dropped),
		cmocka_unit_test(odd),		 cmocka_unit_test(stack_is_gone),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
