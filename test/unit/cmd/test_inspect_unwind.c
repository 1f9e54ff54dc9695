// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "support/command.h"
#include "support/fixture.h"

static void run(const char *what, const char *name, struct command_run *ret)
{
	char path[FIXTURE_PATH_MAX], line[FIXTURE_PATH_MAX + 64];

	snprintf(line, sizeof(line), "inspect unwind %s %s", fixture_path(name, path), what);
	row_begin(line);
	command_run(line, ret);
}

/* Each line is "START END rule", and begins at the end of the previous line. */
static void check_rows(const char *out)
{
	unsigned long long start, end, last = 0;
	char rule[96];
	size_t n = 0;

	for (const char *line = out; *line; line = strchr(line, '\n') + 1, n++) {
		// NOLINTNEXTLINE(cert-err34-c): our own numbers
		assert_int_equal(sscanf(line, "%llx %llx %95[^\n]", &start, &end, rule), 3);
		assert_true(start < end && (n == 0 || start == last));
		last = end;
	}
	assert_true(n > 5);
}

static void test_rows(void **state)
{
	struct command_run r;

	(void)state;
	run("--rows", "plain-static", &r);
	assert_int_equal(r.status, CMD_DONE);
	check_rows(r.out.data);
	command_assert_has(&r.out, " stop\n");
	command_assert_has(&r.out, " signal\n");
	command_assert_has(&r.out, " cfa=rsp+16 fp=cfa-16 ra=cfa-8\n");
	command_run_deinit(&r);
	run("--rows --json", "plain-pie", &r);
	assert_int_equal(r.status, CMD_DONE);
	command_assert_has(&r.out, "\"rule\":\"cfa=rsp+8 fp=same ra=cfa-8\"}\n");
	command_run_deinit(&r);
}

static void test_summary(void **state)
{
	struct command_run r;

	(void)state;
	run("", "plain-pie", &r);
	assert_int_equal(r.status, CMD_DONE);
	command_assert_has(&r.out, "functions ");
	command_assert_has(&r.out, "rows register ");
	command_run_deinit(&r);
	run("--json", "plain-pie", &r);
	assert_int_equal(r.status, CMD_DONE);
	command_assert_has(&r.out, "\"rows_by_kind\":{");
	command_run_deinit(&r);
}

/* The packed table agrees with the rows. */
static void test_lookup(void **state)
{
	unsigned long long start, end;
	char rule[96], what[64];
	struct command_run r, found;

	(void)state;
	run("--rows", "plain-fixed", &r);
	assert_int_equal(r.status, CMD_DONE);
	// NOLINTNEXTLINE(cert-err34-c): our own numbers
	assert_int_equal(sscanf(r.out.data, "%llx %llx %95[^\n]", &start, &end, rule), 3);
	snprintf(what, sizeof(what), "--lookup 0x%llx", end - 1);
	run(what, "plain-fixed", &found);
	assert_int_equal(found.status, CMD_DONE);
	command_assert_has(&found.out, rule);
	command_run_deinit(&found);
	run("--lookup 0 --json", "plain-fixed", &found);
	assert_int_equal(found.status, CMD_DONE);
	command_assert_has(&found.out, "gap");
	command_run_deinit(&found);
	command_run_deinit(&r);
}

static void inspect_pid(pid_t pid, const char *more, struct command_run *ret)
{
	char line[80];

	snprintf(line, sizeof(line), "inspect unwind --pid %d %s", (int)pid, more);
	row_begin(line);
	command_run(line, ret);
}

/* Of an idle process, so no podprof can have a sample. */
static void test_pid(void **state)
{
	struct command_run r;
	char lookup[64];
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(child > 0);
	inspect_pid(child, "", &r);
	assert_int_equal(r.status, CMD_DONE);
	command_assert_has(&r.out, "computed, not read from the kernel: ");
	command_assert_has(&r.out, "/test_inspect_unwind\n");
	command_assert_has(&r.out, "/libc.so.6\n");
	command_run_deinit(&r);
	inspect_pid(child, "--json", &r);
	assert_int_equal(r.status, CMD_DONE);
	command_assert_has(&r.out, "\"source\":\"computed\"");
	command_assert_has(&r.out, "\"table\":{\"start\":\"0x");
	command_run_deinit(&r);
	snprintf(lookup, sizeof(lookup), "--lookup %llx",
		 (unsigned long long)(uintptr_t)command_run);
	inspect_pid(child, lookup, &r);
	assert_int_equal(r.status, CMD_DONE);
	command_assert_has(&r.out, " cfa=");
	command_assert_has(&r.out, "/test_inspect_unwind\n");
	command_run_deinit(&r);
	inspect_pid(child, "--lookup 10", &r);
	assert_int_equal(r.status, CMD_FAILED);
	command_assert_has(&r.err, "in no executable mapping");
	command_run_deinit(&r);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void test_errors(void **state)
{
	static const struct {
		const char *line;
		int status;
		const char *err;
	} rows[] = {
		{"inspect unwind", CMD_USAGE, "give a program or library"},
		{"inspect unwind --color x", CMD_USAGE, "unknown option"},
		{"inspect unwind /bin/ls --lookup xyz", CMD_USAGE, "not 'xyz'"},
		{"inspect unwind /bin/ls --lookup", CMD_USAGE, "--lookup"},
		{"inspect unwind /bin/ls /bin/cat", CMD_USAGE, "give one file"},
		{"inspect unwind /bin/ls --pid 1", CMD_USAGE, "not both"},
		{"inspect unwind --pid 1 --rows", CMD_USAGE, "--rows needs a file"},
		{"inspect unwind --pid x", CMD_USAGE, "not 'x'"},
		{"inspect unwind --pid 4194304", CMD_FAILED, "check the number"},
		{"inspect unwind --pid 4194303 --proc-root /nowhere", CMD_FAILED, "procfs"},
		{"inspect unwind /does/not/exist", CMD_FAILED, "no such file"},
		{"inspect unwind /etc/passwd", CMD_FAILED, "not_elf"},
		{"inspect unwind --help", CMD_DONE, ""},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct command_run r;

		row_begin(rows[i].line);
		command_run(rows[i].line, &r);
		assert_int_equal(r.status, rows[i].status);
		command_assert_has(&r.err, rows[i].err);
		command_run_deinit(&r);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),   cmocka_unit_test(test_summary),
		cmocka_unit_test(test_lookup), cmocka_unit_test(test_pid),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
