// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "config/config.h"
#include "config/option.h"
#include "relabel/relabel.h"

static int load(const char *const *flags, struct config *c, struct config_error *error)
{
	char *argv[16] = {(char *)"agent"};
	int argc = 1;

	for (; flags && *flags; flags++)
		argv[argc++] = (char *)*flags;
	return config_load(argc, argv, c, error);
}

/* Writes @text to a file below the test's own directory. */
static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void test_defaults(void **state)
{
	_cleanup_(config_deinit) struct config c = {0};
	struct config_error error;

	(void)state;
	unsetenv("KUBERNETES_SERVICE_HOST");
	assert_int_equal(load(NULL, &c, &error), 0);
	assert_int_equal(c.cpu_rate, 97);
	assert_int_equal(c.window_ns, 60 * NSEC_PER_SEC);
	assert_true(c.kernel_stacks);
	assert_true(c.dwarf);
	assert_true(c.host_processes);
	assert_int_equal(c.go_heap, CONFIG_GO_HEAP_ENABLED);
	assert_string_equal(c.listen, "127.0.0.1:7070");
	assert_string_equal(c.proc_root, "/proc");
	assert_string_equal(c.store_dir, "/var/lib/podprof");
	assert_true(c.node_name && *c.node_name);
	assert_null(c.cgroupfs_root);
}

static void test_in_kubernetes(void **state)
{
	_cleanup_(config_deinit) struct config c = {0};
	const char *flags[] = {"--destination", "pyroscope=http://a", NULL};
	struct config_error error;

	(void)state;
	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	setenv("NODE_NAME", "node-7", 1);
	assert_int_equal(load(flags, &c, &error), 0);
	assert_false(c.host_processes);
	assert_string_equal(c.node_name, "node-7");
	assert_null(c.store_dir);
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("NODE_NAME");
}

static void test_precedence(void **state)
{
	_cleanup_(config_deinit) struct config c = {0};
	char path[] = "/tmp/podprof-config-XXXXXX";
	const char *flags[] = {"--config", path, "--window=5s", NULL};
	struct config_error error;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	write_file(path, "{\"cpu-rate\": 19, \"window\": \"7s\", \"store-bytes\": \"2MiB\","
			 " \"kernel-stacks\": false, \"dwarf\": false, \"off-cpu\": 0.0625,"
			 " \"destination\": [\"pyroscope=http://a\", \"pyroscope=http://b\"]}");
	setenv("PODPROF_CPU_RATE", "29", 1);
	setenv("PODPROF_WINDOW", "6s", 1);
	assert_int_equal(load(flags, &c, &error), 0);
	assert_int_equal(c.window_ns, 5 * NSEC_PER_SEC); /* flag over environment over file */
	assert_int_equal(c.cpu_rate, 29);		 /* environment over file */
	assert_int_equal(c.store_bytes, 2 << 20);
	assert_false(c.kernel_stacks);
	assert_false(c.dwarf);
	assert_true(c.off_cpu == 0.0625);
	assert_int_equal(c.destinations.n, 2);
	assert_string_equal(c.destinations.items[1], "pyroscope=http://b");
	unsetenv("PODPROF_CPU_RATE");
	unsetenv("PODPROF_WINDOW");
	unlink(path);
}

static void test_lists_replace(void **state)
{
	_cleanup_(config_deinit) struct config c = {0};
	const char *flags[] = {"--destination=x=1", "--destination=x=2", NULL};
	struct config_error error;

	(void)state;
	setenv("PODPROF_DESTINATION", "y=1 y=2 y=3", 1);
	assert_int_equal(load(NULL, &c, &error), 0);
	assert_int_equal(c.destinations.n, 3);
	config_deinit(&c);
	assert_int_equal(load(flags, &c, &error), 0);
	assert_int_equal(c.destinations.n, 2);
	assert_string_equal(c.destinations.items[0], "x=1");
	unsetenv("PODPROF_DESTINATION");
}

struct bad_row {
	const char *flag;
	const char *value;
	const char *says;
};

static const struct bad_row bad_rows[] = {
	{"--debuginfod", "ftp://server", "http://"},
	{"--kubelet-url", "10.0.0.1:10250", "--kubelet-url: '10.0.0.1:10250' is not valid"},
	{"--config", "/tmp", "cannot read /tmp: not a file"},
	{"--doc-url", "javascript:alert(1)", "http://"},
	{"--cpu-rate", "fast", "--cpu-rate: 'fast'"},
	{"--cpu-rate", "10001", "out of range"},
	{"--cpu-rate", "-1", "--cpu-rate: '-1'"},
	{"--window", "60", "unit"},
	{"--window", "999ms", "out of range"},
	{"--window", "61m", "out of range"},
	{"--off-cpu", "1.1", "a share from 0 to 1"},
	{"--off-cpu", "-0.1", "--off-cpu: '-0.1'"},
	{"--off-cpu", "nan", "--off-cpu: 'nan'"},
	{"--off-cpu", "0x1", "--off-cpu: '0x1'"},
	{"--off-cpu", "0.5%", "--off-cpu: '0.5%'"},
	{"--unwind=orc", NULL, "one of auto, fp, dwarf"},
	{"--kernel-stacks=maybe", NULL, "true or false"},
	{"--go-heap-profiler", "sometimes", "one of disabled, enabled, force"},
	{"--store-bytes", "1KiB", "out of range"},
	{"--spool-bytes", "4095KiB", "out of range"},
	{"--no-such", NULL, "unknown flag '--no-such'"},
	{"--cpu-rate", NULL, "missing value after '--cpu-rate'"},
	{"word", NULL, "unexpected argument 'word'"},
	{"--config", "/no/such/file", "/no/such/file"},
	{"--listen=", NULL, "must not be empty"},
	{"--label", "prod", "NAME=VALUE"},
	{"--label", "=prod", "NAME=VALUE"},
	{"--label", "a=", "NAME=VALUE"},
	{"--label", "a-b=c", "NAME=VALUE"},
	{"--label", "__a=c", "NAME=VALUE"},
	{"--select", "a)(b", "--select: 'a)(b'"},
	{"--ignore", "(?=a)", "--ignore"},
};

