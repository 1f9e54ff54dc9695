// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "base/cursor.h"

struct uleb_row {
	const char *name;
	const uint8_t bytes[12];
	size_t n;
	bool ok;
	uint64_t value;
};

static const struct uleb_row uleb_rows[] = {
	{"zero", {0}, 1, true, 0},
	{"one byte", {0x7f}, 1, true, 127},
	{"two bytes", {0x80, 0x01}, 2, true, 128},
	{"padded", {0x81, 0x80, 0x00}, 3, true, 1},
	{"empty", {0}, 0, false, 0},
	{"no end", {0x80, 0x80}, 2, false, 0},
	{"largest",
	 {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
	 10,
	 true,
	 UINT64_MAX},
	{"one bit over",
	 {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02},
	 10,
	 false,
	 0},
	{"over, later",
	 {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01},
	 11,
	 false,
	 0},
	{"padded beyond",
	 {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00},
	 11,
	 true,
	 0},
};

static void test_uleb(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(uleb_rows); i++) {
		const struct uleb_row *row = &uleb_rows[i];
		uint64_t value = 42;
		struct cursor c;

		cursor_init(&c, row->bytes, row->n);
		row_begin(row->name);
		assert_int_equal(cursor_uleb(&c, &value), row->ok);
		assert_int_equal(value, row->ok ? row->value : 42);
		assert_int_equal(cursor_left(&c), row->ok ? 0 : row->n);
	}
}

struct sleb_row {
	const char *name;
	const uint8_t bytes[12];
	size_t n;
	bool ok;
	int64_t value;
};

static const struct sleb_row sleb_rows[] = {
	{"two", {2}, 1, true, 2},
	{"minus two", {0x7e}, 1, true, -2},
	{"127", {0xff, 0x00}, 2, true, 127},
	{"minus 128", {0x80, 0x7f}, 2, true, -128},
	{"minus one, padded", {0xff, 0xff, 0x7f}, 3, true, -1},
	{"smallest",
	 {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f},
	 10,
	 true,
	 INT64_MIN},
	{"largest",
	 {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00},
	 10,
	 true,
	 INT64_MAX},
	{"one bit over",
	 {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
	 10,
	 false,
	 0},
	{"minus one, padded beyond",
	 {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
	 11,
	 true,
	 -1},
	{"no end", {0xff}, 1, false, 0},
};

static void test_sleb(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(sleb_rows); i++) {
		const struct sleb_row *row = &sleb_rows[i];
		int64_t value = 42;
		struct cursor c;

		cursor_init(&c, row->bytes, row->n);
		row_begin(row->name);
		assert_int_equal(cursor_sleb(&c, &value), row->ok);
		assert_true(value == (row->ok ? row->value : 42));
	}
}

static void test_bounds(void **state)
{
	static const uint8_t bytes[] = {1, 2, 3, 4, 5, 'a', 'b', 0, 'c'};
	struct cursor c, sub;
	const char *s;
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;
	uint8_t u8;

	(void)state;
	cursor_init(&c, bytes, sizeof(bytes));
	assert_true(cursor_sub(&c, 5, &sub));
	assert_true(cursor_u32(&sub, &u32));
	assert_int_equal(u32, 0x04030201);
	assert_false(cursor_u16(&sub, &u16));
	assert_true(cursor_u8(&sub, &u8));
	assert_false(cursor_u8(&sub, &u8));
	assert_false(cursor_u64(&c, &u64));
	assert_true(cursor_cstr(&c, &s));
	assert_string_equal(s, "ab");
	assert_false(cursor_cstr(&c, &s));
	assert_int_equal(cursor_pos(&c), 8);
	assert_false(cursor_seek(&c, sizeof(bytes) + 1));
	assert_true(cursor_seek(&c, sizeof(bytes)));
	assert_false(cursor_skip(&c, 1));
	assert_false(cursor_sub(&c, 1, &sub));
}

static void test_empty(void **state)
{
	struct cursor c;
	const char *s;
	uint8_t u8;

	(void)state;
	cursor_init(&c, NULL, 0);
	assert_int_equal(cursor_left(&c), 0);
	assert_false(cursor_u8(&c, &u8));
	assert_false(cursor_cstr(&c, &s));
	assert_true(cursor_skip(&c, 0));
	assert_true(cursor_seek(&c, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uleb),
		cmocka_unit_test(test_sleb),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
