// SPDX-License-Identifier: Apache-2.0
/* 'inspect maps' and 'inspect symbols' on this very process, and every command's wrong usage. */
#include "support/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "cmd/cmd.h"
#include "support/command.h"
#include "support/debugserver.h"
#include "support/fixture.h"
#include "support/tree.h"

/* Only ends a hanging test. */
#define WAIT_SECONDS 300

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
	{"inspect symbols Makefile 1", 1, "cannot read Makefile: not_elf"},
	{"inspect symbols /nonexistent 1", 1, "no such file"},
	{"inspect symbols /dev/null 1", 1, "not a file"},
	{"inspect symbols --sources", 2, "give FILE and addresses"},
	{"inspect symbols --sources --pid 1", 2, "give FILE with --sources"},
	{"inspect symbols --sources Makefile", 1, "cannot read Makefile: not_elf"},
	{"inspect symbols --pid 2147483647 1", 1, "no such process"},
	{"inspect symbols --debuginfod ftp://x Makefile 1", 2, "--debuginfod takes http://"},
	{"inspect symbols --debuginfod http://x --debuginfod-dir /dev/null/x Makefile 1", 1,
	 "cannot keep debug files in /dev/null/x"},
	{"inspect symbols --pid x 1", 2, "--pid takes a PID, not 'x'"},
	{"inspect symbols --pid", 2, "missing value after '--pid'"},
	{"inspect maps 0", 2, "not a PID: '0'"},
	{"inspect goruntime", 2, "give one FILE or PID"},
	{"inspect goruntime --json=1 1", 2, "unknown option '--json=1'"},
	{"inspect goruntime Makefile", 1, "cannot read Makefile: not_elf"},
	{"inspect goruntime /nonexistent", 1, "cannot open /nonexistent: no such file"},
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
static void check_function(const char *line, const char *want, const char *want_file)
{
	_cleanup_(command_run_deinit) struct command_run run = {0};
	json_t *frames, *frame;
	const char *file;

	command_run(line, &run);
	assert_int_equal(run.status, 0);
	frames = json_loads(run.out.data, 0, NULL);
	frame = json_array_get(frames, 0);
	assert_int_equal(json_object_size(frame), 4);
	assert_string_equal(json_string_value(json_object_get(frame, "function")), want);
	file = json_string_value(json_object_get(frame, "file"));
	assert_int_equal(file != NULL, want_file != NULL);
	assert_true(!file || strstr(file, want_file));
	assert_true(json_is_false(json_object_get(frame, "inlined")));
	json_decref(frames);
}

static void test_symbols(void **state)
{
	char path[FIXTURE_PATH_MAX], line[FIXTURE_PATH_MAX + 64];

	(void)state;
	snprintf(line, sizeof(line), "inspect symbols --json --pid %d %" PRIxPTR, getpid(),
		 (uintptr_t)&test_symbols + 1);
	check_function(line, "test_symbols", "test_inspect_symbols.c");
	fixture_path("plain-stripped", path);
	snprintf(line, sizeof(line), "inspect symbols --json %s 0x1234", path);
	check_function(line, "plain-stripped+0x1234", NULL);
}

/* The sources, then the functions. */
static void test_sources(void **state)
{
	static const struct row {
		const char *file;
		const char *sources;
		const char *debug_file;
		const char *unnamed;
	} rows[] = {
		{"inline-gcc4", "dwarf       present", "debug file  none\n",
		 "unnamed     no_symbol\n"},
		{"inline-linked", "dwarf       present", "/inline.debug\n",
		 "unnamed     no_symbol\n"},
		{"cxx", "dwarf       absent", "debug file  none\n", "unnamed     no_symbol\n"},
		{"plain-stripped", "dwarf       absent", "debug file  none\n",
		 "unnamed     stripped_no_debug: install its package of debug symbols, or set "
		 "--debuginfod\n"},
	};
	char path[FIXTURE_PATH_MAX], line[FIXTURE_PATH_MAX + 64];

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(command_run_deinit) struct command_run run = {0};

		snprintf(line, sizeof(line), "inspect symbols --sources %s 0x1",
			 fixture_path(rows[i].file, path));
		command_run(line, &run);
		assert_int_equal(run.status, 0);
		command_assert_has(&run.out, rows[i].sources);
		command_assert_has(&run.out, rows[i].debug_file);
		command_assert_has(&run.out, rows[i].unnamed);
		snprintf(line, sizeof(line), "\n0x1  %s+0x1\n", rows[i].file);
		command_assert_has(&run.out, line);
	}
}

