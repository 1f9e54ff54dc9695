// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/strview.h"

static void assert_strview(const struct strview *t, const char *want)
{
	_cleanup_(freep) char *got = strview_dup(*t);

	assert_string_equal(got, want);
}

struct number_row {
	const char *text;
	unsigned int base;
	bool ok;
	uint64_t value;
	const char *rest;
};

static const struct number_row number_rows[] = {
	{"0", 10, true, 0, ""},
	{"007 ", 10, true, 7, " "},
	{"18446744073709551615", 10, true, UINT64_MAX, ""},
	{"18446744073709551616", 10, false, 0, NULL},
	{"99999999999999999999999", 10, false, 0, NULL},
	{"ffffffffffffffff-", 16, true, UINT64_MAX, "-"},
	{"10000000000000000", 16, false, 0, NULL},
	{"DeadBeef", 16, true, 0xdeadbeef, ""},
	{"12ab", 10, true, 12, "ab"},
	{"0x12", 16, true, 0, "x12"},
	{"-1", 10, false, 0, NULL},
	{"+1", 10, false, 0, NULL},
	{" 1", 10, false, 0, NULL},
	{"", 10, false, 0, NULL},
	{"g", 16, false, 0, NULL},
};

static void test_number(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(number_rows); i++) {
		const struct number_row *row = &number_rows[i];
		struct strview t = strview_of(row->text);
		uint64_t value = 42;

		row_begin(row->text);
		assert_int_equal(strview_u64(&t, row->base, &value), row->ok);
		assert_int_equal(value, row->ok ? row->value : 42);
		assert_strview(&t, row->ok ? row->rest : row->text);
		value = 42;
		assert_int_equal(strview_only_u64(strview_of(row->text), row->base, &value),
				 row->ok && !*row->rest);
	}
}

/* The number ends with the text, whatever follows in memory. */
static void test_number_bounds(void **state)
{
	struct strview t = strview_of_bytes("123456", 3);
	uint64_t value;

	(void)state;
	assert_true(strview_u64(&t, 10, &value));
	assert_int_equal(value, 123);
	assert_true(strview_empty(&t));
}

static void test_pieces(void **state)
{
	struct strview t = strview_of("cpu: 12 kB");
	struct strview empty = strview_of_bytes(NULL, 0);

	(void)state;
	assert_false(strview_prefix(&t, "cpu :"));
	assert_true(strview_prefix(&t, "cpu"));
	assert_false(strview_char(&t, ' '));
	assert_true(strview_char(&t, ':'));
	assert_false(strview_suffix(&t, "MB"));
	assert_true(strview_suffix(&t, " kB"));
	assert_strview(&t, " 12");
	assert_false(strview_suffix(&t, "very long"));
	assert_true(strview_is(&t, " 12"));
	assert_false(strview_is(&t, " 1"));
	assert_false(strview_is(&t, " 123"));
	assert_false(strview_char(&empty, 'x'));
	assert_false(strview_prefix(&empty, "x"));
	assert_true(strview_prefix(&empty, ""));
	assert_true(strview_suffix(&empty, ""));
	assert_true(strview_is(&empty, ""));
}

/* A reader's pieces of a text, joined by "|". */
struct split_row {
	const char *text, *lines, *words, *by_colon, *last;
};

static const struct split_row split_rows[] = {
	{"", "", "", "", ""},
	{"a", "a|", "a|", "a|", "a"},
	{"a\n", "a|", "a\n|", "a\n|", "a\n"},
	{"a\r\n\nb", "a||b|", "a\r\n\nb|", "a\r\n\nb|", "a\r\n\nb"},
	{"\n", "|", "\n|", "\n|", "\n"},
	{"a:b::c", "a:b::c|", "a:b::c|", "a|b||c|", "c"},
	{":", ":|", ":|", "|", ""},
	{" a\t b  ", " a\t b  |", "a|b|", " a\t b  |", " a\t b  "},
	{" \t", " \t|", "", " \t|", " \t"},
};

static void join(char *ret, size_t size, const char *text,
		 bool (*next)(struct strview *, struct strview *))
{
	struct strview t = strview_of(text), piece;
	size_t n = 0;

	ret[0] = '\0';
	while (next(&t, &piece))
		n += (size_t)snprintf(ret + n, size - n, "%.*s|", (int)strview_len(&piece),
				      piece.p);
}

static bool next_by_colon(struct strview *t, struct strview *ret)
{
	return strview_until(t, ':', ret);
}

static void test_split(void **state)
{
	char got[64];

	(void)state;
	for (size_t i = 0; i < array_size(split_rows); i++) {
		const struct split_row *row = &split_rows[i];
		struct strview last = strview_after_last(strview_of(row->text), ':');

		row_begin(row->text);
		join(got, sizeof(got), row->text, strview_line);
		assert_string_equal(got, row->lines);
		join(got, sizeof(got), row->text, strview_word);
		assert_string_equal(got, row->words);
		join(got, sizeof(got), row->text, next_by_colon);
		assert_string_equal(got, row->by_colon);
		assert_strview(&last, row->last);
	}
}

static void test_tail(void **state)
{
	struct strview t = strview_of("pod-123"), head, tail;

	(void)state;
	assert_true(strview_tail(t, 3, &head, &tail));
	assert_true(strview_is(&head, "pod-"));
	assert_true(strview_is(&tail, "123"));
	assert_true(strview_tail(t, 7, &head, &tail));
	assert_true(strview_empty(&head));
	assert_false(strview_tail(t, 8, &head, &tail));
	assert_true(strview_is(&tail, "pod-123"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tail),	      cmocka_unit_test(test_number),
		cmocka_unit_test(test_number_bounds), cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
