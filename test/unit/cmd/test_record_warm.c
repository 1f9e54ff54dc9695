// SPDX-License-Identifier: Apache-2.0
/* When a recording begins. */
#include "support/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/root.h"
#include "cmd/record_warm.h"

#define S NSEC_PER_SEC

/* Looks 50 ms apart, each with another drain; the state from the start until a moment. */
static const struct warm_row {
	const char *name;
	uint64_t missing_ns, loading_ns, late_ns; /* until then */
	uint64_t want_ns;			  /* the beginning */
} warm_rows[] = {
	{"nothing missing", 0, 0, 0, S / 5},
	{"tables", 3 * S, 0, 0, 3 * S + S / 5},
	{"tables without an end", UINT64_MAX, 0, 0, 15 * S},
	{"a load", 0, 3 * S, 0, 3 * S + S / 5},
	{"a load, longer than tables may take", 0, 40 * S, 0, 40 * S},
	{"the same, and tables", 20 * S, 40 * S, 0, 40 * S},
	{"a load without an end", 0, UINT64_MAX, 0, 60 * S},
	{"a late first sample", 0, 0, 2 * S, 2 * S + S / 5},
	{"a load after the first sample", 0, 20 * S, 5 * S, 20 * S},
	{"no sample", 0, 0, UINT64_MAX, 15 * S},
};

static uint64_t begins_ns(const struct warm_row *row)
{
	struct record_warm warm = {0};
	struct record_look look = {0};

	do {
		look.ns += S / 20;
		look.n_drains++;
		look.n_missing = look.ns < row->missing_ns ? 2 : 0;
		look.n_loading = look.ns < row->loading_ns;
		look.is_late = look.ns < row->late_ns;
	} while (!record_warm_is_over(&warm, &look));
	assert_int_equal(warm.last.ns, look.ns);
	return look.ns;
}

static void test_over(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(warm_rows); i++) {
		uint64_t at_ns;

		row_begin(warm_rows[i].name);
		at_ns = begins_ns(&warm_rows[i]);
		assert_true(at_ns + S / 20 >= warm_rows[i].want_ns);
		assert_true(at_ns <= warm_rows[i].want_ns + S / 20);
	}
}

/* Looks without a drain tell nothing. */
static void test_drains(void **state)
{
	struct record_warm warm = {0};
	struct record_look look = {.n_drains = 0};

	(void)state;
	for (size_t i = 0; i < 100; i++)
		assert_false(record_warm_is_over(&warm, &look));
	for (look.n_drains = 1; look.n_drains < RECORD_WARM_DRAINS; look.n_drains++)
		assert_false(record_warm_is_over(&warm, &look));
	assert_true(record_warm_is_over(&warm, &look));
}

static pid_t child(bool burns)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	for (;;)
		if (!burns)
			pause();
}

static void test_runs(void **state)
{
	pid_t burning = child(true), waiting = child(false);
	struct root proc;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_true(record_warm_runs(&proc, burning));
	while (record_warm_runs(&proc, waiting)) /* until its first wait */
		usleep(1000);
	kill(burning, SIGKILL);
	kill(waiting, SIGKILL);
	waitpid(burning, NULL, 0);
	waitpid(waiting, NULL, 0);
	assert_false(record_warm_runs(&proc, burning));
	root_deinit(&proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_over),
		cmocka_unit_test(test_drains),
		cmocka_unit_test(test_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
