// SPDX-License-Identifier: Apache-2.0
/* Accepted and refused arguments of 'record', and the process for its command. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/nsec.h"
#include "cmd/cmd.h"
#include "cmd/output.h"
#include "cmd/record.h"
#include "profile/event.h"
#include "support/command.h"
#include "support/tree.h"

#define WORDS 32

/* ---------------------------------------------------------------- wrong usage */

struct wrong_row {
	const char *line; /* behind "record" */
	const char *says;
};

static const struct wrong_row wrong_rows[] = {
	{"", "give a target"},
	{"--duration 10s", "give a target"},
	{"--nonsense", "unknown option '--nonsense'"},
	{"--pid", "missing value after '--pid'"},
	{"--pid -d 3s", "missing value after '--pid': '-d' is an option"},
	{"--pid --off-cpu 1", "missing value after '--pid': '--off-cpu' is an option"},
	{"--pid=-d", "--pid takes a PID"},
	{"--pid x", "--pid takes a PID"},
	{"--pid 0", "--pid takes a PID"},
	{"--pid -1", "--pid takes a PID"},
	{"--pid 1,", "--pid takes a PID"},
	{"--pid 1,,2", "--pid takes a PID"},
	{"--pid 1,x", "--pid takes a PID"},
	{"--pid 2147483648", "--pid takes a PID"},
	{"--pid 99999999999999999999", "--pid takes a PID"},
	{"--pid 1 --all", "only one of"},
	{"--pid 1 --container abc", "only one of"},
	{"--container abc -- true", "only one of"},
	{"--all -- true", "only one of"},
	{"--all true", "unexpected argument 'true'; put a command to run after --"},
	{"1234", "unexpected argument '1234'"},
	{"--", "give a target"},
	{"--container=", "--container takes an id"},
	{"--all --duration 10", "--duration takes a time"},
	{"--all --duration 0s", "--duration takes a time"},
	{"--all --duration -1s", "--duration takes a time"},
	{"--all --duration soon", "--duration takes a time"},
	{"--all --rate 0", "--rate takes a number from 1 to 10000"},
	{"--all --rate 10001", "--rate takes a number from 1 to 10000"},
	{"--all --rate many", "--rate takes a number from 1 to 10000"},
	{"--all --rate 99 --period 100", "only one of --rate and --period"},
	{"--all --period 0", "--period takes a number"},
	{"--all --period 281474976710657", "--period takes a number"},
	{"--all --period 1s", "--period takes a number"},
	{"--all --period 99999", "in ns, 100000 at least"},
	{"--all --event nonsense",
	 "unknown event 'nonsense'; the events are cpu-clock, page-faults"},
	{"--all --event=", "unknown event ''"},
	{"--all --event page-faults --rate 99", "--rate is for the clock"},
	{"--all --event page-faults --period 0", "--period takes a number"},
	{"--all --dwarf perhaps", "--dwarf takes true or false"},
	{"--all --kernel-stacks perhaps", "--kernel-stacks takes true or false"},
	{"--all --unwind magic", "--unwind takes auto, fp or dwarf"},
	{"--all --off-cpu 2", "--off-cpu takes a share from 0 to 1"},
	{"--all --off-cpu 1 --event page-faults", "works with the clock only"},
	{"--all --off-cpu 0.1 --period 1000000", "works with the clock only"},
	{"--all --tag version", "--tag takes KEY=VALUE"},
	{"--all --tag version=", "--tag takes KEY=VALUE"},
	{"--all --tag =1", "a key consists of letters"},
	{"--all --tag 1=1", "a key consists of letters"},
	{"--all --tag a-b=1", "a key consists of letters"},
	{"--all --debuginfod", "missing value after '--debuginfod'"},
	{"--all --output=", "--output takes the name of a file"},
};

static void test_wrong_usage(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(wrong_rows); i++) {
		struct command_run run;
		char line[256];

		row_begin(wrong_rows[i].line);
		snprintf(line, sizeof(line), "record %s", wrong_rows[i].line);
		command_run(line, &run);
		command_assert_error(&run, CMD_USAGE, wrong_rows[i].says);
		assert_true(strncmp(run.err.data, "podprof: record: ", 17) == 0);
		command_run_deinit(&run);
	}
}

