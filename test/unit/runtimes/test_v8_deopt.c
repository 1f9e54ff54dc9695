// SPDX-License-Identifier: Apache-2.0
/* Translations of optimised code: those of a function of Deno 2.0 and 2.9. test_v8_memory has the
 * places that lead to them. */
#include "support/test.h"

#include <string.h>

#include "runtimes/v8_deopt.h"
/* outer() of test/data/v8/recursion.cjs with deep() inlined. */
static const uint8_t of_12[] = {
	0x0e, 0x00, 0x04, 0x04, 0x01, 0x28, 0x1a, 0x0a, 0x27, 0x06, 0x27, 0x03, 0x26, 0x01, 0x27,
	0x0a, 0x24, 0x24, 0x24, 0x24, 0x24, 0x24, 0x01, 0x02, 0x00, 0x0a, 0x25, 0x1c, 0x25, 0x1e,
	0x25, 0x20, 0x26, 0x01, 0x25, 0x22, 0x25, 0x24, 0x25, 0x26, 0x24, 0x24, 0x24, 0x24, 0x24,
	0x25, 0x28, 0x0e, 0x2f, 0x04, 0x04, 0x45, 0x0e, 0x34, 0x04, 0x04, 0x00, 0x28, 0x1a, 0x0a,
	0x00, 0x02, 0x2e, 0x27, 0x05, 0x33, 0x00, 0x46, 0x00, 0x0a, 0x00, 0x02, 0x2f, 0x27, 0x05,
	0x34, 0x24, 0x0e, 0x4d, 0x04, 0x04, 0x2f, 0x27, 0x05, 0x33, 0x01, 0x56, 0x00, 0x0a, 0x2f,
	0x27, 0x05, 0x2f, 0x26, 0x00, 0x30, 0x25, 0x22, 0x0e, 0x62, 0x04, 0x04, 0x2f, 0x27, 0x05,
	0x33, 0x01, 0x56, 0x00, 0x0a, 0x2f, 0x27, 0x05, 0x2f, 0x26, 0x00, 0x30, 0x25, 0x22, 0x0e,
	0x77, 0x02, 0x02, 0x01, 0x03, 0x1a, 0x0a, 0x2e, 0x27, 0x05, 0x33,
};
static const uint8_t of_13[] = {
	0x0e, 0x00, 0x04, 0x04, 0x01, 0x28, 0x0c, 0x00, 0x05, 0x28, 0x06, 0x28, 0x03, 0x27,
	0x01, 0x28, 0x0a, 0x25, 0x25, 0x25, 0x25, 0x25, 0x25, 0x01, 0x02, 0x00, 0x02, 0x05,
	0x26, 0x0e, 0x26, 0x10, 0x26, 0x12, 0x27, 0x01, 0x26, 0x14, 0x26, 0x16, 0x26, 0x18,
	0x25, 0x25, 0x25, 0x25, 0x25, 0x26, 0x1a, 0x0e, 0x31, 0x04, 0x04, 0x46, 0x0e, 0x36,
	0x04, 0x04, 0x00, 0x28, 0x0c, 0x00, 0x05, 0x00, 0x02, 0x2f, 0x28, 0x05, 0x34, 0x00,
	0x46, 0x00, 0x02, 0x05, 0x00, 0x02, 0x30, 0x28, 0x05, 0x35, 0x25, 0x0e, 0x51, 0x04,
	0x04, 0x30, 0x28, 0x05, 0x34, 0x01, 0x56, 0x00, 0x02, 0x05, 0x30, 0x28, 0x05, 0x30,
	0x27, 0x00, 0x31, 0x26, 0x14, 0x0e, 0x67, 0x04, 0x04, 0x30, 0x28, 0x05, 0x34, 0x01,
	0x56, 0x00, 0x02, 0x05, 0x30, 0x28, 0x05, 0x30, 0x27, 0x00, 0x31, 0x26, 0x14, 0x0e,
	0x7d, 0x02, 0x02, 0x01, 0x03, 0x0c, 0x00, 0x05, 0x2f, 0x28, 0x05, 0x34,
};

#define NO_BYTECODE V8_DEOPT_NO_BYTECODE

/* The frames are outer() at @outer, then deep() at @deep; 0: not inlined. */
static const struct {
	const char *what;
	int32_t form;
	uint32_t index;
	uint32_t outer, deep;
} translation_rows[] = {
	{"without an earlier one", V8_DEOPT_OF_12, 0, 20, 1},
	{"all of it is earlier", V8_DEOPT_OF_12, 47, 20, 1},
	{"values are earlier", V8_DEOPT_OF_12, 52, 20, 35},
	{"a frame is earlier", V8_DEOPT_OF_12, 77, 20, 43},
	{"the same again", V8_DEOPT_OF_12, 98, 20, 43},
	{"the function's entry", V8_DEOPT_OF_12, 119, NO_BYTECODE, 0},
	{"of 13: without an earlier one", V8_DEOPT_OF_13, 0, 20, 1},
	{"of 13: all of it is earlier", V8_DEOPT_OF_13, 49, 20, 1},
	{"of 13: values are earlier", V8_DEOPT_OF_13, 54, 20, 35},
	{"of 13: a frame is earlier", V8_DEOPT_OF_13, 81, 20, 43},
	{"of 13: the same again", V8_DEOPT_OF_13, 103, 20, 43},
	{"of 13: the function's entry", V8_DEOPT_OF_13, 125, NO_BYTECODE, 0},
};

