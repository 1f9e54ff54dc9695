// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "cpu/waiting_samples.h"
#include "discovery/pid.h"
#include "profile/sample.h"

struct bench {
	size_t n_calls;
	size_t n_forced;
	uint64_t last; /* pid */
	bool stays;    /* the wait of the samples is not over */
};

static bool on_sample(void *ctx, const struct sample *sample, bool off_cpu,
		      const struct sample_time *taken, bool force)
{
	struct bench *b = ctx;

	assert_int_equal(sample->n_user, 2);
	assert_int_equal(sample->user[1], 0x2000);
	assert_int_equal(off_cpu, sample->pid.pid == 2);
	assert_int_equal(taken->until_ns, sample->pid.pid);
	b->n_calls++;
	b->n_forced += force;
	b->last = sample->pid.pid;
	return force || !b->stays;
}

static void add(struct waiting_samples *ws, uint32_t pid)
{
	static const uint64_t words[] = {0x1000, 0x2000};
	const struct sample sample = {
		.pid = {.pid = pid}, .kernel = words, .user = words, .n_user = 2, .count = 1};
	const struct sample_time taken = {0, pid};

	assert_true(waiting_samples_add(ws, &sample, 0, pid == 2, &taken));
}

/* A slice without time is one sample. A sample whose process has not changed takes no part. */
static void test_slices(void **state)
{
	struct bench b = {0};
	struct waiting_samples *ws;

	(void)state;
	assert_int_equal(waiting_samples_new(on_sample, &b, &ws), 0);
	assert_false(waiting_samples_retry(ws, false, 0));
	for (size_t i = 0; i < 3; i++)
		add(ws, 1);
	add(ws, 2);
	assert_false(waiting_samples_retry(ws, false, 0));
	assert_int_equal(b.n_calls, 0);
	waiting_samples_changed(ws, 1);
	for (size_t i = 1; i < 3; i++) {
		assert_true(waiting_samples_retry(ws, false, 0));
		assert_int_equal(b.n_calls, i);
	}
	assert_false(waiting_samples_retry(ws, false, 0));
	assert_int_equal(b.n_calls, 3);
	assert_int_equal(b.last, 1);
	assert_int_equal(waiting_samples_n(ws), 1);
	waiting_samples_changed(ws, 2);
	assert_false(waiting_samples_retry(ws, false, 0));
	assert_int_equal(b.last, 2);
	assert_int_equal(waiting_samples_n(ws), 0);
	waiting_samples_free(ws);
}

/* A sample that waits on is not called again in the same slice, nor before the next change. */
static void test_waits_on(void **state)
{
	struct bench b = {.stays = true};
	struct waiting_samples *ws;

	(void)state;
	assert_int_equal(waiting_samples_new(on_sample, &b, &ws), 0);
	add(ws, 1);
	add(ws, 1);
	waiting_samples_changed(ws, 1);
	assert_true(waiting_samples_retry(ws, false, 0));
	assert_false(waiting_samples_retry(ws, false, 0));
	assert_false(waiting_samples_retry(ws, false, 0));
	assert_int_equal(b.n_calls, 2);
	assert_int_equal(waiting_samples_n(ws), 2);
	assert_false(waiting_samples_retry(ws, true, UINT64_MAX));
	assert_int_equal(b.n_forced, 2);
	assert_int_equal(waiting_samples_n(ws), 0);
	waiting_samples_free(ws);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_waits_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