/* A value more than the limit. */
static void too_many(const char *option, const char *says)
{
	const char *argv[2 + 2 * (CMDLINE_VALUES_MAX + 1)] = {"record", "--all"};
	struct record_options o = {0};
	int argc = 2, status = CMD_DONE;

	for (int i = 0; i <= CMDLINE_VALUES_MAX; i++) {
		argv[argc++] = option;
		argv[argc++] = says;
	}
	assert_false(record_options_parse(argc, (char **)argv, &o, &status));
	assert_int_equal(status, CMD_USAGE);
	record_options_deinit(&o);
}

static void test_too_many(void **state)
{
	(void)state;
	too_many("--pid", "1");
	too_many("--tag", "a=1");
}

static void test_help(void **state)
{
	struct command_run run;

	(void)state;
	command_run("record --help", &run);
	assert_int_equal(run.status, CMD_DONE);
	assert_string_equal(run.err.data, "");
	for (size_t i = 0; i < n_events; i++) {
		row_begin(events[i].name);
		command_assert_has(&run.out, events[i].name);
	}
	command_assert_has(&run.out, "Exit status");
	command_run_deinit(&run);
}

/* ---------------------------------------------------------------- accepted arguments */

static void parse(const char *line, struct record_options *ret)
{
	static char copy[256];
	static char *argv[WORDS + 1];
	char *save = NULL;
	int argc = 0, status = CMD_DONE;

	snprintf(copy, sizeof(copy), "record %s", line);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	argv[argc] = NULL;
	*ret = (struct record_options){0};
	row_begin(line);
	assert_true(record_options_parse(argc, argv, ret, &status));
	assert_int_equal(status, CMD_DONE);
}

static void test_defaults(void **state)
{
	struct record_options o;

	(void)state;
	parse("--all", &o);
	assert_true(o.all && o.kernel_stacks && o.dwarf);
	assert_int_equal(o.duration_ns, 0);
	assert_ptr_equal(o.event, event_clock());
	assert_int_equal(o.rate_hz, 99);
	assert_int_equal(o.period, 0);
	assert_null(o.output);
	assert_null(o.command);
	assert_null(o.container);
	assert_int_equal(o.n_pids, 0);
	assert_string_equal(o.proc_root, "/proc");
	record_options_deinit(&o);
}

static void test_values(void **state)
{
	struct record_options o;

	(void)state;
	parse("-p 7,8 --pid 9 -d 1500ms -r 997 -o x.pb.gz --kernel-stacks=false", &o);
	assert_int_equal(o.n_pids, 3);
	assert_int_equal(o.pids[0], 7);
	assert_int_equal(o.pids[1], 8);
	assert_int_equal(o.pids[2], 9);
	assert_int_equal(o.duration_ns, 1500 * NSEC_PER_MSEC);
	assert_int_equal(o.rate_hz, 997);
	assert_string_equal(o.output, "x.pb.gz");
	assert_false(o.kernel_stacks);
	record_options_deinit(&o);

	parse("--container abc -e faults -t a=1 -t b_c=2=3", &o);
	assert_string_equal(o.container, "abc");
	assert_string_equal(o.event->name, "page-faults");
	assert_int_equal(o.period, o.event->period);
	assert_string_equal(labels_get(&o.tags, "a"), "1");
	assert_string_equal(labels_get(&o.tags, "b_c"), "2=3");
	record_options_deinit(&o);

	parse("--all --unwind dwarf", &o);
	assert_int_equal(o.unwind, SETTINGS_UNWIND_DWARF);
	record_options_deinit(&o);
	parse("--all --event cycles --period 12345", &o);
	assert_int_equal(o.period, 12345);
	record_options_deinit(&o);
	parse("--all --period 100000", &o);
	assert_int_equal(o.period, 100000);
	record_options_deinit(&o);
}