/* A debug file beside a program is found from any directory, and through a link to the program. */
static void test_relative_path(void **state)
{
	char path[FIXTURE_PATH_MAX], here[FIXTURE_PATH_MAX], line[128];
	char *slash;
	const char *const names[] = {"cxx-linked", "./cxx-linked", "link-to-cxx-linked"};

	(void)state;
	assert_non_null(getcwd(here, sizeof(here)));
	slash = strrchr(fixture_path("cxx-linked", path), '/');
	*slash = '\0';
	assert_int_equal(chdir(path), 0);
	(void)unlink("link-to-cxx-linked");
	assert_int_equal(symlink("cxx-linked", "link-to-cxx-linked"), 0);
	for (size_t i = 0; i < array_size(names); i++) {
		_cleanup_(command_run_deinit) struct command_run run = {0};

		row_begin(names[i]);
		snprintf(line, sizeof(line), "inspect symbols --sources %s", names[i]);
		command_run(line, &run);
		assert_int_equal(run.status, 0);
		command_assert_has(&run.out, "debugfile   present");
	}
	unlink("link-to-cxx-linked");
	assert_int_equal(chdir(here), 0);
}

/* Names chosen by a container cannot send control characters to the terminal. */
static void test_control_characters(void **state)
{
	_cleanup_(command_run_deinit) struct command_run run = {0}, none = {0};
	char path[FIXTURE_PATH_MAX], dir[FIXTURE_PATH_MAX + 16], file[FIXTURE_PATH_MAX + 64];
	char line[FIXTURE_PATH_MAX + 128];

	(void)state;
	snprintf(dir, sizeof(dir), "%s.XXXXXX", fixture_path("plain-stripped", path));
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/x\x1b[2J\xc2\x9b\x7f", dir);
	assert_int_equal(link(path, file), 0);
	snprintf(line, sizeof(line), "inspect symbols %s 0x1234", file);
	command_run(line, &run);
	snprintf(line, sizeof(line), "inspect symbols %s- 0x1234", file);
	command_run(line, &none);
	unlink(file);
	rmdir(dir);
	assert_int_equal(run.status, 0);
	assert_string_equal(run.out.data, "0x1234  x?[2J??+0x1234\n");
	assert_int_equal(none.status, 1);
	command_assert_has(&none.err, "/x?[2J");
}

/* The name of a stripped program's function comes from a server, and then from the directory. */
static void test_debug_server(void **state)
{
	_cleanup_(tree_deinit) struct tree files = {0}, t = {0};
	const uint64_t until = nsec_monotonic() + WAIT_SECONDS * NSEC_PER_SEC;
	char from[FIXTURE_PATH_MAX];
	char line[FIXTURE_PATH_MAX + 256];
	bool found = false;
	pid_t server;

	(void)state;
	debugserver_own_network();
	tree_init(&files);
	tree_init(&t);
	debugserver_put(&files, "cxx.debug");
	snprintf(line, sizeof(line),
		 "inspect symbols --sources --debuginfod " DEBUGSERVER_URL
		 " --debuginfod-dir %s/cache %s",
		 t.path, fixture_path("cxx-other", from));
	server = debugserver_start(&files);
	while (!found) {
		_cleanup_(command_run_deinit) struct command_run run = {0};

		command_run(line, &run);
		assert_int_equal(run.status, CMD_DONE);
		found = strstr(run.out.data, "debugfile   present") != NULL;
		command_assert_has(&run.err, found ? "debug files: 1 downloaded, 0 on no server\n"
						   : "debug files: 0 downloaded");
		debugserver_check(server);
		/* or "not found" would hold for an hour */
		(void)unlinkat(t.fd, "cache/servers", 0);
		assert_true(nsec_monotonic() < until);
	}
	debugserver_kill(server);
	for (int busy = 0; busy < 2; busy++) {
		_cleanup_(command_run_deinit) struct command_run run = {0};
		_cleanup_(close_fdp) int lock = openat(t.fd, "cache", O_RDONLY | O_CLOEXEC);

		assert_int_equal(busy ? flock(lock, LOCK_EX) : 0, 0);
		command_run(line, &run);
		if (busy)
			command_assert_error(&run, CMD_FAILED, "another podprof uses it");
		else
			command_assert_has(&run.out, "debugfile   present");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_address),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_relative_path),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_debug_server),
		cmocka_unit_test(test_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
