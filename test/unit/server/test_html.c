// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "base/buf.h"
#include "base/nsec.h"
#include "server/html.h"

#define FFFD "\xef\xbf\xbd"

static void test_text(void **state)
{
	static const struct {
		const char *text, *html;
	} rows[] = {
		{"", ""},
		{"plain gr\xc3\xbc\xc3\x9f", "plain gr\xc3\xbc\xc3\x9f"},
		{"<b>&amp;\"'", "&lt;b&gt;&amp;amp;&quot;&#39;"},
		{"a\n\t\x1b\x7f", "a" FFFD FFFD FFFD FFFD},
		{"\xc2\x85\xc2\xa0", FFFD "\xc2\xa0"}, /* U+0085, U+00A0 */
		{"\xe2\x80\xae"
		 "x",
		 FFFD "x"},					      /* U+202E */
		{"\xd8\x9c\xe2\x80\x8f\xe2\x80\xa8", FFFD FFFD FFFD}, /* U+061C, U+200F, U+2028 */
		{"\xe2\x80\x90\xe2\x80\xaf",
		 "\xe2\x80\x90\xe2\x80\xaf"}, /* the adjacent characters */
		{"\xe2\x81\xa6\xe2\x81\xaa", FFFD "\xe2\x81\xaa"},
		{"\xff<\xc3", "?&lt;?"},
		{"\xe2\x80", "??"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf b = BUF_INIT(1000);
		struct html h = {.b = &b};

		row_begin(rows[i].html);
		html_raw(&h, "");
		html_text(&h, rows[i].text);
		assert_int_equal(h.error, 0);
		assert_string_equal(b.data, rows[i].html);
	}
}

static void test_numbers(void **state)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(1000);
	struct html h = {.b = &b};

	(void)state;
	html_bytes(&h, 0);
	html_raw(&h, "|");
	html_bytes(&h, 1023);
	html_raw(&h, "|");
	html_bytes(&h, 1536);
	html_raw(&h, "|");
	html_bytes(&h, UINT64_MAX);
	html_raw(&h, "|");
	html_duration(&h, 0);
	html_raw(&h, "|");
	html_duration(&h, 250 * NSEC_PER_MSEC);
	html_raw(&h, "|");
	html_duration(&h, 60 * NSEC_PER_SEC);
	html_raw(&h, "|");
	html_duration(&h, 1234 * NSEC_PER_MSEC);
	html_raw(&h, "|");
	html_time(&h, 1000000000 * NSEC_PER_SEC);
	html_printf(&h, "|%d%%", 7);
	assert_int_equal(h.error, 0);
	assert_string_equal(b.data, "0 B|1023 B|1.5 KiB|16.0 EiB|0 ms|250 ms|60 s|1.23 s|"
				    "2001-09-09 01:46:40|7%");
}

/* After a failure nothing more is written, so the page is a valid prefix. */
static void test_full(void **state)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(5);
	struct html h = {.b = &b};

	(void)state;
	html_raw(&h, "abc");
	html_text(&h, "<<");
	html_raw(&h, "d");
	assert_int_equal(h.error, BUF_FULL);
	assert_string_equal(b.data, "abc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
