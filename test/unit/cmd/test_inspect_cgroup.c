// SPDX-License-Identifier: Apache-2.0
/* The command, with its output in files. */
#include "support/test.h"

#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/root.h"
#include "base/strview.h"
#include "cmd/cmd.h"
#include "support/command.h"
#include "support/tree.h"

#define ID1 "73051af271105c07e1f493b34856a77e665e3b0b4fc72f76c807dfbffeb881bd"
#define POD "2c48913c-b29f-11e7-9350-020968147796"

/* @arguments: of 'inspect cgroup', words without quotes */
static void inspect(const char *arguments, struct command_run *ret)
{
	char line[512];

	snprintf(line, sizeof(line), "inspect cgroup %s", arguments);
	command_run(line, ret);
}

static void assert_field(json_t *object, const char *name, struct strview *row)
{
	_cleanup_(freep) char *want = NULL;
	struct strview column;

	assert_true(strview_until(row, '\t', &column));
	want = strview_dup(column);
	assert_non_null(want);
	assert_non_null(json_object_get(object, name));
	if (strcmp(want, "-") == 0)
		assert_true(json_is_null(json_object_get(object, name)));
	else
		assert_string_equal(json_string_value(json_object_get(object, name)), want);
}

/* All collected paths, as in the file: a line in, an object out. */
static void test_vectors(void **state)
{
	_cleanup_(buf_deinit) struct buf file = BUF_INIT(1u << 20), input = BUF_INIT(1u << 20);
	_cleanup_(root_deinit) struct root data = ROOT_INIT;
	_cleanup_(command_run_deinit) struct command_run r = {0};
	struct strview rows, row, path, lines, line;
	struct tree tree;
	char name[80];
	size_t n = 0;

	(void)state;
	tree_init(&tree);
	assert_int_equal(root_open("test/data/cgroup", &data), 0);
	assert_int_equal(root_read(&data, "vectors.tsv", &file), 0);
	rows = strview_of_bytes(file.data, file.len);
	assert_true(strview_until(&rows, '\n', &row));
	for (struct strview rest = rows; strview_until(&rest, '\n', &row);) {
		assert_true(strview_until(&row, '\t', &path));
		assert_int_equal(buf_append(&input, path.p, strview_len(&path)), 0);
		assert_int_equal(buf_putc(&input, '\n'), 0);
	}
	tree_write(tree.fd, "in", input.data);
	snprintf(name, sizeof(name), "--json %s/in", tree.path);
	inspect(name, &r);
	assert_int_equal(r.status, CMD_DONE);
	assert_int_equal(r.err.len, 0);
	lines = strview_of_bytes(r.out.data, r.out.len);
	while (strview_until(&rows, '\n', &row)) {
		json_t *object;

		assert_true(strview_until(&row, '\t', &path));
		assert_true(strview_until(&lines, '\n', &line));
		object = json_loadb(line.p, strview_len(&line), JSON_REJECT_DUPLICATES, NULL);
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
	assert_true(strview_empty(&lines));
	assert_int_equal(n, 163);
	tree_deinit(&tree);
}

static void test_errors(void **state)
{
	static const struct {
		const char *arguments;
		int status;
		const char *says;
	} rows[] = {
		{"--bogus", CMD_USAGE, "unknown option '--bogus'"},
		{"-x", CMD_USAGE, "unknown option '-x'"},
		{"--cgroupfs-root", CMD_USAGE, "missing value after '--cgroupfs-root'"},
		{"a b", CMD_USAGE, "'b'"},
		{"/nonexistent", CMD_FAILED, "/nonexistent: No such file"},
		{"/", CMD_FAILED, "Is a directory"},
		{"--cgroupfs-root /nonexistent", CMD_FAILED, "/nonexistent (no such directory)"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(command_run_deinit) struct command_run r = {0};

		row_begin(rows[i].arguments);
		inspect(rows[i].arguments, &r);
		command_assert_error(&r, rows[i].status, rows[i].says);
	}
}

static void test_help(void **state)
{
	_cleanup_(command_run_deinit) struct command_run r = {0};

	(void)state;
	inspect("--help", &r);
	command_assert(&r, CMD_DONE, "usage: podprof inspect cgroup", NULL);
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
			command_assert_has(&r.out, ID1 "  " POD "  guaranteed");
	}
	tree_deinit(&tree);
}

/* The longest permitted line, and one character more. */
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
		if (over)
			command_assert_error(&r, CMD_FAILED, "line 1 of");
		else
			command_assert(&r, CMD_DONE, "", NULL);
	}
	tree_deinit(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),	  cmocka_unit_test(test_errors),
		cmocka_unit_test(test_help),	  cmocka_unit_test(test_node),
		cmocka_unit_test(test_long_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