static void translations(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(translation_rows); i++) {
		const bool is_12 = translation_rows[i].form == V8_DEOPT_OF_12;
		struct v8_deopt_frames frames;

		row_begin(translation_rows[i].what);
		assert_int_equal(v8_deopt_parse(translation_rows[i].form, is_12 ? of_12 : of_13,
						is_12 ? sizeof(of_12) : sizeof(of_13),
						translation_rows[i].index, &frames),
				 0);
		assert_int_equal(frames.n, translation_rows[i].deep ? 2 : 1);
		assert_int_equal(frames.items[0].literal, is_12 ? 13 : 6);
		assert_int_equal(frames.items[0].bytecode, translation_rows[i].outer);
		if (!translation_rows[i].deep)
			continue;
		assert_int_equal(frames.items[1].literal, 0);
		assert_int_equal(frames.items[1].bytecode, translation_rows[i].deep);
	}
}

/* Of the translations of 12, with a byte that is another one. */
static const struct {
	const char *what;
	uint32_t index;
	size_t at;
	uint8_t byte;
	bool is_right;
} odd_rows[] = {
	{"a value of a frame", 52, 13, 0x04, true},
	{"no beginning", 53, 0, 0x0e, false},
	{"behind the translations", sizeof(of_12), 0, 0x0e, false},
	{"far behind them", UINT32_MAX, 0, 0x0e, false},
	{"fewer frames than it says", 119, 121, 0x04, false},
	{"more frames than it says", 52, 54, 0x02, false},
	{"frames below zero", 119, 120, 0x03, false},
	{"another number of functions", 52, 55, 0x02, false},
	{"no function", 119, 122, 0x00, false},
	{"an earlier one in front of all", 52, 53, 0x35, false},
	{"an earlier one that is none", 52, 53, 0x33, false},
	{"an earlier one that repeats another", 77, 78, 0x1e, false},
	{"an earlier one without an end", 98, 99, 0x01, false},
	{"nothing is repeated", 47, 51, 0x2c, false},
	{"more frames than the earlier one", 47, 49, 0x06, false},
};

static void contradictions(void **state)
{
	uint8_t bytes[sizeof(of_12)];
	struct v8_deopt_frames frames;

	(void)state;
	for (size_t i = 0; i < array_size(odd_rows); i++) {
		row_begin(odd_rows[i].what);
		memcpy(bytes, of_12, sizeof(bytes));
		bytes[odd_rows[i].at] = odd_rows[i].byte;
		assert_int_equal(v8_deopt_parse(V8_DEOPT_OF_12, bytes, sizeof(bytes),
						odd_rows[i].index, &frames),
				 odd_rows[i].is_right ? 0 : V8_ODD);
	}
	assert_int_equal(v8_deopt_parse(V8_DEOPT_UNKNOWN, of_12, sizeof(of_12), 0, &frames),
			 V8_ODD);
	assert_int_equal(v8_deopt_parse(V8_DEOPT_OF_12, of_12, 127, 119, &frames), 0);
	assert_int_equal(v8_deopt_parse(V8_DEOPT_OF_12, of_12, 126, 119, &frames), V8_ODD);
	assert_int_equal(v8_deopt_parse(V8_DEOPT_OF_12, NULL, 0, 0, &frames), V8_ODD);
}

/* Deeper than places, and numbers of more than 32 bits. */
static void limits(void **state)
{
	uint8_t bytes[4 + 4 * (RUNTIMES_PLACES_MAX + 1)] = {14, 0};
	struct v8_deopt_frames frames;
	uint8_t n = RUNTIMES_PLACES_MAX;

	(void)state;
	for (size_t i = 4; i < sizeof(bytes); i += 4)
		bytes[i] = 1;
	bytes[2] = bytes[3] = (uint8_t)(2 * n);
	assert_int_equal(v8_deopt_parse(V8_DEOPT_OF_12, bytes, sizeof(bytes), 0, &frames), 0);
	assert_int_equal(frames.n, n);
	n++;
	bytes[2] = bytes[3] = (uint8_t)(2 * n);
	assert_int_equal(v8_deopt_parse(V8_DEOPT_OF_12, bytes, sizeof(bytes), 0, &frames), V8_ODD);
	bytes[2] = bytes[3] = 2;
	memset(bytes + 5, 0x80, 5);
	assert_int_equal(v8_deopt_parse(V8_DEOPT_OF_12, bytes, sizeof(bytes), 0, &frames), V8_ODD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(translations),
		cmocka_unit_test(contradictions),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
