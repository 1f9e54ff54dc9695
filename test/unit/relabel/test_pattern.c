// SPDX-License-Identifier: Apache-2.0
/* What differs from PCRE2, and what is refused. test_prometheus.c compares many more. */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "relabel/pattern.h"
#include "relabel/re2.h"
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
		{"[a]", "\xff", -EILSEQ},
		/* compared, not matched */
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
		{"(a)\\1", "RE2 has no backreferences at byte 5"},
		{"\\k<a>", "RE2 has no backreferences"},
		{"(?P=a)", "RE2 has no backreferences at byte 0"},
		{"a(?=b)", "RE2 has no lookahead at byte 1"},
		{"(?!b)", "RE2 has no lookahead"},
		{"(?<!b)", "RE2 has no lookbehind"},
		{"(?<=b)", "RE2 has no lookbehind"},
		{"(?>b)", "RE2 has no atomic groups"},
		{"(?R)", "RE2 has no recursion"},
		{"(?1)", "RE2 has no recursion"},
		{"(?C1)", "RE2 has no callouts"},
		{"(?(1)a)", "RE2 has no conditions"},
		{"(?#a)", "RE2 has no comments"},
		{"(*ACCEPT)", "RE2 has no verbs"},
		{"(?x)a", "RE2 has no such group"},
		{"(?i", "flags without an end"},
		{"(?i-)", "flags without an end"},
		{"a++", "RE2 has no possessive ones"},
		{"a**", "two repetitions in a row"},
		{"*a", "nothing is there to be repeated at byte 0"},
		{"a|{2}", "nothing is there to be repeated"},
		{"(?i)*", "nothing is there to be repeated"},
		{"a{1001}", "takes numbers up to 1000"},
		{"a{2,1}", "takes numbers up to 1000"},
		{"a{99999999999999999999}", "takes numbers up to 1000"},
		{"((a{100})?){11}", "repetitions inside repetitions of more than 1000"},
		{"(a", "a ( without )"},
		{"a)|(b", "a ) without ( at byte 1"},
		{"[a", "a [ without ]"},
		{"[]", "a [ without ]"},
		{"[b-a]", "ends before it begins"},
		{"[a-\\d]", "\\d is no escape"},
		{"[[:foo:]]", "'foo' is no class"},
		{"[[::]]", "'' is no class"},
		{"\\p{Foo}", "sc:Foo"},
		{"\\p{F-o}", "'F-o' is no class"},
		{"\\p{Greek", "\\p{ without }"},
		{"\\p", "\\p without a name"},
		{"\\P{Any}", "'Any' is no class"},
		{"(?i)\\p{Lu}", "under (?i) is not supported"},
		{"\\C", "is not in Go's RE2"},
		{"a\\Z", "RE2 has no \\Z, only \\z"},
		{"\\y", "\\y is no escape of RE2"},
		{"\\\xc3\xa9", "a backslash does not go before this"},
		{"a\\", "a backslash at the end"},
		{"\\Qa", "a \\Q without \\E"},
		{"\\x{110000}", "\\x takes"},
		{"\\x{}", "\\x takes"},
		{"\\xg0", "\\x takes"},
		{"\\x{D800}", "U+D800 is half of a UTF-16 pair"},
		{"(?P<a-b>a)", "a group's name is made of"},
		{"(?P<a", "a group's name is made of"},
		{"(?P<a>a)(?P<a>b)", "two groups are named a"},
		{"\xff", "not UTF-8"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(pattern_freep) struct pattern *p = NULL;
		struct pattern_error error = {""};

		row_begin(rows[i].pattern);
		assert_int_equal(pattern_new(rows[i].pattern, &p, &error), PATTERN_REFUSED);
		print_message("%s\n", error.text);
		if (strncmp(rows[i].error, "sc:", 3) == 0)
			assert_true(error.text[0]);
		else
			assert_non_null(strstr(error.text, rows[i].error));
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
		{"depth is not reached", "(?:", "", RE2_DEPTH_MAX, PATTERN_REFUSED},
		{"classes", "\\W", "", PATTERN_TEXT_MAX / 2, PATTERN_REFUSED},
		{"compiled size", "(?:ab){1000}", "", 100, PATTERN_REFUSED},
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

static void test_depth(void **state)
{
	static const struct {
		size_t n;
		int outcome;
	} rows[] = {{RE2_DEPTH_MAX, 0}, {RE2_DEPTH_MAX + 1, PATTERN_REFUSED}};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(freep) char *open = repeated("", "(?:", rows[i].n, "");
		_cleanup_(freep) char *text = repeated(open, ")", rows[i].n, "");
		_cleanup_(pattern_freep) struct pattern *p = NULL;
		struct pattern_error error;

		assert_int_equal(pattern_new(text, &p, &error), rows[i].outcome);
	}
}

