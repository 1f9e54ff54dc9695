// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "export/origin.h"

static void test_ok(void **state)
{
	static const struct {
		const char *url;
		bool ok;
	} rows[] = {
		{"https://h", true},
		{"https://h/", true},
		{"http://h:9000", true},
		{"https://[::1]:9000", true},
		{"https://h/bucket", false},
		{"https://h?x", false},
		{"https://h/#x", false},
		{"https://u@h", false},
		{"https://u:p@h", false},
		{"ftp://h", false},
		{"file:///etc", false},
		{"h", false},
		{"/h", false},
		{"https://h:99999", false},
		{"https://", false},
		{"", false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].url);
		assert_int_equal(origin_ok(rows[i].url), rows[i].ok);
	}
}

static void test_is_of(void **state)
{
	static const struct {
		const char *origin, *url;
		bool same;
		const char *text; /* of @url */
	} rows[] = {
		{"https://h", "https://h/b/id?X-Signature=%2F&x=1#y", true, "https://h:443"},
		{"https://H.example", "HTTPS://h.EXAMPLE/x", true, "https://h.EXAMPLE:443"},
		{"https://h", "https://h:443/x", true, "https://h:443"},
		{"http://h:80/", "http://h/x", true, "http://h:80"},
		{"http://h:9000", "http://h:9000/../x", true, "http://h:9000"},
		{"http://h:9000", "http://h:9001/x", false, "http://h:9001"},
		{"https://h", "http://h/x", false, "http://h:80"},
		{"https://h", "http://h:443/x", false, "http://h:443"},
		{"https://h", "https://h.evil/x", false, "https://h.evil:443"},
		{"https://h", "https://evil/h", false, "https://evil:443"},
		{"https://h", "https://h@evil/x", false, ""},
		{"https://h", "https://h:x@evil/x", false, ""},
		{"https://h", "https:/x", false, NULL}, /* libcurl's releases differ */
		{"https://h", "//h/x", false, ""},
		{"https://h", "file://h/x", false, ""},
		{"https://h", "gopher://h:443/x", false, ""},
		{"https://h", "", false, ""},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(freep) char *text = origin_text(rows[i].url);

		row_begin(rows[i].url);
		assert_int_equal(origin_is_of(rows[i].origin, rows[i].url), rows[i].same);
		if (rows[i].text)
			assert_string_equal(text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ok),
		cmocka_unit_test(test_is_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
