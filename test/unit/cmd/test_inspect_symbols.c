// SPDX-License-Identifier: Apache-2.0
/* 'inspect maps' and 'inspect symbols' on this very process, and every command's wrong usage. */
#include "support/test.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "support/command.h"
#include "support/fixture.h"

struct usage_row {
	const char *line;
	int status;
	const char *err; /* a part of the text */
};

static const struct usage_row usage_rows[] = {
	{"inspect maps", 2, "give the PID"},
	{"inspect maps x", 2, "not a PID: 'x'"},
	{"inspect maps 99999999999", 2, "not a PID"},
	{"inspect maps 1 2", 2, "unexpected '2'"},
	{"inspect maps --what 1", 2, "unknown option '--what'"},
	{"inspect maps 1 --address", 2, "missing value after '--address'"},
	{"inspect maps 1 --address 0y1", 2, "--address takes an address in hex, not '0y1'"},
	{"inspect maps 2147483647", 1, "no such process"},
	{"inspect maps 1 --proc-root /nonexistent", 1, "cannot open /nonexistent"},
	{"inspect symbols", 2, "give FILE and addresses"},
	{"inspect symbols Makefile", 2, "give addresses in hex"},
	{"inspect symbols Makefile zz", 2, "not a hex address: 'zz'"},
	{"inspect symbols Makefile 1", 1, "Makefile has no symbols: not_elf"},
	{"inspect symbols /nonexistent 1", 1, "no such file"},
	{"inspect symbols /dev/null 1", 1, "not_a_file"},
	{"inspect symbols --pid 2147483647 1", 1, "no such process"},
	{"inspect symbols --pid x 1", 2, "--pid takes a PID, not 'x'"},
	{"inspect symbols --pid", 2, "missing value after '--pid'"},
	{"inspect maps 0", 2, "not a PID: '0'"},
	{"inspect goruntime", 2, "give one FILE or PID"},
	{"inspect goruntime --json=1 1", 2, "unknown option '--json=1'"},
	{"inspect goruntime 1 --proc-root /nonexistent", 1, "cannot open /nonexistent"},
	{"heap", 2, "give one PID"},
	{"heap 0 -o x", 2, "give one PID"},
	{"heap 2147483647", 2, "give --output"},
	{"heap 2147483647 -o", 2, "missing value after '-o'"},
	{"heap 2147483647 -x", 2, "unknown option '-x'"},
	{"heap 2147483647 -o /nonexistent/x", 1, "no process 2147483647"},
	{"heap 1 --output x --proc-root /nonexistent", 1, "cannot open /nonexistent"},
};

static void test_usage(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(usage_rows); i++) {
		_cleanup_(command_run_deinit) struct command_run run = {0};

		row_begin(usage_rows[i].line);
		command_run(usage_rows[i].line, &run);
		command_assert_error(&run, usage_rows[i].status, usage_rows[i].err);
	}
}

static void test_help(void **state)
{
	static const char *const lines[] = {"inspect maps --help", "inspect symbols --help",
					    "inspect goruntime --help"};

	(void)state;
	for (size_t i = 0; i < array_size(lines); i++) {
		_cleanup_(command_run_deinit) struct command_run run = {0};

		command_run(lines[i], &run);
		assert_int_equal(run.status, 0);
		assert_memory_equal(run.out.data, "usage: podprof inspect ", 23);
	}
}

static uint64_t hex_of(const json_t *object, const char *key)
{
	return strtoull(json_string_value(json_object_get(object, key)), NULL, 16);
}

