// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "export/pyroscope_reply.h"

#define BEGIN	  "failed to make a GRPC request: "
#define AT(index) "push series with index " #index " and id 5e9b-1 failed: "
#define BUSY	  "resource_exhausted: push rate limit (4 MiB) exceeded"
#define WRONG	  "invalid_argument: too many labels: '{pod=\"a\"}'"
#define DOWN	  "unavailable: no segment writer"

/* @fates: one letter for each of four profiles, S stored, E exhausted, F failed; NULL: none named
 */
struct row {
	const char *name;
	const char *text;
	const char *fates;
	bool partial;
};

static const struct row rows[] = {
	{"one", BEGIN AT(2) WRONG "\n", "SSFS", true},
	{"the first", BEGIN AT(0) BUSY, "ESSS", true},
	{"the last", BEGIN AT(3) DOWN, "SSSF", true},
	{"one beyond the last", BEGIN AT(4) WRONG, NULL, true},
	{"two", BEGIN "2 errors: " AT(3) BUSY "; " AT(1) WRONG, "SFSE", true},
	{"all", BEGIN "4 errors: " AT(3) BUSY "; " AT(1) WRONG "; " AT(0) DOWN "; " AT(2) BUSY,
	 "FFEE", true},
	{"a count of one", BEGIN "1 errors: " AT(1) BUSY, "SESS", true},
	{"no failure", BEGIN, NULL, true},
	{"a count of none", BEGIN "0 errors: ", NULL, true},
	{"one more than the count", BEGIN "2 errors: " AT(3) BUSY "; " AT(1) BUSY "; " AT(0) BUSY,
	 NULL, true},
	{"one less, as after a cut", BEGIN "3 errors: " AT(3) BUSY "; " AT(1) BUSY, NULL, true},
	{"cut inside", BEGIN "2 errors: " AT(3) BUSY "; push series with index 1 and id 5e", NULL,
	 true},
	{"a count beyond 64 bits", BEGIN "99999999999999999999 errors: " AT(3) BUSY, NULL, true},
	{"the same twice", BEGIN "2 errors: " AT(1) BUSY "; " AT(1) BUSY, NULL, true},
	{"a label like a failure", BEGIN AT(1) "invalid_argument: {pod=\"; " AT(0) BUSY "\"}", NULL,
	 true},
	{"a label like its end", BEGIN AT(1) "invalid_argument: {pod=\"; push series\"}", "SFSS",
	 true},
	{"an exhausted reason in a label", BEGIN AT(1) "internal: resource_exhausted: ", "SFSS",
	 true},
	{"an index without a number", BEGIN "push series with index x and id 1 failed: ", NULL,
	 true},
	{"no id", BEGIN "push series with index 1 failed: ", NULL, true},
	{"another failure", BEGIN "no new profiles received", NULL, true},
	{"other text before", "x" BEGIN AT(1) BUSY, NULL, false},
	{"the conversion", "rpc error: code = InvalidArgument desc = failed to convert", NULL,
	 false},
	{"nothing", "", NULL, false},
};

static void test_rows(void **state)
{
	static const char letters[] = {
		[PYROSCOPE_STORED] = 'S', [PYROSCOPE_EXHAUSTED] = 'E', [PYROSCOPE_FAILED] = 'F'};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *row = &rows[i];
		enum pyroscope_fate fates[4];

		row_begin(row->name);
		assert_int_equal(pyroscope_reply_is_partial(strview_of(row->text)), row->partial);
		assert_int_equal(pyroscope_reply_fates(strview_of(row->text), 4, fates),
				 row->fates != NULL);
		for (size_t k = 0; row->fates && k < 4; k++)
			assert_int_equal(letters[fates[k]], row->fates[k]);
	}
	assert_false(pyroscope_reply_fates(strview_of(rows[0].text), 0, NULL));
}

/* An answer without its end. */
static void test_cut(void **state)
{
	static const struct {
		const char *text;
		bool partial;
	} cuts[] = {
		{"", true},
		{"failed", true},
		{BEGIN, true},
		{BEGIN "2 err", true},
		{"failed to process", false},
		{"rpc error", false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cuts); i++) {
		row_begin(cuts[i].text);
		assert_int_equal(pyroscope_reply_may_be_partial(strview_of(cuts[i].text)),
				 cuts[i].partial);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_cut)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
