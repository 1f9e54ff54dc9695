// SPDX-License-Identifier: Apache-2.0
/* Matches and refusals of patterns. test_prometheus.c compares many more. */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/labels.h"
#include "relabel/pattern.h"
#include "relabel/template.h"
#include "support/allocfail.h"

DEFINE_CLEANUP(struct pattern *, pattern_freep, pattern_free);
DEFINE_CLEANUP(struct template *, template_freep, template_free);

static void test_match(void **state)
{
	static const struct {
		const char *pattern, *text;
		int outcome;
	} rows[] = {
		{"", "", 0},
		{"", "a", PATTERN_NO_MATCH},
		{"b", "abc", PATTERN_NO_MATCH},
		{"a|b", "ab", PATTERN_NO_MATCH},
		{".", "\n", 0},
		{"(?-s).", "\n", PATTERN_NO_MATCH},
		{"a$", "a\n", PATTERN_NO_MATCH},
		{"a\\z", "a", 0},
		{"(?m)a$\\n", "a\n", 0},
		{"a\\n(?m:^)", "a\n", 0},
		{"a\\n(?m:^)b", "a\nb", 0},
		{"\\s", "\v", PATTERN_NO_MATCH},
		{"[[:space:]]", "\v", 0},
		{"\\d", "\xd9\xa3", PATTERN_NO_MATCH},
		{"\\pN", "\xd9\xa3", 0},
		{"\\w", "\xc3\xa9", PATTERN_NO_MATCH},
		{"\xc3\xa9\\b.*", "\xc3\xa9 a", PATTERN_NO_MATCH},
		{".", "\xc3\xa9", 0},
		{"(?i)\xc3\x89", "\xc3\xa9", 0},
		{"(?i)k", "\xe2\x84\xaa", 0},
		{"(?i)\\W", "\xe2\x84\xaa", PATTERN_NO_MATCH},
		{"(?i)[\\W]", "s", PATTERN_NO_MATCH},
		{"\\W", "\xe2\x84\xaa", 0},
		{"a(?i)b|c", "C", 0},
		{"(a(?i)b|c)c", "aBC", PATTERN_NO_MATCH},
		{"a{,2}", "a{,2}", 0},
		{"a{,2}", "aa", PATTERN_NO_MATCH},
		{"a{2", "a{2", 0},
		{"a{02}", "a{02}", 0},
		{"\\Qa.b\\E+", "a.bb", 0},
		{"\\Q(\\E|a", "(", 0},
		{"[]a]", "]", 0},
		{"[^]a]", "]", PATTERN_NO_MATCH},
		{"[a-]", "-", 0},
		{"[[:a]", ":", 0},
		{"[[.a.]]", ".]", 0},
		{"#(?i) ", "# ", 0},
		{"\\101\\x41\\x{41}", "AAA", 0},
		{"(?U)a+?b*", "aab", 0},
		{"\\p{Greek}", "\xce\xbc", 0},
		{"[\\p{Greek}\\d]+", "1\xce\xbc", 0},
		{"\\p{^Greek}", "a", 0},
		{"\\P{^Lu}", "A", 0},
		{"a{1000}", "a", PATTERN_NO_MATCH},
		{"(?i)\\p{Lu}", "a", 0},
		{"\\x{D800}", "a", PATTERN_NO_MATCH},
		{"a(?i)*", "aa", 0},
		{"a\\Q\\E*", "aa", 0},
		{"(?P<a>b)", "b", 0},
		{"(?<a>b)", "b", 0},
		{"((?<a>b)|(?<b>(?<c>c)))", "c", 0},
		{"[(?<a>b)]", "<", 0},
		{"[(?<a>b)]", "P", PATTERN_NO_MATCH},
		{"[](?<a>]", "P", PATTERN_NO_MATCH},
		{"[^](?<a>]", "P", 0},
		{"[\\](?<a>]", "P", PATTERN_NO_MATCH},
		{"[[:digit:](?<a>]", "P", PATTERN_NO_MATCH},
		{"\\Q(?<a>\\E", "(?<a>", 0},
		{"\\(?<a>", "(<a>", 0},
		{"[)]", ")", 0},
		{"\\)", ")", 0},
		{"\\Q)\\C\\E", ")\\C", 0},
		{"\\\\C", "\\C", 0},
		{"a{123456789", "a{123456789", 0},
		{"a{1,2,123456789}", "a{1,2,123456789}", 0},
		/* bytes that are not UTF-8 */
		{"[a]", "\xff", PATTERN_NO_MATCH},
		{".", "\xff", PATTERN_NO_MATCH},
		{"(.*)", "", 0},
		{"(.+)", "", PATTERN_NO_MATCH},
		{"(.+)", "\n", 0},
		{"a_(.+)", "a_", PATTERN_NO_MATCH},
		{"a_(.+)", "a_b", 0},
		{"a_(.+)", "b_b", PATTERN_NO_MATCH},
		{"a.*|b|c.+|", "a", 0},
		{"a.*|b|c.+|", "b", 0},
		{"a.*|b|c.+|", "ba", PATTERN_NO_MATCH},
		{"a.*|b|c.+|", "c", PATTERN_NO_MATCH},
		{"a.*|b|c.+|", "c\n", 0},
		{"a.*|b|c.+|", "", 0},
		{"a|", "b", PATTERN_NO_MATCH},
		{"a-z", "b", PATTERN_NO_MATCH},
		{"a-z", "a-z", 0},
		{"a+", "aa", 0},
		{"a*|b", "aaa", 0},
		{"a.*b", "acb", 0},
		{"a?|b", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(pattern_freep) struct pattern *p = NULL;
		struct pattern_error error = {""};

		row_begin(rows[i].pattern);
		assert_int_equal(pattern_new(rows[i].pattern, &p, &error), 0);
		assert_string_equal(pattern_text(p), rows[i].pattern);
		assert_int_equal(pattern_match(p, rows[i].text, strlen(rows[i].text), NULL),
				 rows[i].outcome);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *pattern, *error;
	} rows[] = {
		{"(a)\\1", "invalid escape sequence: \\1"},
		{"\\k<a>", "invalid escape sequence: \\k"},
		{"(?P=a)", "invalid perl operator: (?P"},
		{"a(?=b)", "invalid perl operator: (?="},
		{"(?!b)", "invalid perl operator: (?!"},
		{"(?<!b)", "invalid perl operator: (?<"},
		{"(?<=b)", "invalid perl operator: (?<"},
		{"(?>b)", "invalid perl operator: (?>"},
		{"(?R)", "invalid perl operator: (?R"},
		{"(?1)", "invalid perl operator: (?1"},
		{"(?C1)", "invalid perl operator: (?C"},
		{"(?(1)a)", "invalid perl operator: (?("},
		{"(?#a)", "invalid perl operator: (?#"},
		{"(*ACCEPT)", "no argument for repetition operator: *"},
		{"(?x)a", "invalid perl operator: (?x"},
		{"(?i", "invalid perl operator: (?i"},
		{"(?i-)", "invalid perl operator: (?i-)"},
		{"a++", "bad repetition operator: ++"},
		{"a**", "bad repetition operator: **"},
		{"*a", "no argument for repetition operator: *"},
		{"a|{2}", "no argument for repetition operator: {2}"},
		{"(?i)*", "no argument for repetition operator: *"},
		{"a{1001}", "invalid repetition size: {1001}"},
		{"a{2,1}", "invalid repetition size: {2,1}"},
		{"a{123456789}", "invalid repetition size: {123456789}"},
		{"a{1,99999999999999999999}", "invalid repetition size: {1,99999999999999999999}"},
		{"((a{100})?){11}", "invalid repetition size: {11}"},
		{"(a", "missing ): (a"},
		{"a)|(b", "unexpected ): )|(b"},
		{"[a", "missing ]: [a"},
		{"[]", "missing ]: []"},
		{"[b-a]", "invalid character class range: b-a"},
		{"[a-\\d]", "invalid escape sequence: \\d"},
		{"[[:foo:]]", "invalid character class range: [:foo:]"},
		{"[[::]]", "invalid character class range: [::]"},
		{"\\p{Foo}", "invalid character class range: \\p{Foo}"},
		{"\\p{Letter}", "invalid character class range: \\p{Letter}"},
		{"\\p{Greek", "invalid character class range: \\p{Greek"},
		{"\\p", "invalid character class range: \\p"},
		{"\\C", "invalid escape sequence: \\C"},
		{"(a|b\\C)", "invalid escape sequence: \\C"},
		{"a\\Z", "invalid escape sequence: \\Z"},
		{"\\y", "invalid escape sequence: \\y"},
		{"\\\xc3\xa9", "invalid escape sequence: \\\xc3\xa9"},
		{"a\\", "trailing \\"},
		{"\\Qa", "missing \\E: \\Qa"},
		{"\\x{110000}", "invalid escape sequence: \\x{110000"},
		{"\\x{}", "invalid escape sequence: \\x{}"},
		{"\\xg0", "invalid escape sequence: \\xg"},
		{"(?P<a-b>a)", "invalid named capture group: (?P<a-b>"},
		{"(?P<a", "invalid named capture group: (?P<a"},
		{"(?P<>a)", "invalid named capture group: (?P<>"},
		{"(?<a-b>a)", "invalid named capture group: (?<a-b>"},
		{"(?P<\xc3\xa9>a)", "invalid named capture group: (?P<\xc3\xa9>"},
		{"(?P<a>a)(?P<a>b)", "two groups have the same name"},
		{"\xff", "invalid UTF-8"},
		{"(a\nb", "missing ): (a?b"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(pattern_freep) struct pattern *p = NULL;
		struct pattern_error error = {""};

		row_begin(rows[i].pattern);
		assert_int_equal(pattern_new(rows[i].pattern, &p, &error), PATTERN_REFUSED);
		print_message("%s\n", error.text);
		assert_true(strncmp(error.text, rows[i].error, strlen(rows[i].error)) == 0);
	}
}

/* @n times @piece between @before and @after. */
static char *repeated(const char *before, const char *piece, size_t n, const char *after)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(1 << 20);

	assert_int_equal(buf_puts(&b, before), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_puts(&b, piece), 0);
	assert_int_equal(buf_puts(&b, after), 0);
	return buf_take(&b);
}

static void test_ceilings(void **state)
{
	static const struct {
		const char *name, *piece, *after;
		size_t n;
		int outcome;
	} rows[] = {
		{"length", "a", "", PATTERN_TEXT_MAX, 0},
		{"one more", "a", "", PATTERN_TEXT_MAX + 1, PATTERN_REFUSED},
		{"groups", "(a)", "", PATTERN_GROUPS_MAX, 0},
		{"one more group", "(a)", "", PATTERN_GROUPS_MAX + 1, PATTERN_REFUSED},
		{"other groups are not counted", "(?:a)", "", 1000, 0},
		{"compiled size", "[a\\x{1000}]", "", 1000, 0},
		{"more compiled size", "(?:[^a]){1000}", "", 10, PATTERN_REFUSED},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(freep) char *text = repeated("", rows[i].piece, rows[i].n, rows[i].after);
		_cleanup_(pattern_freep) struct pattern *p = NULL;
		struct pattern_error error = {""};

		row_begin(rows[i].name);
		assert_int_equal(pattern_new(text, &p, &error), rows[i].outcome);
		assert_int_equal(!error.text[0], rows[i].outcome == 0);
	}
}

/* As deep as a pattern's length allows. */
static void test_depth(void **state)
{
	static const size_t depths[] = {100, 1000, PATTERN_TEXT_MAX / 4};

	(void)state;
	for (size_t i = 0; i < array_size(depths); i++) {
		_cleanup_(freep) char *open = repeated("", "(?:", depths[i], "");
		_cleanup_(freep) char *text = repeated(open, ")", depths[i], "");
		_cleanup_(pattern_freep) struct pattern *p = NULL;
		struct pattern_error error;

		assert_int_equal(pattern_new(text, &p, &error), 0);
		assert_int_equal(pattern_match(p, "", 0, NULL), 0);
	}
}

/* Hostile values: a backtracking engine would take years for most. */
static void test_linear(void **state)
{
	static const struct {
		const char *pattern, *piece, *after;
		size_t n;
		int outcome;
	} rows[] = {
		{"(a*)*b", "a", "cb", 2000, PATTERN_NO_MATCH},
		{"(a|aa)+b", "a", "cb", 2000, PATTERN_NO_MATCH},
		{"(a|a?)+b", "a", "cb", 2000, PATTERN_NO_MATCH},
		{"(?:.*.*)*x", "a", "xc", 40, PATTERN_NO_MATCH},
		{"(.*a){12}b", "a", "cb", 2000, PATTERN_NO_MATCH},
		{"((((((((((a|b))))))))))*", "ab", "", 16000, 0},
		{"(?:ab|c)*", "ab", "", 16000, 0},
		{".*a.*b", "a", "", 600, PATTERN_NO_MATCH},
		{"(.*);(.*);(.*)", "a", "", 6000, PATTERN_NO_MATCH},
		{"(?i)(.*)kube(.*)system(.*)", "k", "", 2000, PATTERN_NO_MATCH},
		{"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", "a-", "a", 126,
		 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(freep) char *text = repeated("", rows[i].piece, rows[i].n, rows[i].after);
		_cleanup_(pattern_freep) struct pattern *p = NULL;
		struct pattern_error error = {""};

		row_begin(rows[i].pattern);
		assert_int_equal(pattern_new(rows[i].pattern, &p, &error), 0);
		assert_int_equal(pattern_match(p, text, strlen(text), NULL), rows[i].outcome);
	}
}

/* The longest permitted text for a program, and one more byte. */
static void test_work(void **state)
{
	static const char *const patterns[] = {"[ab]*a[ab]{1000}", "(a)(b)(c)(d)(e)|[ab]{1000}"};

	(void)state;
	for (size_t i = 0; i < array_size(patterns); i++) {
		_cleanup_(freep) char *text = NULL;
		_cleanup_(pattern_freep) struct pattern *p = NULL;
		struct pattern_error error = {""};
		size_t n;

		row_begin(patterns[i]);
		assert_int_equal(pattern_new(patterns[i], &p, &error), 0);
		n = PATTERN_WORK_MAX / pattern_work(p, 1);
		assert_true(n > LABELS_VALUE_MAX);
		text = repeated("", "b", n + 1, "");
		assert_int_equal(pattern_match(p, text, n, NULL), PATTERN_NO_MATCH);
		assert_int_equal(pattern_match(p, text, n + 1, NULL), PATTERN_LIMIT);
	}
}

static void test_anywhere(void **state)
{
	static const struct {
		const char *pattern, *text;
		int outcome;
	} rows[] = {
		{"", "a", 0},
		{"b", "abc", 0},
		{"^b", "abc", PATTERN_NO_MATCH},
		{"^a", "abc", 0},
		{"b$", "abc", PATTERN_NO_MATCH},
		{"c$", "abc", 0},
		{"c$", "abc\n", PATTERN_NO_MATCH},
		{"a.c", "xa\ncx", 0},
		{"(a)(?<n>b)", "xaby", 0},
		{"^a|c$", "xc", 0},
		{"b", "\xff b", 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(pattern_freep) struct pattern *p = NULL;
		struct pattern_error error = {""};

		row_begin(rows[i].pattern);
		assert_int_equal(pattern_new_anywhere(rows[i].pattern, &p, &error), 0);
		assert_string_equal(pattern_text(p), rows[i].pattern);
		assert_int_equal(pattern_match(p, rows[i].text, strlen(rows[i].text), NULL),
				 rows[i].outcome);
	}
}

static void test_groups(void **state)
{
	_cleanup_(pattern_freep) struct pattern *p = NULL;
	struct pattern_match m;
	struct pattern_error error;
	struct strview group;

	(void)state;
	assert_int_equal(pattern_new("(?P<first>a+)(?:x)(?<2nd>b)?(c*)*", &p, &error), 0);
	assert_int_equal(pattern_n_groups(p), 3);
	assert_int_equal(pattern_find_group(p, strview_of("first")), 1);
	assert_int_equal(pattern_find_group(p, strview_of("2nd")), 2);
	assert_int_equal(pattern_find_group(p, strview_of("firs")), 0);
	assert_int_equal(pattern_find_group(p, strview_of("")), 0);
	assert_int_equal(pattern_match(p, "ax", 2, &m), 0);
	/* reused, and unchanged by a failed match */
	assert_int_equal(pattern_match(p, "aaxbc", 4, &m), 0);
	assert_int_equal(pattern_match(p, "b", 1, &m), PATTERN_NO_MATCH);
	assert_true(pattern_match_group(&m, 0, &group) && strview_is(&group, "aaxb"));
	assert_true(pattern_match_group(&m, 1, &group) && strview_is(&group, "aa"));
	assert_true(pattern_match_group(&m, 2, &group) && strview_is(&group, "b"));
	/* empty, and of no round */
	assert_true(pattern_match_group(&m, 3, &group) && strview_is(&group, ""));
	assert_false(pattern_match_group(&m, 4, &group));
	assert_int_equal(pattern_match(p, "ax", 2, &m), 0);
	assert_false(pattern_match_group(&m, 2, &group));
}

static void test_template(void **state)
{
	static const struct {
		const char *template, *text;
	} rows[] = {
		{"", ""},	    {"x", "x"},
		{"$1", "a"},	    {"${1}", "a"},
		{"$0", "ab"},	    {"$1$2", "ab"},
		{"$1x", ""},	    {"${1}x", "ax"},
		{"$1-$2", "a-b"},   {"$n", "b"},
		{"${n}!", "b!"},    {"$9", ""},
		{"$01", ""},	    {"$18446744073709551617", ""},
		{"$$1", "$1"},	    {"$$$1", "$a"},
		{"$", "$"},	    {"a$", "a$"},
		{"$-", "$-"},	    {"${}", "${}"},
		{"${1", "${1"},	    {"${1 }", "${1 }"},
		{"$1\xc3\xa9", ""}, {"$1\xe2\x86\x92", "a\xe2\x86\x92"},
		{"$\xc3\xa9", ""},
	};
	_cleanup_(pattern_freep) struct pattern *p = NULL;
	struct pattern_match m;
	struct pattern_error error = {""};

	(void)state;
	assert_int_equal(pattern_new("(.)(?P<n>.)", &p, &error), 0);
	assert_int_equal(pattern_match(p, "ab", 2, &m), 0);
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(template_freep) struct template *t = NULL;
		_cleanup_(buf_deinit) struct buf to = BUF_INIT(100);

		row_begin(rows[i].template);
		assert_int_equal(template_new(rows[i].template, p, &t, &error), 0);
		assert_int_equal(template_expand(t, &m, &to), 0);
		assert_string_equal(to.data ? to.data : "", rows[i].text);
	}
}

static void test_template_refused(void **state)
{
	_cleanup_(freep) char *longest = repeated("", "a", TEMPLATE_TEXT_MAX + 1, "");
	_cleanup_(freep) char *parts = repeated("", "$1", TEMPLATE_PARTS_MAX + 1, "");
	const struct {
		const char *pattern, *template, *error;
	} rows[] = {
		{"(.*)", longest, "more than 4096 bytes"},
		{"(.*)", parts, "more than 64 groups"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(template_freep) struct template *t = NULL;
		_cleanup_(pattern_freep) struct pattern *p = NULL;
		struct pattern_error error = {""};

		row_begin(rows[i].pattern);
		assert_int_equal(pattern_new(rows[i].pattern, &p, &error), 0);
		assert_int_equal(template_new(rows[i].template, p, &t, &error), PATTERN_REFUSED);
		assert_non_null(strstr(error.text, rows[i].error));
	}
}

static int build(void *ctx)
{
	_cleanup_(template_freep) struct template *t = NULL;
	_cleanup_(pattern_freep) struct pattern *p = NULL;
	_cleanup_(buf_deinit) struct buf to = BUF_INIT(100);
	struct pattern_match m;
	struct pattern_error error;
	int r = pattern_new(ctx, &p, &error);

	if (!r)
		r = template_new("x-$1-$n", p, &t, &error);
	if (!r)
		r = pattern_match(p, "ab", 2, &m);
	return r ? r : template_expand(t, &m, &to);
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_true(allocfail_each(build, "(.)(?P<n>[a-c\\W])") > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match),	  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_ceilings),  cmocka_unit_test(test_depth),
		cmocka_unit_test(test_linear),	  cmocka_unit_test(test_work),
		cmocka_unit_test(test_anywhere),  cmocka_unit_test(test_groups),
		cmocka_unit_test(test_template),  cmocka_unit_test(test_template_refused),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
