// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/json_splitter.h"
#include "support/allocfail.h"

#define VALUE_MAX 24

struct row {
	const char *name;
	enum json_splitter_mode mode;
	const char *json;
	const char *want; /* KEY=VALUE; each */
	int outcome;
	size_t n_too_large;
};

#define MEMBERS JSON_SPLITTER_MEMBERS
#define VALUES	JSON_SPLITTER_VALUES

static const struct row rows[] = {
	{"empty object", MEMBERS, "{}", "", 0, 0},
	{"blanks", MEMBERS, " \t\r\n{ } \n", "", 0, 0},
	{"scalars", MEMBERS, "{\"a\":1,\"b\" : -2.5e+3 ,\"c\":null,\"d\":\"x\"}",
	 "a=1;b=-2.5e+3;c=null;d=\"x\";", 0, 0},
	{"object", MEMBERS, "{\"a\":{\"b\":[1,{}]}}", "a={\"b\":[1,{}]};", 0, 0},
	{"elements", MEMBERS, "{\"i\":[{\"a\":1},[2],\"3\", 4 ],\"z\":5}",
	 "i={\"a\":1};i=[2];i=\"3\";i=4;z=5;", 0, 0},
	{"no elements", MEMBERS, "{\"i\":[ ],\"z\":5}", "z=5;", 0, 0},
	{"brackets in strings", MEMBERS, "{\"a\":[\"}]\",\"\\\"]\",\"\\\\\"]}",
	 "a=\"}]\";a=\"\\\"]\";a=\"\\\\\";", 0, 0},
	{"name with an escape", MEMBERS, "{\"a\\\"b\":1,\"c\":2}", "=1;c=2;", 0, 0},
	{"longest name", MEMBERS, "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":1}",
	 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1;", 0, 0},
	{"longer name", MEMBERS, "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":1}", "=1;", 0, 0},
	{"empty name", MEMBERS, "{\"\":1}", "=1;", 0, 0},
	{"largest value", MEMBERS, "{\"a\":\"1234567890123456789012\"}",
	 "a=\"1234567890123456789012\";", 0, 0},
	{"larger value", MEMBERS, "{\"a\":\"12345678901234567890123\",\"b\":2}", "b=2;", 0, 1},
	{"larger element", MEMBERS, "{\"a\":[{\"x\":\"1234567890123456789\"},7]}", "a=7;", 0, 1},

	{"nothing", MEMBERS, "", "", JSON_SPLITTER_MALFORMED, 0},
	{"no object", MEMBERS, "[1]", "", JSON_SPLITTER_MALFORMED, 0},
	{"unended", MEMBERS, "{\"a\":1", "", JSON_SPLITTER_MALFORMED, 0},
	{"unended string", MEMBERS, "{\"a\":\"1}", "", JSON_SPLITTER_MALFORMED, 0},
	{"unended array", MEMBERS, "{\"a\":[1", "", JSON_SPLITTER_MALFORMED, 0},
	{"no name", MEMBERS, "{1:2}", "", JSON_SPLITTER_MALFORMED, 0},
	{"no colon", MEMBERS, "{\"a\" 1}", "", JSON_SPLITTER_MALFORMED, 0},
	{"no value", MEMBERS, "{\"a\":,\"b\":1}", "", JSON_SPLITTER_MALFORMED, 0},
	{"no comma", MEMBERS, "{\"a\":1 \"b\":2}", "a=1;", JSON_SPLITTER_MALFORMED, 0},
	{"comma too many", MEMBERS, "{\"a\":1,}", "a=1;", JSON_SPLITTER_MALFORMED, 0},
	{"element too few", MEMBERS, "{\"a\":[1,]}", "a=1;", JSON_SPLITTER_MALFORMED, 0},
	{"wrong bracket", MEMBERS, "{\"a\":[1}}", "a=1;", JSON_SPLITTER_MALFORMED, 0},
	{"text behind", MEMBERS, "{} x", "", JSON_SPLITTER_MALFORMED, 0},
	{"html", MEMBERS, "<html>", "", JSON_SPLITTER_MALFORMED, 0},

	{"no values", VALUES, " \n", "", 0, 0},
	{"events", VALUES, "{\"a\":[1]}\n{\"b\":2}\n", "={\"a\":[1]};={\"b\":2};", 0, 0},
	{"side by side", VALUES, "{}[]\"x\"", "={};=[];=\"x\";", 0, 0},
	{"words", VALUES, "1 true", "=1;=true;", 0, 0},
	{"event too large", VALUES, "{\"a\":\"12345678901234567890\"}\n{\"b\":2}\n", "={\"b\":2};",
	 0, 1},
	{"half an event", VALUES, "{\"a\":1}\n{\"b\":", "={\"a\":1};", JSON_SPLITTER_MALFORMED, 0},
	{"a bracket too many", VALUES, "{}}", "={};", JSON_SPLITTER_MALFORMED, 0},
};

static int see(void *ctx, const char *key, const char *json, size_t n)
{
	return buf_printf(ctx, "%s=%.*s;", key, (int)n, json);
}

/* All of @json in pieces of @step bytes. */
static int cut(const struct row *row, size_t step, struct buf *seen, uint64_t *ret_too_large)
{
	size_t n = strlen(row->json);
	struct json_splitter c;
	int r = 0;

	json_splitter_init(&c, row->mode, VALUE_MAX, see, seen);
	for (size_t i = 0; i < n && !r; i += step)
		r = json_splitter_feed(&c, row->json + i, n - i < step ? n - i : step);
	if (!r)
		r = json_splitter_end(&c);
	*ret_too_large = c.n_too_large;
	json_splitter_deinit(&c);
	return r;
}

/* Any division into pieces gives the same result. */
static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].name);
		for (size_t step = 1; step < 64; step++) {
			struct buf seen = BUF_INIT(4096);
			uint64_t n_too_large;

			assert_int_equal(cut(&rows[i], step, &seen, &n_too_large), rows[i].outcome);
			assert_string_equal(seen.data ? seen.data : "", rows[i].want);
			assert_int_equal(n_too_large, rows[i].n_too_large);
			buf_deinit(&seen);
		}
	}
}

static int stop(void *ctx, const char *key, const char *json, size_t n)
{
	(void)key;
	(void)json;
	(void)n;
	return --*(int *)ctx ? 0 : 42;
}

static void stops_where_it_is_told_to(void **state)
{
	struct json_splitter c;
	int left = 2;

	(void)state;
	json_splitter_init(&c, JSON_SPLITTER_VALUES, VALUE_MAX, stop, &left);
	assert_int_equal(json_splitter_feed(&c, "{}{}{}", 6), 42);
	assert_int_equal(c.n_values, 2);
	json_splitter_deinit(&c);
}

static int attempt(void *ctx)
{
	const struct row *row = ctx;
	struct buf seen = BUF_INIT(4096);
	uint64_t n_too_large;
	int r = cut(row, 3, &seen, &n_too_large);

	buf_deinit(&seen);
	return r;
}

static void out_of_memory(void **state)
{
	(void)state;
	allocfail_each(attempt, (void *)&rows[4]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(stops_where_it_is_told_to),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
