// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/labels.h"
#include "support/allocfail.h"

static void test_names(void **state)
{
	static const struct {
		const char *name;
		bool ok;
	} rows[] = {
		{"pod", true},
		{"_", true},
		{"A9_z", true},
		{"", false},
		{"9a", false},
		{"a-b", false},
		{"a.b", false},
		{"a b", false},
		{"a\n", false},
		{"a:b", false},
		{"p\xc3\xb6"
		 "d",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(labels_deinit) struct labels l = {0};

		row_begin(rows[i].name);
		assert_int_equal(labels_valid_name(rows[i].name), rows[i].ok);
		assert_int_equal(labels_set(&l, rows[i].name, "x"),
				 rows[i].ok ? 0 : LABELS_BAD_NAME);
		assert_int_equal(l.n, rows[i].ok);
	}
}

static void test_order(void **state)
{
	_cleanup_(labels_deinit) struct labels l = {0};

	(void)state;
	assert_int_equal(labels_set(&l, "pod", "web-0"), 0);
	assert_int_equal(labels_set(&l, "container", "app"), 0);
	assert_int_equal(labels_set(&l, "node", "n1"), 0);
	assert_int_equal(labels_set(&l, "node", "n2"), 0);
	assert_int_equal(labels_set(&l, "absent", ""), 0);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.items[0].name, "container");
	assert_string_equal(l.items[1].name, "node");
	assert_string_equal(l.items[1].value, "n2");
	assert_string_equal(l.items[2].name, "pod");
	assert_int_equal(labels_set(&l, "container", ""), 0);
	assert_int_equal(l.n, 2);
	assert_null(labels_get(&l, "container"));
	assert_string_equal(labels_get(&l, "pod"), "web-0");
	/* from itself */
	assert_int_equal(labels_set(&l, "pod", labels_get(&l, "node")), 0);
	assert_string_equal(labels_get(&l, "pod"), "n2");
}

static void test_full(void **state)
{
	_cleanup_(labels_deinit) struct labels l = {0};
	char name[16];

	(void)state;
	for (int i = 0; i < LABELS_MAX; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		assert_int_equal(labels_set(&l, name, "x"), 0);
	}
	assert_int_equal(labels_set(&l, "more", "x"), LABELS_FULL);
	assert_int_equal(labels_set(&l, "l0", "y"), 0);
	assert_int_equal(l.n, LABELS_MAX);
	assert_int_equal(labels_set(&l, "l1", ""), 0);
	assert_int_equal(labels_set(&l, "more", "x"), 0);
}

/* @n bytes of @fill, over and over. */
static void long_value(char *ret, size_t n, const char *fill)
{
	size_t step = strlen(fill);

	for (size_t i = 0; i < n; i++)
		ret[i] = fill[i % step];
	ret[n] = '\0';
}

static void test_values(void **state)
{
	static const struct {
		const char *name, *fill;
		size_t n, kept;
		char last;
	} rows[] = {
		{"exactly the ceiling", "x", LABELS_VALUE_MAX, LABELS_VALUE_MAX, 'x'},
		{"one over", "x", LABELS_VALUE_MAX + 1, LABELS_VALUE_MAX, 'x'},
		{"much over", "x", (size_t)2 * LABELS_VALUE_MAX, LABELS_VALUE_MAX, 'x'},
		{"cut at a character", "\xe2\x82\xac", 3000, 2046, '\xac'},
		{"cut at a character of four", "\xf0\x9f\x98\x80", 3000, 2048, '\x80'},
		{"no character to cut at", "\x80", 3000, 2045, '?'},
		{"not UTF-8", "\xff", 5, 5, '?'},
	};
	char value[2u * LABELS_VALUE_MAX + 1];

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(labels_deinit) struct labels l = {0};
		const char *got;

		row_begin(rows[i].name);
		long_value(value, rows[i].n, rows[i].fill);
		assert_int_equal(labels_set(&l, "v", value), 0);
		got = labels_get(&l, "v");
		assert_int_equal(strlen(got), rows[i].kept);
		assert_int_equal(got[rows[i].kept - 1], rows[i].last);
	}
}

static void test_equal(void **state)
{
	_cleanup_(labels_deinit) struct labels a = {0};
	_cleanup_(labels_deinit) struct labels b = {0};

	(void)state;
	assert_true(labels_equal(&a, &b));
	assert_int_equal(labels_set(&a, "x", "1"), 0);
	assert_false(labels_equal(&a, &b));
	assert_int_equal(labels_copy(&a, &b), 0);
	assert_true(labels_equal(&a, &b));
	assert_int_equal(labels_set(&b, "x", "2"), 0);
	assert_false(labels_equal(&a, &b));
	assert_string_equal(labels_get(&a, "x"), "1");
}

static int build(void *ctx)
{
	_cleanup_(labels_deinit) struct labels l = {0};
	_cleanup_(labels_deinit) struct labels copy = {0};
	char name[16];
	int r = 0;

	for (int i = 0; i < 10 && !r; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		r = labels_set(&l, name, ctx);
	}
	if (!r)
		r = labels_set(&l, "l3", "another");
	return r ? r : labels_copy(&l, &copy);
}

static void test_no_memory(void **state)
{
	(void)state;
	/* each label two, two growths a set, one replaced value */
	assert_int_equal(allocfail_each(build, "value"), 2 * (20 + 2) + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_order),
		cmocka_unit_test(test_full),  cmocka_unit_test(test_values),
		cmocka_unit_test(test_equal), cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