/* Arguments after the command belong to the command. */
static void test_command(void **state)
{
	struct record_options o;

	(void)state;
	parse("-d 1s -- ls -l --all --help -- x", &o);
	assert_false(o.all);
	assert_string_equal(o.command[0], "ls");
	assert_string_equal(o.command[1], "-l");
	assert_string_equal(o.command[4], "--");
	assert_string_equal(o.command[5], "x");
	assert_null(o.command[6]);
	record_options_deinit(&o);
}

/* ---------------------------------------------------------------- the command's process */

static void wait_for(struct record_child *child)
{
	while (!record_child_ended(child))
		usleep(1000);
}

static void test_child(void **state)
{
	char *command[] = {(char *)"sh", (char *)"-c", (char *)"exit 7", NULL};
	struct record_child child = RECORD_CHILD_INIT;

	(void)state;
	assert_int_equal(record_child_start(command, false, &child), 0);
	assert_true(child.pid > 0);
	assert_false(record_child_ended(&child));
	assert_int_equal(record_child_go(&child), 0);
	wait_for(&child);
	assert_true(WIFEXITED(child.status));
	assert_int_equal(WEXITSTATUS(child.status), 7);
	assert_true(record_child_ended(&child)); /* and stays so */
	record_child_deinit(&child);
}

static void test_child_is_no_program(void **state)
{
	char *command[] = {(char *)"/nonexistent/program", NULL};
	struct record_child child = RECORD_CHILD_INIT;

	(void)state;
	assert_int_equal(record_child_start(command, false, &child), 0);
	assert_int_equal(record_child_go(&child), -ENOENT);
	wait_for(&child);
	record_child_deinit(&child);
}

/* A child without a go executes nothing and ends. */
static void test_child_is_not_let(void **state)
{
	char *command[] = {(char *)"touch", NULL, NULL};
	struct record_child child = RECORD_CHILD_INIT;
	char path[128];
	struct tree tree;
	pid_t pid;

	(void)state;
	tree_init(&tree);
	snprintf(path, sizeof(path), "%s/touched", tree.path);
	command[1] = path;
	assert_int_equal(record_child_start(command, false, &child), 0);
	pid = child.pid;
	record_child_deinit(&child);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	assert_int_equal(access(path, F_OK), -1);
	tree_deinit(&tree);
}

/* ---------------------------------------------------------------- the file */

static size_t size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (size_t)st.st_size;
}

static void test_output(void **state)
{
	struct output o = OUTPUT_INIT;
	struct tree tree;
	char path[128];

	(void)state;
	tree_init(&tree);
	snprintf(path, sizeof(path), "%s/out", tree.path);

	/* a new file is removed if nothing is written */
	assert_int_equal(output_open("record", path, &o), CMD_DONE);
	assert_int_equal(access(path, F_OK), 0);
	output_deinit(&o);
	assert_int_equal(access(path, F_OK), -1);

	assert_int_equal(output_open("record", path, &o), CMD_DONE);
	assert_int_equal(output_write("record", &o, "12345", 5), CMD_DONE);
	output_deinit(&o);
	assert_int_equal(size_of(path), 5);

	/* an old file stays unchanged until something is written */
	assert_int_equal(output_open("record", path, &o), CMD_DONE);
	output_deinit(&o);
	assert_int_equal(size_of(path), 5);
	assert_int_equal(output_open("record", path, &o), CMD_DONE);
	assert_int_equal(output_write("record", &o, "123", 3), CMD_DONE);
	output_deinit(&o);
	assert_int_equal(size_of(path), 3);

	snprintf(path, sizeof(path), "%s/none/out", tree.path);
	assert_int_equal(output_open("record", path, &o), CMD_FAILED);
	assert_int_equal(output_open("record", tree.path, &o), CMD_FAILED);
	assert_int_equal(output_open("record", "/dev/full", &o), CMD_DONE);
	assert_int_equal(output_write("record", &o, "123", 3), CMD_FAILED);
	output_deinit(&o);
	assert_int_equal(access("/dev/full", F_OK), 0);
	tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_usage),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_child_is_no_program),
		cmocka_unit_test(test_child_is_not_let),
		cmocka_unit_test(test_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