/* Values that somebody made to stall us: each of these would take years. */
static void test_limit(void **state)
{
	static const struct {
		const char *pattern, *piece, *after;
		size_t n;
		int outcome;
	} rows[] = {
		{"(a*)*b", "a", "cb", 2000, PATTERN_LIMIT},
		{"(a|aa)+b", "a", "cb", 2000, PATTERN_LIMIT},
		{"(a|a?)+b", "a", "cb", 2000, PATTERN_LIMIT},
		{"(?:.*.*)*x", "a", "xc", 40, PATTERN_LIMIT},
		{"(.*a){12}b", "a", "cb", 2000, PATTERN_LIMIT},
		/* by the memory it would take */
		{"((((((((((a|b))))))))))*", "ab", "", 32000, PATTERN_LIMIT},
		/* and what is allowed to take a while */
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

static void test_groups(void **state)
{
	_cleanup_(pattern_match_deinit) struct pattern_match m = {0};
	_cleanup_(pattern_freep) struct pattern *p = NULL;
	struct pattern_error error;
	struct strview group;

	(void)state;
	assert_int_equal(pattern_new("(?P<first>a+)(?:x)(?<2nd>b)?(c*)*", &p, &error), 0);
	assert_int_equal(pattern_n_groups(p), 3);
	assert_int_equal(pattern_find_group(p, strview_of("first")), 1);
	assert_int_equal(pattern_find_group(p, strview_of("2nd")), 2);
	assert_int_equal(pattern_find_group(p, strview_of("firs")), 0);
	assert_int_equal(pattern_find_group(p, strview_of("")), 0);
	assert_false(pattern_group_is_vague(p, 2));
	assert_true(pattern_group_is_vague(p, 3));
	assert_false(pattern_group_is_vague(p, 4));
	assert_int_equal(pattern_match(p, "ax", 2, &m), 0);
	/* used again, and left alone by what does not match */
	assert_int_equal(pattern_match(p, "aaxbc", 4, &m), 0);
	assert_int_equal(pattern_match(p, "b", 1, &m), PATTERN_NO_MATCH);
	assert_true(pattern_match_group(&m, 0, &group) && strview_is(&group, "aaxb"));
	assert_true(pattern_match_group(&m, 1, &group) && strview_is(&group, "aa"));
	assert_true(pattern_match_group(&m, 2, &group) && strview_is(&group, "b"));
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
	_cleanup_(pattern_match_deinit) struct pattern_match m = {0};
	_cleanup_(pattern_freep) struct pattern *p = NULL;
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
		{"(a*)*", "$1", "is a group that is repeated"},
		{"(?:(?P<n>a)?b?)+", "${n}", "$n is a group that is repeated"},
		{"(.*)", longest, "has more than 4096 bytes"},
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
	_cleanup_(pattern_match_deinit) struct pattern_match m = {0};
	_cleanup_(buf_deinit) struct buf to = BUF_INIT(100);
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
	assert_true(allocfail_each(build, "(.)(?P<n>[a-c\\W])") > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match),	  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_ceilings),  cmocka_unit_test(test_depth),
		cmocka_unit_test(test_limit),	  cmocka_unit_test(test_groups),
		cmocka_unit_test(test_template),  cmocka_unit_test(test_template_refused),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
