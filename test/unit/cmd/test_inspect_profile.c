// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "cmd/cmd.h"
#include "pprof/pprof.h"
#include "support/command.h"

#define OUTPUT_MAX (1u << 20)

DEFINE_CLEANUP(struct pprof *, pprof_freep, pprof_free);

/* @arguments: of 'inspect profile', words without quotes */
static void inspect(const char *arguments, struct command_run *ret)
{
	char line[512];

	snprintf(line, sizeof(line), "inspect profile %s", arguments);
	command_run(line, ret);
}

struct usage_row {
	const char *line;
	int status;
	const char *err; /* a part of the text */
};

#define CPU "test/data/pprof/go_cpu.pb.gz"

static const struct usage_row usage_rows[] = {
	{"", CMD_USAGE, "give one FILE or '-'"},
	{CPU " " CPU, CMD_USAGE, "give one FILE or '-'"},
	{"--what " CPU, CMD_USAGE, "unknown option '--what'"},
	{"-x " CPU, CMD_USAGE, "unknown option '-x'"},
	{CPU " --top", CMD_USAGE, "missing value after '--top'"},
	{"--top many " CPU, CMD_USAGE, "--top takes a number, not 'many'"},
	{"--sample-type heap " CPU, CMD_FAILED, "no sample type 'heap'; it has: samples, cpu"},
	{"/nowhere/x.pb.gz", CMD_FAILED, "cannot read /nowhere/x.pb.gz: No such file"},
	{"/", CMD_FAILED, "cannot read /"},
	{"Makefile", CMD_FAILED, "cannot parse Makefile"},
	{"/dev/null", CMD_FAILED, "it has no strings, so it is no profile"},
};

static void test_usage(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(usage_rows); i++) {
		_cleanup_(command_run_deinit) struct command_run r;

		row_begin(usage_rows[i].line);
		inspect(usage_rows[i].line, &r);
		command_assert_error(&r, usage_rows[i].status, usage_rows[i].err);
	}
}

static void test_help(void **state)
{
	_cleanup_(command_run_deinit) struct command_run r;

	(void)state;
	inspect("--help", &r);
	assert_int_equal(r.status, CMD_DONE);
	assert_string_equal(r.err.data, "");
	command_assert_has(&r.out, "--sample-type TYPE");
	command_assert_has(&r.out, "--top N");
	command_assert_has(&r.out, "--json");
}

static void test_text(void **state)
{
	_cleanup_(command_run_deinit) struct command_run r, heap;

	(void)state;
	inspect("--top 2 " CPU, &r);
	assert_int_equal(r.status, CMD_DONE);
	assert_string_equal(r.err.data, "");
	command_assert_has(&r.out, "time        2026-11-21T11:34:14Z, for 800.05ms\n");
	command_assert_has(&r.out, "period      10000000 cpu/nanoseconds\n");
	command_assert_has(&r.out, "cpu/nanoseconds 800.00ms (default)\n");
	command_assert_has(&r.out, "labels      request: slow (5)\n");
	command_assert_has(&r.out, "cpu by flat value\n");
	command_assert_has(&r.out, "640.00ms  80.00%     800.00ms 100.00%  main.spin\n");
	assert_null(strstr(r.out.data, "runtime.asyncPreempt")); /* the fourth */
	inspect("--sample-type inuse_space test/data/pprof/go_heap.pb.gz", &heap);
	command_assert_has(&heap.out, "490.05KiB  96.52%");
}

static void test_json(void **state)
{
	_cleanup_(command_run_deinit) struct command_run r;
	const char *function, *type;
	json_t *json;
	json_int_t flat, cum, total;

	(void)state;
	inspect("--json --sample-type samples " CPU, &r);
	assert_int_equal(r.status, CMD_DONE);
	json = json_loads(r.out.data, 0, NULL);
	assert_non_null(json);
	assert_int_equal(json_unpack(json, "{s:s, s:I, s:{s:[{s:s, s:I}], s:[{s:I}]}}",
				     "sample_type", &type, "total", &total, "top", "flat",
				     "function", &function, "flat", &flat, "cum", "cum", &cum),
			 0);
	assert_string_equal(type, "samples");
	assert_string_equal(function, "main.spin");
	assert_int_equal(total, 80);
	assert_int_equal(flat, 64);
	assert_int_equal(cum, 80);
	json_decref(json);
}

static void test_empty_profile(void **state)
{
	_cleanup_(command_run_deinit) struct command_run r, json;

	(void)state;
	inspect("test/data/pprof/go_empty.pb.gz", &r);
	assert_int_equal(r.status, CMD_DONE);
	command_assert_has(&r.out, "stacks      0,");
	inspect("--json test/data/pprof/go_empty.pb.gz", &json);
	assert_int_equal(json.status, CMD_DONE);
}

/* Nothing in a file can speak to the terminal. */
static void test_control_characters(void **state)
{
	static const char bad[] = "x\x1b[2J\r\n\x07\xc2\x9b\x7f";
	const struct pprof_opts opts = {
		.types = {{bad, bad}}, .n_types = 1, .period_type = {bad, bad}};
	const struct pprof_mapping mapping = {.path = bad, .build_id = bad};
	const struct pprof_label labels[] = {{.key = bad, .str = bad, .unit = bad}};
	_cleanup_(pprof_freep) struct pprof *p = NULL;
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(OUTPUT_MAX);
	_cleanup_(command_run_deinit) struct command_run r, wrong;
	char path[] = "/tmp/test_inspect.XXXXXX", line[128];
	struct pprof_line at = {.line = 1};
	uint32_t map, location;
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(pprof_new(&opts, &p), 0);
	assert_int_equal(pprof_mapping(p, &mapping, &map), 0);
	assert_int_equal(pprof_function(p, bad, bad, bad, 0, &at.function), 0);
	assert_int_equal(pprof_location(p, map, 1, &at, 1, &location), 0);
	assert_int_equal(pprof_sample(p, &location, 1, (int64_t[]){1}, labels, 1), 0);
	assert_int_equal(pprof_comment(p, bad), 0);
	assert_int_equal(pprof_encode(p, &gz), 0);
	assert_int_equal(write(fd, gz.data, gz.len), gz.len);
	close(fd);
	inspect(path, &r);
	snprintf(line, sizeof(line), "--sample-type y %s", path);
	inspect(line, &wrong);
	unlink(path);
	assert_int_equal(r.status, CMD_DONE);
	assert_int_equal(wrong.status, CMD_FAILED);
	for (size_t i = 0; i < r.out.len; i++)
		assert_true(r.out.data[i] == '\n' ||
			    (r.out.data[i] >= ' ' && r.out.data[i] < 0x7f));
	for (size_t i = 0; i + 1 < wrong.err.len; i++)
		assert_true(wrong.err.data[i] >= ' ' && wrong.err.data[i] < 0x7f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usage),	      cmocka_unit_test(test_help),
		cmocka_unit_test(test_text),	      cmocka_unit_test(test_json),
		cmocka_unit_test(test_empty_profile), cmocka_unit_test(test_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
