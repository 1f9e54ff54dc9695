// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/keysort.h"

#define N_MAX 3000

struct item {
	uint64_t key;
	uint64_t number; /* in the order before */
};
_Static_assert(sizeof(struct item) == KEYSORT_BYTES, "an item");

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state ^ *state >> 32;
}

static int by_key_and_number(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* The same as a sort by comparisons, and stable. */
static void check(const char *name, const struct item *items, size_t n)
{
	struct item *expected = calloc(n + 1, sizeof(*expected)), *sorted;
	struct item *copy = calloc(n + 1, sizeof(*copy)), *room = calloc(n + 1, sizeof(*room));

	assert_true(expected && copy && room);
	memcpy(expected, items, n * sizeof(*items));
	memcpy(copy, items, n * sizeof(*items));
	qsort(expected, n, sizeof(*expected), by_key_and_number);
	sorted = keysort(copy, room, n);
	assert_true(sorted == copy || sorted == room);
	if (memcmp(sorted, expected, n * sizeof(*expected)) != 0)
		fail_msg("%s, %zu items", name, n);
	free(expected);
	free(copy);
	free(room);
}

static void test_orders(void **state)
{
	/* the bytes in which keys differ */
	static const struct {
		const char *name;
		uint64_t mask, base;
	} rows[] = {
		{"equal keys", 0, 0x400000},
		{"a bit", 1ull << 63, 0},
		{"one byte", 0xff, 0x1234567800},
		{"code of a program", 0xffffff, 0x400000},
		{"a byte between equal ones", 0xff00ff00, 0x5500550055},
		{"few keys", 0x70000, 0x10},
		{"all bytes", UINT64_MAX, 0},
		{"the highest byte", 0xffull << 56, 0x42},
	};
	static const size_t counts[] = {0, 1, 2, 3, 255, 256, 257, N_MAX};
	static struct item items[N_MAX];
	uint64_t seed = 1;

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++)
		for (size_t k = 0; k < array_size(counts); k++) {
			for (size_t j = 0; j < counts[k]; j++)
				items[j] = (struct item){
					rows[i].base | (next_random(&seed) & rows[i].mask), j};
			check(rows[i].name, items, counts[k]);
		}
}

static void test_sorted(void **state)
{
	static struct item items[N_MAX];

	(void)state;
	for (size_t i = 0; i < N_MAX; i++)
		items[i] = (struct item){i * 0x1001, i};
	check("ascending", items, N_MAX);
	for (size_t i = 0; i < N_MAX; i++)
		items[i] = (struct item){(N_MAX - i) * 0x1001, i};
	check("descending", items, N_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_sorted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
