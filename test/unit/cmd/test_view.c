// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/view.h"

/* The printed form of @object. Takes @object. */
static char *printed(json_t *object, bool json, const char *template, int *ret)
{
	FILE *before = stdout;
	char *text = NULL;
	size_t n;

	stdout = open_memstream(&text, &n);
	assert_non_null(stdout);
	*ret = view_print(object, json, template);
	fclose(stdout);
	stdout = before;
	return text;
}

static json_t *an_object(void)
{
	return json_pack("{s:s, s:s, s:s, s:n, s:i, s:i, s:b, s:b, s:o, s:{s:o, s:o}}", "text",
			 "abc", "foreign", "x\033[1m\xc2\x9b", "empty", "", "null", "number", 26,
			 "zero", 0, "yes", 1, "no", 0, "hex", view_hex(0x1f00), "range", "start",
			 view_hex(1), "limit", view_hex(UINT64_MAX));
}

static void test_fields(void **state)
{
	static const struct {
		const char *template;
		const char *text;
	} rows[] = {
		{"", ""},
		{"no field\n", "no field\n"},
		{"{text}", "abc"},
		{"<{text:5}> <{text:-5}> <{text:2}>", "<  abc> <abc  > <abc>"},
		{"{empty} {null} {absent}", "- - -"},
		{"<{null:3}> <{null|none}> <{null:-6|none}> <{null|}>", "<  -> <none> <none  > <>"},
		{"{text|none} {zero|none}", "abc 0"},
		{"{number} {number:4} {number:x} {number:6X}", "26   26 1a   0x1a"},
		{"{zero} {zero:z} {number:z} {zero:x}", "0 - 26 0"},
		{"{hex} {hex:x} {hex:8x}", "0x1f00 1f00     1f00"},
		{"{yes} {no} {yes:m} {no:m} {no:3m}|", "yes no x -   -|"},
		{"{range:r} {range:-20r}|", "1-ffffffffffffffff 1-ffffffffffffffff  |"},
		{"<[text? {text}:{zero}]>", "< abc:0>"},
		{"<[null?a][empty?b][absent?c][no?d][zero?e][yes?f]>", "<ef>"},
		{"<[!null?a][!empty?b][!absent?c][!no?d][!zero?e][!yes?f]>", "<abcd>"},
		{"{foreign} <{foreign:-8}>", "x?[1m? <x?[1m? >"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(freep) char *text = NULL;
		int r;

		row_begin(rows[i].template);
		text = printed(an_object(), false, rows[i].template, &r);
		assert_int_equal(r, 0);
		assert_string_equal(text, rows[i].text);
	}
}

static void test_forms(void **state)
{
	_cleanup_(freep) char *json = NULL, *raw = NULL, *nothing = NULL;
	int r;

	(void)state;
	/* DEL, the last C1 character, and the first letter after these; a mark of direction */
	raw = printed(json_pack("{s:s}", "a\xc2\x85", "x\033\x7f\xc2\x9f\xc2\xa0\xe2\x80\xae"),
		      true, "", &r);
	assert_int_equal(r, 0);
	assert_string_equal(raw, "{\"a\\u0085\":\"x\\u001B\\u007F\\u009F\xc2\xa0\\u202E\"}\n");
	json = printed(json_pack("{s:o, s:o, s:o}", "a", view_hex(0), "b", view_text(""), "c",
				 view_text("x\033[1m\xe9")),
		       true, "{a}\n", &r);
	assert_int_equal(r, 0);
	assert_string_equal(json, "{\"a\":\"0x0\",\"b\":null,\"c\":\"x?[1m?\"}\n");
	nothing = printed(NULL, false, "{a}\n", &r);
	assert_int_equal(r, -ENOMEM);
	assert_string_equal(nothing, "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
