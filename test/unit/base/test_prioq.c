// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "base/prioq.h"

#define N 200

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* The smallest key of the items in the queue, by a look at all of them. */
static const struct prioq_item *smallest(const struct prioq_item *items, size_t n)
{
	const struct prioq_item *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (items[i].is_in && (!best || items[i].key < best->key))
			best = &items[i];
	return best;
}

/* Items come, move and go in any order, with @n_keys different keys. */
static void check(uint64_t n_keys)
{
	struct prioq_item items[N] = {0};
	uint64_t random = n_keys;
	struct prioq q = {NULL};

	for (size_t round = 0; round < 20 * N; round++) {
		struct prioq_item *item = &items[next_random(&random) % N];

		if (next_random(&random) % 3)
			prioq_put(&q, item, next_random(&random) % n_keys);
		else if (next_random(&random) % 2 && q.first)
			prioq_remove(&q, q.first);
		else
			prioq_remove(&q, item);
		if (!smallest(items, N))
			assert_null(q.first);
		else
			assert_int_equal(q.first->key, smallest(items, N)->key);
	}
	for (uint64_t last = 0; q.first; prioq_remove(&q, q.first)) {
		assert_true(q.first->key >= last);
		last = q.first->key;
	}
	assert_null(smallest(items, N));
}

static void test_any_order(void **state)
{
	(void)state;
	check(1);
	check(3);
	check(1u << 30);
}

static void test_ends(void **state)
{
	struct prioq_item a = {0}, b = {0};
	struct prioq q = {NULL};

	(void)state;
	prioq_remove(&q, &a);
	assert_null(q.first);
	prioq_put(&q, &a, UINT64_MAX);
	prioq_put(&q, &b, 0);
	assert_ptr_equal(q.first, &b);
	prioq_put(&q, &a, 0);
	prioq_put(&q, &b, 1);
	assert_ptr_equal(q.first, &a);
	prioq_remove(&q, &a);
	prioq_remove(&q, &a);
	assert_ptr_equal(q.first, &b);
	prioq_remove(&q, &b);
	assert_null(q.first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
