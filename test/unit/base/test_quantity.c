// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "base/nsec.h"
#include "base/quantity.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_duration),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
