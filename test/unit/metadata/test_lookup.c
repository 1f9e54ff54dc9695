// SPDX-License-Identifier: Apache-2.0
/* Lookups of containers, under a clock of the test. */
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "metadata/lookup.h"
#include "support/allocfail.h"

#define SECOND NSEC_PER_SEC

static void tried_later_each_time(void **state)
{
	static const uint64_t pauses_ms[] = {250, 500, 1000, 2000, 4000, 8000, 10000, 10000};
	struct lookups lookups = {0};
	struct lookup *lookup, *again;
	uint64_t now = 5 * SECOND;

	assert_int_equal(lookups_ask(&lookups, "c1", "u1", now, &lookup), LOOKUP_NEW);
	assert_true(lookup_due(lookup, now));
	for (size_t i = 0; i < array_size(pauses_ms); i++) {
		lookup_tried(lookup, now);
		now += pauses_ms[i] * NSEC_PER_MSEC;
		assert_false(lookup_due(lookup, now - 1));
		assert_true(lookup_due(lookup, now));
	}
	lookup->missing = false;
	assert_false(lookup_due(lookup, now));
	assert_int_equal(lookups_ask(&lookups, "c1", "u1", now, &again), 0);
	assert_ptr_equal(lookup, again);
	assert_int_equal(lookup->first_ns, 5 * SECOND);
	assert_int_equal(lookup->asked_ns, now);
	lookups_deinit(&lookups);
}

/* The reads of an hour, at attempts every 10 s. */
static void read_less_and_less(void **state)
{
	struct lookups lookups = {0};
	struct lookup *lookup;
	uint64_t now = 5 * SECOND, pause = LOOKUP_FIRST_NS;
	int n = 0;

	assert_int_equal(lookups_ask(&lookups, "c1", "", now, &lookup), LOOKUP_NEW);
	assert_true(lookup->read_ns <= now);
	for (; now < 3605 * SECOND; now = lookup->due_ns) {
		lookup_tried(lookup, now);
		if (now < lookup->read_ns)
			continue;
		lookup_read(lookup, now);
		assert_int_equal(lookup->read_ns, now + pause);
		pause = pause * 2 < LOOKUP_READ_LONGEST_NS ? pause * 2 : LOOKUP_READ_LONGEST_NS;
		n++;
	}
	assert_in_range(n, 16, 17); /* 12 in the first 10 minutes */
	assert_int_equal(pause, LOOKUP_READ_LONGEST_NS);
	lookups_deinit(&lookups);
}

/* A container's pod may be known later: from another path, or not to the one who asks first. */
static void pod_comes_later(void **state)
{
	struct lookups lookups = {0};
	struct lookup *lookup;

	assert_int_equal(lookups_ask(&lookups, "c1", "", SECOND, &lookup), LOOKUP_NEW);
	lookup_tried(lookup, SECOND);
	lookup->round = 7;
	assert_int_equal(container_new("containerd", &lookup->state), 0);
	assert_int_equal(lookups_ask(&lookups, "c1", "u1", 2 * SECOND, &lookup), 0);
	assert_string_equal(lookup->id, "c1");
	assert_string_equal(lookup->pod_uid, "u1");
	assert_int_equal(lookup->first_ns, SECOND);
	assert_int_equal(lookup->asked_ns, 2 * SECOND);
	assert_int_equal(lookup->round, 7);
	assert_string_equal(lookup->state->source, "containerd");
	assert_true(lookup_due(lookup, 2 * SECOND));
	assert_int_equal(HASH_COUNT(lookups.by_id), 1);
	assert_int_equal(lookups_ask(&lookups, "c1", "", 3 * SECOND, &lookup), 0);
	assert_string_equal(lookup->pod_uid, "u1");
	lookups_deinit(&lookups);
}

static void gone_when_nobody_asks(void **state)
{
	struct lookups lookups = {0};
	struct lookup *a, *b;

	assert_int_equal(lookups_ask(&lookups, "a", "", 0, &a), LOOKUP_NEW);
	assert_int_equal(lookups_ask(&lookups, "b", "", 0, &b), LOOKUP_NEW);
	assert_int_equal(lookups_ask(&lookups, "b", "", SECOND, &b), 0);
	lookups_sweep(&lookups, LOOKUP_GONE_NS - 1);
	assert_int_equal(HASH_COUNT(lookups.by_id), 2);
	lookups_sweep(&lookups, LOOKUP_GONE_NS);
	assert_int_equal(HASH_COUNT(lookups.by_id), 1);
	assert_int_equal(lookups_ask(&lookups, "b", "", 2 * SECOND, &b), 0);
	assert_int_equal(lookups_ask(&lookups, "a", "", 2 * SECOND, &a), LOOKUP_NEW);
	lookups_deinit(&lookups);
}

/* A container of a pod, and an unknown container of the same pod, are two lookups. */
static void without_an_id(void **state)
{
	struct lookups lookups = {0};
	struct lookup *a, *b;

	assert_int_equal(lookups_ask(&lookups, "c", "u", 0, &a), LOOKUP_NEW);
	assert_int_equal(lookups_ask(&lookups, "", "u", 0, &b), LOOKUP_NEW);
	assert_string_equal(b->id, "");
	assert_string_equal(b->pod_uid, "u");
	assert_int_equal(lookups_ask(&lookups, "", "u", 0, &a), 0);
	assert_ptr_equal(a, b);
	lookups_deinit(&lookups);
}

static void never_too_many(void **state)
{
	struct lookups lookups = {0};
	struct lookup *lookup;
	char id[32];

	for (int i = 0; i < LOOKUPS_MAX; i++) {
		snprintf(id, sizeof(id), "%d", i);
		assert_int_equal(lookups_ask(&lookups, id, "", 0, &lookup), LOOKUP_NEW);
	}
	assert_int_equal(lookups_ask(&lookups, "one more", "", 0, &lookup), LOOKUP_FULL);
	assert_int_equal(lookups_ask(&lookups, id, "", 0, &lookup), 0);
	lookups_sweep(&lookups, LOOKUP_GONE_NS);
	assert_int_equal(lookups_ask(&lookups, "one more", "", 0, &lookup), LOOKUP_NEW);
	lookups_deinit(&lookups);
}

static int attempt(void *ctx)
{
	struct lookups lookups = {0};
	struct lookup *lookup;
	int r = lookups_ask(&lookups, ctx, "", 0, &lookup);

	if (r >= 0)
		r = lookups_ask(&lookups, ctx, "u", 0, &lookup);
	lookups_deinit(&lookups);
	return r < 0 ? r : 0;
}

static void without_memory(void **state)
{
	allocfail_each(attempt, "c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tried_later_each_time), cmocka_unit_test(read_less_and_less),
		cmocka_unit_test(pod_comes_later),	 cmocka_unit_test(gone_when_nobody_asks),
		cmocka_unit_test(without_an_id),	 cmocka_unit_test(never_too_many),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
