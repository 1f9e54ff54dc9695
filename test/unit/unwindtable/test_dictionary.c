// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "support/allocfail.h"
#include "unwindtable/dictionary.h"

DEFINE_CLEANUP(struct dictionary *, dictionary_freep, dictionary_free);

#define N     8
#define QUIET DICTIONARY_QUIET_NS

static uint32_t values[N];

static struct dictionary *dictionary(void)
{
	const struct dictionary_opts opts = {values, N, sizeof(values[0])};
	struct dictionary *d;

	memset(values, 0, sizeof(values));
	assert_int_equal(dictionary_new(&opts, &d), 0);
	return d;
}

static uint16_t take(struct dictionary *d, uint32_t value, uint64_t now_ns)
{
	uint16_t number = UINT16_MAX;

	assert_int_equal(dictionary_take(d, &value, now_ns, &number), 0);
	assert_true(number < N);
	assert_int_equal(values[number], value);
	return number;
}

static void expect_full(struct dictionary *d, uint32_t value, uint64_t now_ns)
{
	uint16_t number;

	assert_int_equal(dictionary_take(d, &value, now_ns, &number), DICTIONARY_FULL);
}

static void test_shared(void **state)
{
	_cleanup_(dictionary_freep) struct dictionary *d = dictionary();
	uint16_t number = take(d, 7, 0);

	assert_int_not_equal(number, 0);
	assert_int_equal(take(d, 7, 0), number);
	assert_int_not_equal(take(d, 8, 0), number);
	assert_int_equal(take(d, 0, 0), 0);
	assert_int_equal(dictionary_used(d), 2);
	dictionary_drop(d, number, 0);
	assert_int_equal(dictionary_used(d), 2);
	dictionary_drop(d, number, 0);
	dictionary_drop(d, 0, 0);
	assert_int_equal(dictionary_used(d), 1);
}

/* A number keeps the meaning for this time after the last holder, and the holder can return. */
static void test_quiet(void **state)
{
	_cleanup_(dictionary_freep) struct dictionary *d = dictionary();
	uint16_t numbers[N];

	for (uint32_t i = 1; i < N; i++)
		numbers[i] = take(d, i, 0);
	expect_full(d, 100, 0);
	dictionary_drop(d, numbers[3], 5 * QUIET);
	dictionary_drop(d, numbers[5], 5 * QUIET + QUIET / 2);
	expect_full(d, 100, 6 * QUIET - 1000000);
	assert_int_equal(take(d, 3, 6 * QUIET - 1000000), numbers[3]);
	expect_full(d, 100, 6 * QUIET);
	assert_int_equal(take(d, 100, 7 * QUIET), numbers[5]);
	dictionary_drop(d, numbers[3], 7 * QUIET);
	assert_int_equal(values[numbers[3]], 3);
	assert_int_equal(take(d, 101, 8 * QUIET), numbers[3]);
}

/* Compared with a plain list of holders, at random. */
static void test_churn(void **state)
{
	_cleanup_(dictionary_freep) struct dictionary *d = dictionary();
	uint64_t now_ns = 10 * QUIET, seed = 1, freed_ns[N] = {0};
	uint32_t held[N] = {0}, was[N] = {0};

	for (int i = 0; i < 20000; i++) {
		uint32_t value, used = 0;
		uint16_t number;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		value = 1 + (seed >> 33) % 12;
		now_ns += QUIET / 10;
		if (seed >> 60 & 1 && dictionary_take(d, &value, now_ns, &number) == 0) {
			if (values[number] != was[number])
				assert_true(!held[number] && now_ns - freed_ns[number] >= QUIET);
			was[number] = values[number];
			assert_int_equal(values[number], value);
			held[number]++;
		}
		number = 1 + (seed >> 40) % (N - 1);
		if (held[number]) {
			dictionary_drop(d, number, now_ns);
			held[number]--;
			freed_ns[number] = now_ns;
		}
		for (uint32_t k = 0; k < N; k++) {
			used += held[k] > 0;
			if (held[k])
				assert_int_equal(values[k], was[k]);
		}
		assert_int_equal(dictionary_used(d), used);
	}
}

static int make(void *ctx)
{
	const struct dictionary_opts opts = {values, N, sizeof(values[0])};
	_cleanup_(dictionary_freep) struct dictionary *d = NULL;

	return dictionary_new(&opts, &d);
}

static void test_no_memory(void **state)
{
	allocfail_each(make, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_quiet),
		cmocka_unit_test(test_churn),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
