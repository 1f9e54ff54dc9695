// SPDX-License-Identifier: Apache-2.0
/*
 * The processes that the reader of CPython knows: an owner with any number of processes takes at
 * most a fifth (base/share.h), and the processes of other owners are still probed.
 */
#include "support/test.h"

#include <unistd.h>

#include "base/loop.h"
#include "base/metric.h"
#include "base/root.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "runtimes/runtime_budget.h"
#include "runtimes/runtimes.h"
#include "support/metrics.h"
#include "support/ownspace.h"

#define PROCESSES_MAX 8192
#define GREEDY	      1639 /* of the share: the first that is no quarter of the free part */
#define SECOND	      1311 /* the same after it */

struct fixture {
	struct root proc;
	struct loop *loop;
	struct address_space_cache *spaces;
	struct pid_id self;
	struct runtime_budget budget;
	void *reader;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct runtime_host host;

	assert_non_null(f);
	assert_int_equal(root_open("/proc", &f->proc), 0);
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(address_space_cache_new(&f->proc, &f->spaces), 0);
	assert_int_equal(pid_read(&f->proc, getpid(), &f->self), 0);
	host = (struct runtime_host){.proc = &f->proc, .loop = f->loop, .budget = &f->budget};
	assert_int_equal(runtime_python.new(&host, &f->reader), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	runtime_python.free(f->reader);
	runtime_budget_deinit(&f->budget);
	address_space_cache_free(f->spaces);
	loop_free(f->loop);
	root_deinit(&f->proc);
	free(f);
	return 0;
}

static void collect(void *reader, struct metric_sink *sink)
{
	static const struct metric_family_desc desc = {"podprof_runtime_processes_refused",
						       METRIC_COUNTER, "", NULL};

	metric_family(sink, &desc);
	runtime_python.collect(reader, RUNTIME_FAMILY_REFUSED, sink);
}

static uint64_t n_refused(const struct fixture *f)
{
	return metrics_get(collect, f->reader, "podprof_runtime_processes_refused", "python");
}

/* @n processes that differ by their starts; the number of processes known then. */
static uint64_t look_at(struct fixture *f, uint64_t owner, uint64_t n)
{
	struct address_space *space = ownspace(f->spaces, owner);
	const uint64_t before = n_refused(f);

	for (uint64_t i = 0; i < n; i++) {
		const struct address_space_who who = {
			.pid = f->self, .start_ns = owner << 32 | i, .owner = owner};

		assert_false(runtime_python.runs(f->reader, &who, space));
	}
	return n - (n_refused(f) - before);
}

static void test_greedy_owner(void **state)
{
	assert_int_equal(look_at(*state, 1, PROCESSES_MAX), GREEDY);
	assert_int_equal(look_at(*state, 1, 1), 1); /* one of the known */
	assert_int_equal(look_at(*state, 2, 1), 1);
	assert_int_equal(look_at(*state, 2, PROCESSES_MAX), SECOND);
	assert_int_equal(look_at(*state, 3, 100), 100);
}

/* Any number of owners. */
static void test_full(void **state)
{
	uint64_t n = 0;

	for (uint64_t owner = 1; owner <= 64; owner++)
		n += look_at(*state, owner, 2000);
	assert_true(n <= PROCESSES_MAX && n > PROCESSES_MAX - 100);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(test_greedy_owner), TEST(test_full)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