static void test_event_sampler(void **state)
{
	_cleanup_(config_deinit) struct config c = {0};
	const char *flags[] = {"--label",  "cluster=prod", "--label=team=a=b",
			       "--ignore", "^kube-",	   NULL};
	struct config_error error;

	(void)state;
	setenv("PODPROF_SELECT", "^shop/ web$", 1);
	assert_int_equal(load(flags, &c, &error), 0);
	unsetenv("PODPROF_SELECT");
	assert_int_equal(c.labels.n, 2);
	assert_string_equal(c.labels.items[1], "team=a=b");
	assert_int_equal(c.select.n, 2);
	assert_string_equal(c.select.items[0], "^shop/");
	assert_string_equal(c.select.items[1], "web$");
	assert_int_equal(c.ignore.n, 1);
}

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(bad_rows); i++) {
		_cleanup_(config_deinit) struct config c = {0};
		const char *flags[] = {bad_rows[i].flag, bad_rows[i].value, NULL};
		struct config_error error = {""};

		row_begin(bad_rows[i].flag);
		assert_int_equal(load(flags, &c, &error), CONFIG_BAD);
		if (!strstr(error.text, bad_rows[i].says))
			fail_msg("'%s' does not say '%s'", error.text, bad_rows[i].says);
	}
}

static const struct bad_row file_rows[] = {
	{"{\"cpu-rate\": }", NULL, "line 1"},
	{"[1]", NULL, "object"},
	{"", NULL, "line"},
	{"{\"cpu-rat\": 1}", NULL, "not a setting"},
	{"{\"config\": \"x\"}", NULL, "not a setting"},
	{"{\"cpu-rate\": [1]}", NULL, "string, number or boolean"},
	{"{\"cpu-rate\": 1, \"cpu-rate\": 2}", NULL, "uplicate"},
	{"{\"window\": 60}", NULL, "unit"},
	{"{\"destination\": [\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}", NULL,
	 "too many"},
	{"{\"relabel_configs\": {}}", NULL, "relabel_configs: not an array"},
	{"{\"relabel_configs\": [{\"action\": \"drop\", \"regex\": \"[\"}]}", NULL,
	 "relabel_configs[0].regex: missing ]: ["},
};

static void test_bad_file(void **state)
{
	char path[] = "/tmp/podprof-config-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < array_size(file_rows); i++) {
		_cleanup_(config_deinit) struct config c = {0};
		const char *flags[] = {"--config", path, NULL};
		struct config_error error = {""};

		row_begin(file_rows[i].flag);
		write_file(path, file_rows[i].flag);
		assert_int_equal(load(flags, &c, &error), CONFIG_BAD);
		if (!strstr(error.text, file_rows[i].says) || !strstr(error.text, path))
			fail_msg("'%s' does not say '%s'", error.text, file_rows[i].says);
	}
	unlink(path);
}

static void test_diff(void **state)
{
	_cleanup_(config_deinit) struct config a = {0};
	_cleanup_(config_deinit) struct config b = {0};
	const char *flags[] = {"--cpu-rate=19",
			       "--kernel-stacks=false",
			       "--log-level=debug",
			       "--label=a=b",
			       "--select=x",
			       "--ignore=y",
			       "--destination=x=1",
			       "--cgroupfs-root=/c",
			       NULL};
	struct config_error error;
	char diff[200], cut[12];

	(void)state;
	assert_int_equal(load(NULL, &a, &error), 0);
	assert_int_equal(load(NULL, &b, &error), 0);
	config_diff(&a, &b, diff, sizeof(diff));
	assert_string_equal(diff, "");
	config_deinit(&b);
	assert_int_equal(load(flags, &b, &error), 0);
	config_diff(&a, &b, diff, sizeof(diff));
	assert_string_equal(diff, "cpu-rate kernel-stacks cgroupfs-root destination store-dir");
	config_diff(&a, &b, cut, sizeof(cut));
	assert_string_equal(cut, "cpu-rate ke");
}

