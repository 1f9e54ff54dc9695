// SPDX-License-Identifier: Apache-2.0
/* The command itself, with what it writes caught in files. */
#include "support/test.h"

#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/root.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "support/command.h"
#include "support/tree.h"

#define ID1 "73051af271105c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd"
#define POD "2c48913c-b29f-11e7-9350-020968147796"

/* @arguments: those of 'inspect cgroup', words without quotes */
static void inspect(const char *arguments, struct command_run *ret)
{
	char line[512];

	snprintf(line, sizeof(line), "inspect cgroup %s", arguments);
	command_run(line, ret);
}

static void assert_field(json_t *object, const char *name, struct text *row)
{
	_cleanup_(freep) char *want = NULL;
	struct text column;

	assert_true(text_until(row, '\t', &column));
	want = text_dup(column);
	assert_non_null(want);
	assert_non_null(json_object_get(object, name));
	if (strcmp(want, "-") == 0)
		assert_true(json_is_null(json_object_get(object, name)));
	else
		assert_string_equal(json_string_value(json_object_get(object, name)), want);
}

/* All collected paths, as they are written in the file: one line in, one object out. */
static void test_vectors(void **state)
{
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(1u << 20), input = BUF_INIT(1u << 20);
	_cleanup_(root_deinit) struct root data = ROOT_INIT;
	_cleanup_(command_run_deinit) struct command_run r = {0};
	struct text rows, row, path, lines, line;
	struct tree tree;
	char name[80];
	size_t n = 0;

	(void)state;
	tree_init(&tree);
	assert_int_equal(root_open("test/data/cgroup", &data), 0);
	assert_int_equal(root_read(&data, "vectors.tsv", &file), 0);
	rows = text_of_bytes(file.data, file.len);
	assert_true(text_until(&rows, '\n', &row));
	for (struct text rest = rows; text_until(&rest, '\n', &row);) {
		assert_true(text_until(&row, '\t', &path));
		assert_int_equal(buf_append(&input, path.p, text_len(&path)), 0);
		assert_int_equal(buf_putc(&input, '\n'), 0);
	}
	tree_write(tree.fd, "in", input.data);
	snprintf(name, sizeof(name), "--json %s/in", tree.path);
	inspect(name, &r);
	assert_int_equal(r.status, CMD_DONE);
	assert_int_equal(r.err.len, 0);
	lines = text_of_bytes(r.out.data, r.out.len);
	while (text_until(&rows, '\n', &row)) {
		json_t *object;

		assert_true(text_until(&row, '\t', &path));
		assert_true(text_until(&lines, '\n', &line));
		object = json_loadb(line.p, text_len(&line), JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(object);
		assert_int_equal(json_object_size(object), 5);
		assert_field(object, "runtime", &row);
		assert_field(object, "container_id", &row);
		assert_field(object, "pod_uid", &row);
		assert_field(object, "qos", &row);
		assert_field(object, "kind", &row);
		json_decref(object);
		n++;
	}
	assert_true(text_empty(&lines));
	assert_int_equal(n, 163);
	tree_deinit(&tree);
}

struct output_row {
	const char *arguments;
	int status;
	const char *out; /* a part of it; NULL: nothing */
	const char *err;
};

static const struct output_row output_rows[] = {
	{"--help", CMD_DONE, "usage: podprof inspect cgroup", NULL},
	{"--bogus", CMD_USAGE, NULL, "unknown option '--bogus'"},
	{"-x", CMD_USAGE, NULL, "unknown option '-x'"},
	{"--cgroupfs-root", CMD_USAGE, NULL, "a value is missing behind '--cgroupfs-root'"},
	{"a b", CMD_USAGE, NULL, "'b'"},
	{"/nonexistent", CMD_FAILED, NULL, "/nonexistent: No such file"},
	{"/", CMD_FAILED, NULL, "Is a directory"},
	{"--cgroupfs-root /nonexistent", CMD_FAILED, NULL, "/nonexistent (no_such_directory)"},
};

static void assert_output(const struct buf *is, const char *want)
{
	if (!want)
		assert_int_equal(is->len, 0);
	else
		assert_non_null(strstr(is->data, want));
}

static void test_outputs(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(output_rows); i++) {
		const struct output_row *row = &output_rows[i];
		_cleanup_(command_run_deinit) struct command_run r = {0};

		row_begin(row->arguments);
		inspect(row->arguments, &r);
		assert_int_equal(r.status, row->status);
		assert_output(&r.out, row->out);
		assert_output(&r.err, row->err);
		/* an error is one line */
		if (row->err)
			assert_ptr_equal(strchr(r.err.data, '\n'), r.err.data + r.err.len - 1);
	}
}

static void test_node(void **state)
{
	char arguments[128];
	struct tree tree;

	(void)state;
	tree_init(&tree);
	tree_mkdir(tree.fd, "fs/kubepods/pod" POD "/" ID1 "/below");
	for (int json = 0; json < 2; json++) {
		_cleanup_(command_run_deinit) struct command_run r = {0};

		snprintf(arguments, sizeof(arguments), "--cgroupfs-root %s/fs%s", tree.path,
			 json ? " --json" : "");
		inspect(arguments, &r);
		assert_int_equal(r.status, CMD_DONE);
		if (json)
			assert_string_equal(r.out.data,
					    "{\"runtime\":\"unknown\",\"container_id\":\"" ID1
					    "\",\"pod_uid\":\"" POD
					    "\",\"qos\":\"guaranteed\",\"kind\":\"container\"}\n");
		else
			assert_output(&r.out, ID1 "  " POD "  guaranteed");
	}
	tree_deinit(&tree);
}

/* The longest line that fits, and one character more. */
static void test_long_line(void **state)
{
	_cleanup_(freep) char *line = malloc((256u << 10) + 1);
	char name[80];
	struct tree tree;

	(void)state;
	tree_init(&tree);
	assert_non_null(line);
	snprintf(name, sizeof(name), "%s/in", tree.path);
	for (int over = 0; over < 2; over++) {
		_cleanup_(command_run_deinit) struct command_run r = {0};
		size_t n = (256u << 10) - 2 + (size_t)over;

		memset(line, 'x', n);
		line[n] = '\n';
		line[n + 1] = '\0';
		tree_write(tree.fd, "in", line);
		inspect(name, &r);
		assert_int_equal(r.status, over ? CMD_FAILED : CMD_DONE);
		assert_output(&r.err, over ? "line 1 of" : NULL);
	}
	tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_outputs),
		cmocka_unit_test(test_node),
		cmocka_unit_test(test_long_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
