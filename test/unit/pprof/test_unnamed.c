// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/buf.h"
#include "pprof/unnamed.h"

struct row {
	const char *comment;
	uint32_t per_mille; /* UINT32_MAX: another comment */
	const char *reason;
	const char *path;
};

static const struct row rows[] = {
	{"unnamed 34.1% stripped_no_debug /usr/lib/libfoo.so", 341, "stripped_no_debug",
	 "/usr/lib/libfoo.so"},
	{"unnamed 0.1% no_mapping [unknown]", 1, "no_mapping", "[unknown]"},
	{"unnamed 100.0% no_perf_map [anon: a name]", 1000, "no_perf_map", "[anon: a name]"},
	{"unnamed 100.9% a b", 1009, "a", "b"},
	{"unnamed 101.0% a b", UINT32_MAX, NULL, NULL},
	{"unnamed 1.10% a b", UINT32_MAX, NULL, NULL},
	{"unnamed 1% a b", UINT32_MAX, NULL, NULL},
	{"unnamed 1.0% a", UINT32_MAX, NULL, NULL},
	{"unnamed 1.0% a ", UINT32_MAX, NULL, NULL},
	{"unnamed 1.0% abcdefghijklmnopqrstuvwxyz01234 b", 10, "abcdefghijklmnopqrstuvwxyz01234",
	 "b"},
	{"unnamed 1.0% abcdefghijklmnopqrstuvwxyz012345 b", UINT32_MAX, NULL, NULL},
	{"unnamed", UINT32_MAX, NULL, NULL},
	{"command: unnamed 1.0% a b", UINT32_MAX, NULL, NULL},
	{"", UINT32_MAX, NULL, NULL},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(buf_deinit) struct buf text = BUF_INIT(256);
		struct unnamed u;
		bool found;

		row_begin(rows[i].comment);
		found = unnamed_parse(rows[i].comment, &u);
		assert_int_equal(found, rows[i].per_mille != UINT32_MAX);
		if (!found)
			continue;
		assert_int_equal(u.per_mille, rows[i].per_mille);
		assert_true(strview_is(&u.reason, rows[i].reason));
		assert_true(strview_is(&u.path, rows[i].path));
		assert_int_equal(unnamed_format(&u, &text), 0);
		assert_string_equal(text.data, rows[i].comment);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