static void test_relabel(void **state)
{
	static const char text[] = "{\"relabel_configs\": [{\"action\": \"drop\"}]}";
	_cleanup_(config_deinit) struct config a = {0};
	_cleanup_(config_deinit) struct config b = {0};
	char path[] = "/tmp/podprof-config-XXXXXX", diff[200];
	const char *flags[] = {"--config", path, NULL};
	struct config_error error;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	write_file(path, "{}");
	assert_int_equal(load(flags, &a, &error), 0);
	assert_null(a.relabel);
	write_file(path, text);
	assert_int_equal(load(flags, &b, &error), 0);
	assert_int_equal(relabel_n_rules(b.relabel), 1);
	/* a change without a restart */
	config_diff(&a, &b, diff, sizeof(diff));
	assert_string_equal(diff, "");
	unlink(path);
}

static void test_help(void **state)
{
	_cleanup_(config_deinit) struct config c = {0};
	const char *flags[] = {"--cpu-rate", "7", "--help", NULL};
	struct config_error error;

	(void)state;
	assert_int_equal(load(flags, &c, &error), CONFIG_HELP);
}

/* Each option has its line, and no line is wider than a terminal of 90 columns. */
static void test_help_text(void **state)
{
	_cleanup_(freep) char *text = NULL;
	size_t n = 0, n_found = 0;
	FILE *to = open_memstream(&text, &n);

	(void)state;
	assert_non_null(to);
	config_print_help(to);
	assert_int_equal(fclose(to), 0);
	for (const char *line = text; *line;) {
		const size_t length = strcspn(line, "\n");

		if (length > 90)
			fail_msg("%zu columns: %.*s", length, (int)length, line);
		n_found += strncmp(line, "  --", 4) == 0;
		line += length + 1;
	}
	assert_true(n_found > 30);
	assert_non_null(
		strstr(text, "\n  --cpu-rate HZ             samples per second and CPU; 0 "));
	assert_non_null(strstr(text, "\n                            (default: 97)\n"));
}

/* Settings that the chart makes itself, from other values. */
static bool is_charts(const char *name)
{
	static const char *const names[] = {
		"listen",     "cgroupfs-root", "destination",	 "store-dir",
		"spool-dir",  "metadata",      "kubelet-verify", "config",
		"web-config", "debuginfod",    "debuginfod-dir",
	};

	for (size_t i = 0; i < array_size(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static void check_choices(const json_t *words, const char *const *choices)
{
	size_t n = 0;

	for (; choices[n]; n++)
		assert_string_equal(json_string_value(json_array_get(words, n)), choices[n]);
	assert_int_equal(json_array_size(words), n);
}

/* helm install rejects misspelt settings: the chart's schema has the name and kind of each. */
/* Texts that the chart knows more of; NULL: with a schema of their own. */
static const struct {
	const char *option, *schema;
} special_schemas[] = {
	{"ui-listen", "#/definitions/address"},
	{"doc-url", NULL},
	{"kubelet-url", NULL},
	{"label", NULL},
};

/* "" for a schema of its own. */
static const char *schema_of(const struct option_desc *option)
{
	static const char *const kinds[] = {
		[OPTION_STRING] = "#/definitions/string",
		[OPTION_UINT] = "#/definitions/rate",
		[OPTION_SHARE] = "#/definitions/share",
		[OPTION_DURATION] = "#/definitions/duration",
		[OPTION_BYTES] = "#/definitions/bytes",
		[OPTION_BOOL] = "#/definitions/bool",
		[OPTION_LIST] = "#/definitions/list",
	};

	for (size_t i = 0; i < array_size(special_schemas); i++)
		if (strcmp(option->name, special_schemas[i].option) == 0)
			return special_schemas[i].schema ? special_schemas[i].schema : "";
	return kinds[option->kind];
}

static void chart_knows_settings(void **state)
{
	json_t *schema = json_load_file("charts/podprof/values.schema.json", 0, NULL);
	const json_t *config, *known;
	size_t n = 0;

	(void)state;
	assert_non_null(schema);
	config = json_object_get(json_object_get(schema, "properties"), "config");
	assert_true(json_is_false(json_object_get(config, "additionalProperties")));
	known = json_object_get(config, "properties");
	for (size_t i = 0; i < n_options; i++) {
		const struct option_desc *option = &options[i];
		const json_t *has = json_object_get(known, option->name);

		row_begin(option->name);
		if (is_charts(option->name)) {
			assert_null(has);
			continue;
		}
		n++;
		assert_non_null(has);
		if (option->kind == OPTION_CHOICE)
			check_choices(json_object_get(has, "enum"), option->choices);
		else if (*schema_of(option))
			assert_string_equal(json_string_value(json_object_get(has, "$ref")),
					    schema_of(option));
		else
			assert_true(json_object_get(has, "pattern") ||
				    json_object_get(has, "anyOf"));
	}
	assert_int_equal(json_object_size(known), n);
	json_decref(schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_in_kubernetes),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_lists_replace),
		cmocka_unit_test(test_event_sampler),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_bad_file),
		cmocka_unit_test(test_diff),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_help_text),
		cmocka_unit_test(chart_knows_settings),
		cmocka_unit_test(test_relabel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
