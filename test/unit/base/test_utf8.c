// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static void test_utf8(void **state)
{
	static const struct {
		const char *name, *bytes, *repaired;
	} rows[] = {
		{"nothing", "", ""},
		{"ASCII", "a\x7f", "a\x7f"},
		{"two bytes, first", "\xc2\x80", "\xc2\x80"},
		{"two bytes, last", "\xdf\xbf", "\xdf\xbf"},
		{"overlong two", "\xc1\xbf", "??"},
		{"three bytes, first", "\xe0\xa0\x80", "\xe0\xa0\x80"},
		{"overlong three", "\xe0\x9f\xbf", "???"},
		{"before the surrogates", "\xed\x9f\xbf", "\xed\x9f\xbf"},
		{"first surrogate", "\xed\xa0\x80", "???"},
		{"after the surrogates", "\xee\x80\x80", "\xee\x80\x80"},
		{"four bytes, first", "\xf0\x90\x80\x80", "\xf0\x90\x80\x80"},
		{"overlong four", "\xf0\x8f\xbf\xbf", "????"},
		{"last of all", "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
		{"one beyond", "\xf4\x90\x80\x80", "????"},
		{"lead that never was", "\xf5\x80\x80\x80", "????"},
		{"continuation alone", "a\x80z", "a?z"},
		{"cut short", "\xe2\x82", "??"},
		{"broken in the middle", "\xe2\x82z", "??z"},
		{"good after bad", "\xff\xc3\xa9", "?\xc3\xa9"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		size_t n = strlen(rows[i].bytes);
		/* of exactly this size, so ASan sees a read beyond the end */
		_cleanup_(freep) char *bytes = n ? malloc(n) : NULL;

		row_begin(rows[i].name);
		if (bytes)
			memcpy(bytes, rows[i].bytes, n);
		assert_int_equal(utf8_is_valid(bytes, n),
				 strcmp(rows[i].bytes, rows[i].repaired) == 0);
		utf8_repair(bytes, n);
		if (bytes)
			assert_memory_equal(bytes, rows[i].repaired, n);
		assert_true(utf8_is_valid(bytes, n));
	}
}

static void test_printable(void **state)
{
	static const struct {
		const char *name, *text, *printable;
	} rows[] = {
		{"nothing", "", ""},
		{"characters", "a b~\xc3\xa9", "a b~\xc3\xa9"},
		{"escape", "\x1b[2J", "?[2J"},
		{"last of C0", "\x1f ", "? "},
		{"DEL", "a\x7f", "a?"},
		{"first of C1", "\xc2\x80z", "??z"},
		{"last of C1", "\xc2\x9f", "??"},
		{"after C1", "\xc2\xa0", "\xc2\xa0"},
		{"half of a C1", "\xc2", "?"},
		{"right-to-left override",
		 "a\xe2\x80\xae"
		 "b",
		 "a???b"},
		{"an isolate",
		 "\xe2\x81\xa6"
		 "b",
		 "???b"},
		{"an Arabic mark", "\xd8\x9c", "??"},
		{"a line's end", "\xe2\x80\xa8", "???"},
		{"characters beside them", "\xd8\x9b\xe2\x80\x90\xe2\x80\xaf",
		 "\xd8\x9b\xe2\x80\x90\xe2\x80\xaf"},
		{"one of four bytes", "\xf0\x9f\x90\x9d", "\xf0\x9f\x90\x9d"},
		{"a byte that is a C1 elsewhere", "\x9b", "?"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(freep) char *text = strdup(rows[i].text);

		row_begin(rows[i].name);
		utf8_make_printable(text);
		assert_string_equal(text, rows[i].printable);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
