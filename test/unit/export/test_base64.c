// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "support/allocfail.h"

#include "base/buf.h"
#include "export/base64.h"

/* RFC 4648, section 10, and bytes of all bits. */
static const struct {
	const char *bytes, *text;
} rows[] = {
	{"", ""},
	{"f", "Zg=="},
	{"fo", "Zm8="},
	{"foo", "Zm9v"},
	{"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="},
	{"foobar", "Zm9vYmFy"},
	{"\xff\xef\xbf", "/++/"},
	{"\xfb", "+w=="},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf b = BUF_INIT(64);

		row_begin(rows[i].text);
		assert_int_equal(buf_puts(&b, "-"), 0);
		assert_int_equal(base64_put(&b, rows[i].bytes, strlen(rows[i].bytes)), 0);
		assert_int_equal(b.len, 1 + base64_len(strlen(rows[i].bytes)));
		assert_memory_equal(b.data + 1, rows[i].text, strlen(rows[i].text));
	}
}

static void test_full(void **state)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(8);

	(void)state;
	assert_int_equal(base64_put(&b, "foob", 4), 0);
	assert_int_equal(base64_put(&b, "f", 1), BUF_FULL);
	assert_int_equal(b.len, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
