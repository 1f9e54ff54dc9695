// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "support/allocfail.h"

struct append_row {
	const char *name;
	size_t max;
	const char *first, *second;
	int r;
	const char *after;
};

static const struct append_row append_rows[] = {
	{"fits", 8, "abc", "de", BUF_OK, "abcde"},
	{"exactly full", 8, "abcde", "fgh", BUF_OK, "abcdefgh"},
	{"one over", 8, "abcde", "fghi", BUF_FULL, "abcde"},
	{"nothing more when full", 3, "abc", "", BUF_OK, "abc"},
	{"one more when full", 3, "abc", "d", BUF_FULL, "abc"},
	{"ceiling of zero", 0, "", "a", BUF_FULL, ""},
};

static void test_append(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(append_rows); i++) {
		const struct append_row *row = &append_rows[i];
		_cleanup_(buf_deinit) struct buf puts = BUF_INIT(row->max);
		_cleanup_(buf_deinit) struct buf print = BUF_INIT(row->max);

		row_begin(row->name);
		assert_int_equal(buf_puts(&puts, row->first), 0);
		assert_int_equal(buf_puts(&puts, row->second), row->r);
		assert_string_equal(puts.data, row->after);
		assert_int_equal(puts.len, strlen(row->after));
		assert_int_equal(buf_printf(&print, "%s", row->first), 0);
		assert_int_equal(buf_printf(&print, "%s", row->second), row->r);
		assert_string_equal(print.data, row->after);
		assert_int_equal(print.len, strlen(row->after));
	}
}

/* Growth must neither pass the ceiling nor lose the contents. */
static void test_grow(void **state)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(1000);

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(buf_putc(&b, (char)('a' + i % 26)), 0);
	assert_int_equal(buf_putc(&b, 'x'), BUF_FULL);
	assert_int_equal(b.len, 1000);
	assert_int_equal(b.cap, 1001);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(b.data[i], 'a' + i % 26);
	assert_int_equal(b.data[1000], 0);
}

static void test_reserve(void **state)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(10);
	char *to = NULL;

	(void)state;
	assert_int_equal(buf_reserve(&b, 11, &to), BUF_FULL);
	assert_null(to);
	assert_int_equal(buf_reserve(&b, 10, &to), 0);
	memset(to, 'x', 10);
	b.len += 10;
	assert_int_equal(buf_reserve(&b, 1, &to), BUF_FULL);
	assert_int_equal(buf_reserve(&b, SIZE_MAX, &to), BUF_FULL);
}

/* With a huge ceiling, a size that would wrap around must end in -ENOMEM. */
static void test_huge(void **state)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(SIZE_MAX);
	char *to;

	(void)state;
	assert_int_equal(buf_puts(&b, "abc"), 0);
	assert_int_equal(buf_reserve(&b, SIZE_MAX - 3, &to), BUF_FULL);
	allocfail_arm(1);
	assert_int_equal(buf_reserve(&b, SIZE_MAX - 4, &to), -ENOMEM);
	assert_true(allocfail_disarm());
	assert_string_equal(b.data, "abc");
}

static void test_take(void **state)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(10);
	_cleanup_(freep) char *taken = NULL;

	(void)state;
	assert_null(buf_take(&b));
	assert_int_equal(buf_puts(&b, "abc"), 0);
	taken = buf_take(&b);
	assert_string_equal(taken, "abc");
	assert_null(b.data);
	assert_int_equal(b.max, 10);
	assert_int_equal(buf_puts(&b, "de"), 0);
	buf_reset(&b);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
}

static int build(void *ctx)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(4096);
	int r = buf_puts(&b, "start ");

	for (int i = 0; i < 500 && !r; i++)
		r = buf_printf(&b, "%d ", i);
	/* the contents are whole after any result */
	if (b.data)
		assert_int_equal(strlen(b.data), b.len);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	/* 64, 128, ... 2048 */
	assert_int_equal(allocfail_each(build, NULL), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_append),	cmocka_unit_test(test_grow),
		cmocka_unit_test(test_reserve), cmocka_unit_test(test_huge),
		cmocka_unit_test(test_take),	cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