/* Every line is an object; the mapping around the test's code is this program. */
static void test_maps(void **state)
{
	_cleanup_(command_run_deinit) struct command_run run = {0};
	uint64_t pc = (uint64_t)(uintptr_t)&test_maps;
	char line[64], *save = NULL;
	size_t n_own = 0;

	(void)state;
	snprintf(line, sizeof(line), "inspect maps %d --json", getpid());
	command_run(line, &run);
	assert_int_equal(run.status, 0);
	for (char *s = strtok_r(run.out.data, "\n", &save); s; s = strtok_r(NULL, "\n", &save)) {
		json_t *object = json_loads(s, 0, NULL);

		assert_non_null(object);
		assert_int_equal(json_object_size(object), 8);
		if (pc >= hex_of(object, "start") && pc < hex_of(object, "limit")) {
			const char *path = json_string_value(json_object_get(object, "path"));

			n_own++;
			assert_non_null(strstr(path, "test_inspect_symbols"));
			assert_int_equal(json_string_length(json_object_get(object, "build_id")),
					 40);
			assert_true(json_is_true(json_object_get(object, "executable")));
		}
		json_decref(object);
	}
	assert_int_equal(n_own, 1);
}

static void test_address(void **state)
{
	_cleanup_(command_run_deinit) struct command_run run = {0}, none = {0};
	json_t *object;
	char line[96];

	(void)state;
	snprintf(line, sizeof(line), "inspect maps %d --json --address 0x%" PRIxPTR, getpid(),
		 (uintptr_t)&test_address);
	command_run(line, &run);
	assert_int_equal(run.status, 0);
	object = json_loads(run.out.data, 0, NULL);
	assert_non_null(object);
	assert_true(hex_of(object, "address") == (uintptr_t)&test_address);
	assert_string_equal(json_string_value(json_object_get(object, "kind")), "file");
	json_decref(object);

	snprintf(line, sizeof(line), "inspect maps %d --address 10", getpid());
	command_run(line, &none);
	assert_int_equal(none.status, 1);
	command_assert_has(&none.err, "has no code at 0x10");
}

/* The first frame's function in one line of --json. */
static void check_function(const char *line, const char *want)
{
	_cleanup_(command_run_deinit) struct command_run run = {0};
	json_t *frames, *frame;

	command_run(line, &run);
	assert_int_equal(run.status, 0);
	frames = json_loads(run.out.data, 0, NULL);
	frame = json_array_get(frames, 0);
	assert_int_equal(json_object_size(frame), 4);
	assert_string_equal(json_string_value(json_object_get(frame, "function")), want);
	assert_true(json_is_null(json_object_get(frame, "file")));
	assert_true(json_is_false(json_object_get(frame, "inlined")));
	json_decref(frames);
}

static void test_symbols(void **state)
{
	char path[FIXTURE_PATH_MAX], line[FIXTURE_PATH_MAX + 64];

	(void)state;
	snprintf(line, sizeof(line), "inspect symbols --json --pid %d %" PRIxPTR, getpid(),
		 (uintptr_t)&test_symbols + 1);
	check_function(line, "test_symbols");
	fixture_path("plain-stripped", path);
	snprintf(line, sizeof(line), "inspect symbols --json %s 0x1234", path);
	check_function(line, "plain-stripped+0x1234");
}

/* Names chosen by a container cannot send control characters to the terminal. */
static void test_control_characters(void **state)
{
	_cleanup_(command_run_deinit) struct command_run run = {0}, none = {0};
	char path[FIXTURE_PATH_MAX], dir[] = "/tmp/test_inspect.XXXXXX", link[64], line[128];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s/x\x1b[2J\xc2\x9b\x7f", dir);
	assert_int_equal(symlink(fixture_path("plain-stripped", path), link), 0);
	snprintf(line, sizeof(line), "inspect symbols %s 0x1234", link);
	command_run(line, &run);
	snprintf(line, sizeof(line), "inspect symbols %s- 0x1234", link);
	command_run(line, &none);
	unlink(link);
	rmdir(dir);
	assert_int_equal(run.status, 0);
	assert_string_equal(run.out.data, "0x1234  x?[2J??+0x1234\n");
	assert_int_equal(none.status, 1);
	command_assert_has(&none.err, "/x?[2J");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usage),	cmocka_unit_test(test_help),
		cmocka_unit_test(test_maps),	cmocka_unit_test(test_address),
		cmocka_unit_test(test_symbols), cmocka_unit_test(test_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
