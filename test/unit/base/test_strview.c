// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/nsec.h"
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

/* The number ends where the text does, whatever follows in memory. */
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

/* What one reader makes of a text, its pieces joined by "|". */
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

static void test_duration(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		uint64_t ns;
	} rows[] = {
		{"0", true, 0},
		{"0s", true, 0},
		{"250ms", true, 250 * NSEC_PER_MSEC},
		{"90s", true, 90 * NSEC_PER_SEC},
		{"5m", true, 300 * NSEC_PER_SEC},
		{"24h", true, 86400 * NSEC_PER_SEC},
		{"5124095h", true, 5124095 * (3600 * NSEC_PER_SEC)},
		{"5124096h", false, 0},
		{"18446744073s", true, 18446744073 * NSEC_PER_SEC},
		{"18446744074s", false, 0},
		{"60", false, 0},
		{"", false, 0},
		{"s", false, 0},
		{"-1s", false, 0},
		{"1.5s", false, 0},
		{"1 s", false, 0},
		{"1S", false, 0},
		{"1s ", false, 0},
		{"1m30s", false, 0},
		{"00", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		uint64_t ns = 42;

		row_begin(rows[i].text);
		assert_int_equal(quantity_duration(rows[i].text, &ns), rows[i].ok);
		assert_int_equal(ns, rows[i].ok ? rows[i].ns : 42);
	}
}

static void test_bytes(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		uint64_t bytes;
	} rows[] = {
		{"0", true, 0},
		{"4096", true, 4096},
		{"256KiB", true, 256 << 10},
		{"256Ki", true, 256 << 10},
		{"96MiB", true, 96 << 20},
		{"96Mi", true, 96 << 20},
		{"2GiB", true, 2ull << 30},
		{"17179869183Gi", true, 17179869183ull << 30},
		{"17179869184Gi", false, 0},
		{"18446744073709551615", true, UINT64_MAX},
		{"18446744073709551616", false, 0},
		{"1KB", false, 0},
		{"1K", false, 0},
		{"1kib", false, 0},
		{"MiB", false, 0},
		{"", false, 0},
		{"1 MiB", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		uint64_t bytes = 42;

		row_begin(rows[i].text);
		assert_int_equal(quantity_bytes(rows[i].text, &bytes), rows[i].ok);
		assert_int_equal(bytes, rows[i].ok ? rows[i].bytes : 42);
	}
}

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
		/* of exactly this size, so that ASan sees a look beyond the end */
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
		cmocka_unit_test(test_split),	      cmocka_unit_test(test_duration),
		cmocka_unit_test(test_bytes),	      cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
