// SPDX-License-Identifier: Apache-2.0
/* When a recording begins. */
#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/root.h"
#include "cmd/record_warm.h"

#define S    NSEC_PER_SEC
#define LOOK (S / 20)

/* Looks LOOK apart, each with another drain; the state from the start until a moment. */
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

static struct record_warm warm_of(const struct warm_row *row)
{
	struct record_warm warm = {0};
	struct record_look look = {0};

	do {
		look.ns += LOOK;
		look.n_drains++;
		look.n_missing[RECORD_NEEDS_TABLES] = look.ns < row->missing_ns ? 2 : 0;
		look.n_missing[RECORD_NEEDS_WALKS] = look.ns < row->loading_ns;
		look.n_missing[RECORD_NEEDS_SAMPLES] = look.ns < row->late_ns;
	} while (!record_warm_is_over(&warm, &look));
	assert_int_equal(warm.last.ns, look.ns);
	return warm;
}

static void test_over(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(warm_rows); i++) {
		uint64_t at_ns;

		row_begin(warm_rows[i].name);
		at_ns = warm_of(&warm_rows[i]).last.ns;
		assert_true(at_ns + LOOK >= warm_rows[i].want_ns);
		assert_true(at_ns <= warm_rows[i].want_ns + LOOK);
	}
}

static void test_show(void **state)
{
	static const struct {
		struct warm_row warm;
		const char *want;
	} rows[] = {
		{{"nothing", 0, 0, 0, 0}, "waited 0.2 s before the recording\n"},
		{{"tables", 3 * S + LOOK, 0, 0, 0},
		 "waited 3.2 s before the recording: 3.0 s for unwind tables\n"},
		{{"a walk, and no tables", 0, 5 * S + LOOK, 0, 0},
		 "waited 5.2 s before the recording: 5.0 s for the walk of a language runtime\n"},
		{{"a first sample", 0, 0, 2 * S + LOOK, 0},
		 "waited 2.2 s before the recording: 2.0 s for a first sample\n"},
		{{"several at once", 4 * S + LOOK, 6 * S + LOOK, S + LOOK, 0},
		 "waited 6.2 s before the recording: 4.0 s for unwind tables, 6.0 s for the walk "
		 "of "
		 "a language runtime, 1.0 s for a first sample\n"},
		{{"without an end", UINT64_MAX, S + LOOK, UINT64_MAX, 0},
		 "waited 15.0 s before the recording: 15.0 s for unwind tables, 1.0 s for the walk "
		 "of "
		 "a language runtime, 15.0 s for a first sample; still missing: unwind tables (2), "
		 "a "
		 "first sample\n"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct record_warm warm = warm_of(&rows[i].warm);
		char *text = NULL;
		size_t size;
		FILE *to = open_memstream(&text, &size);

		row_begin(rows[i].warm.name);
		assert_non_null(to);
		record_warm_show(&warm, to);
		assert_int_equal(fclose(to), 0);
		assert_string_equal(text, rows[i].want);
		free(text);
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
		cmocka_unit_test(test_show),
		cmocka_unit_test(test_drains),
		cmocka_unit_test(test_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
