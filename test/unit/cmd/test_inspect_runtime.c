// SPDX-License-Identifier: Apache-2.0
/* 'inspect runtime' on Debian's Python, on each Java, on this program, and its wrong usage. */
#include "support/test.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/command.h"
#include "support/javas.h"
#include "support/pythons.h"

DEFINE_CLEANUP(struct pythons_truth *, truth_freep, pythons_truth_free);

static void usage(void **state)
{
	static const struct {
		const char *line;
		int status;
		const char *says;
	} rows[] = {
		{"inspect runtime", 2, "give one PID"},
		{"inspect runtime x", 2, "give one PID"},
		{"inspect runtime 1 2", 2, "give one PID"},
		{"inspect runtime --what 1", 2, "unknown option '--what'"},
		{"inspect runtime 2147483647", 1, "no process 2147483647"},
		{"inspect runtime 1 --proc-root /nonexistent", 1, "cannot open /nonexistent"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(command_run_deinit) struct command_run run = {0};

		row_begin(rows[i].line);
		command_run(rows[i].line, &run);
		command_assert_error(&run, rows[i].status, rows[i].says);
	}
}

static void run_of(uint64_t pid, const char *option, struct command_run *ret)
{
	char line[64];

	snprintf(line, sizeof(line), "inspect runtime %s%" PRIu64, option, pid);
	command_run(line, ret);
	assert_int_equal(ret->status, 0);
}

static void without_python(void **state)
{
	_cleanup_(command_run_deinit) struct command_run run = {0};

	(void)state;
	run_of((uint64_t)getpid(), "", &run);
	assert_string_equal(run.out.data, "state    absent\n");
}

static const struct pythons_thread *thread_of(const struct pythons_truth *truth, uint64_t id)
{
	for (size_t i = 0; i < truth->n; i++)
		if (truth->threads[i].id == id)
			return &truth->threads[i];
	return NULL;
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void debians_python(void **state)
{
	_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
	_cleanup_(truth_freep) struct pythons_truth *truth = NULL;
	_cleanup_(command_run_deinit) struct command_run text = {0}, run = {0};
	_cleanup_(pythons_deinit) struct pythons pythons;
	const json_t *thread, *frame;
	size_t i, k, n_checked = 0;
	json_t *all;

	(void)state;
	pythons_find(&pythons);
	pythons_start(pythons.paths[0], &p, &truth);
	run_of(p.id.pid, "--json ", &run);
	all = json_loads(run.out.data, 0, NULL);
	assert_non_null(all);
	assert_string_equal(text_of(all, "state"), "ok");
	assert_memory_equal(text_of(all, "version"), "3.", 2);
	assert_true(json_array_size(json_object_get(all, "loops")) >= 1);
	json_array_foreach(json_object_get(all, "threads"), i, thread) {
		const struct pythons_thread *want =
			thread_of(truth, strtoull(text_of(thread, "thread"), NULL, 16));
		const json_t *frames = json_object_get(thread, "frames");

		if (!want)
			continue; /* the reporter */
		assert_int_equal(json_array_size(frames), want->n);
		json_array_foreach(frames, k, frame) {
			assert_string_equal(text_of(frame, "name"), want->frames[k].name);
			assert_string_equal(text_of(frame, "file"), want->frames[k].file);
			assert_int_equal(json_integer_value(json_object_get(frame, "line")),
					 want->frames[k].line);
			n_checked++;
		}
	}
	json_decref(all);
	assert_int_equal(n_checked, truth->n_frames);

	run_of(p.id.pid, "", &text);
	command_assert_has(&text.out, "state    ok\nruntime  python\n");
	command_assert_has(&text.out, "\nloop     0x");
	command_assert_has(&text.out, "\npointer  thread pointer + ");
	command_assert_has(&text.out, "\n  two_lambdas.<locals>.<lambda> (");
	command_assert_has(&text.out, "\n  made (<gem\xc3\xa4"
				      "cht>/\xd1\x84\xd0\xb0\xd0\xb9\xd0\xbb.py:554)\n");
}

static void all_javas(void **state)
{
	static const char *const options[] = {"-Xint", NULL};
	struct javas javas;

	(void)state;
	javas_find(&javas);
	for (size_t i = 0; i < javas.n; i++) {
		_cleanup_(goprocess_stop) struct goprocess p = {.to = -1};
		_cleanup_(command_run_deinit) struct command_run text = {0}, run = {0};
		json_t *all;

		print_message("%s\n", javas.paths[i]);
		javas_run(&javas, javas.paths[i], options, "Recursion", "sleep", &p);
		run_of(p.id.pid, "--json ", &run);
		all = json_loads(run.out.data, 0, NULL);
		assert_non_null(all);
		assert_string_equal(text_of(all, "state"), "ok");
		assert_string_equal(text_of(all, "runtime"), "java");
		assert_non_null(strstr(text_of(all, "path"), "libjvm.so"));
		assert_true(strtoul(text_of(all, "version"), NULL, 10) >= 11);
		assert_true(json_array_size(json_object_get(all, "heaps")) >= 1);
		json_decref(all);
		run_of(p.id.pid, "", &text);
		command_assert_has(&text.out, "state    ok\nruntime  java\n");
		command_assert_has(&text.out, "\nheap     0x");
		command_assert_has(&text.out, "\ninterp   0x");
	}
	javas_deinit(&javas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usage),
		cmocka_unit_test(without_python),
		cmocka_unit_test(debians_python),
		cmocka_unit_test(all_javas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
