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

static void fill(struct labels *l, int n)
{
	char name[16];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		assert_int_equal(labels_set(l, name, "x"), 0);
	}
}

static void test_full(void **state)
{
	static const struct {
		const char *name;
		size_t max;
		int n;
	} rows[] = {
		{"of a series", 0, LABELS_MAX},
		{"meta", LABELS_META_MAX, LABELS_META_MAX},
		{"two", 2, 2},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(labels_deinit) struct labels l = {.max = rows[i].max};

		row_begin(rows[i].name);
		fill(&l, rows[i].n);
		assert_int_equal(labels_set(&l, "more", "x"), LABELS_FULL);
		assert_int_equal(labels_set(&l, "l0", "y"), 0);
		assert_int_equal(l.n, rows[i].n);
		assert_int_equal(labels_set(&l, "l1", ""), 0);
		assert_int_equal(labels_set(&l, "more", "x"), 0);
		labels_deinit(&l);
		assert_int_equal(l.n, 0);
		assert_int_equal(l.max, rows[i].max);
	}
}

static void test_many(void **state)
{
	_cleanup_(labels_deinit) struct labels l = {.max = LABELS_META_MAX};
	char name[16];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "l%d", i * 7919 % 1000);
		assert_null(labels_get(&l, name));
		assert_int_equal(labels_set(&l, name, name), 0);
	}
	assert_int_equal(l.n, 1000);
	for (size_t i = 0; i < l.n; i++) {
		assert_string_equal(l.items[i].name, l.items[i].value);
		assert_string_equal(labels_get(&l, l.items[i].name), l.items[i].value);
		if (i)
			assert_true(strcmp(l.items[i - 1].name, l.items[i].name) < 0);
	}
}

static void test_copy_full(void **state)
{
	_cleanup_(labels_deinit) struct labels meta = {.max = LABELS_META_MAX};
	_cleanup_(labels_deinit) struct labels series = {0};
	_cleanup_(labels_deinit) struct labels larger = {.max = LABELS_META_MAX};

	(void)state;
	fill(&meta, LABELS_MAX + 1);
	assert_int_equal(labels_copy(&meta, &series), LABELS_FULL);
	assert_int_equal(series.n, 0);
	assert_int_equal(labels_copy(&meta, &larger), 0);
	assert_true(labels_equal(&meta, &larger));
	assert_int_equal(labels_set(&meta, "l0", ""), 0);
	assert_int_equal(labels_copy(&meta, &series), 0);
	assert_true(labels_equal(&meta, &series));
	assert_int_equal(labels_set(&series, "more", "x"), LABELS_FULL);
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
	/* two for each label, two growths for a set, one replaced value */
	assert_int_equal(allocfail_each(build, "value"), 2 * (20 + 2) + 1);
}

/* Sets that are easy to confuse. */
static void test_keys(void **state)
{
	static const struct label sets[][2] = {
		{{NULL, NULL}},
		{{(char *)"a", (char *)"b"}},
		{{(char *)"a", (char *)"b1:c"}},
		{{(char *)"a", (char *)"c"}},
		{{(char *)"a", (char *)"b"}, {(char *)"c", (char *)"d"}},
		{{(char *)"a", (char *)"bc=1:d"}},
		{{(char *)"ab", (char *)"b"}},
	};
	struct labels l[array_size(sets)] = {{0}};
	char *keys[array_size(sets)];

	(void)state;
	for (size_t i = 0; i < array_size(sets); i++) {
		for (size_t k = 0; k < 2 && sets[i][k].name; k++)
			assert_int_equal(labels_set(&l[i], sets[i][k].name, sets[i][k].value), 0);
		keys[i] = labels_key(&l[i]);
		assert_non_null(keys[i]);
	}
	for (size_t i = 0; i < array_size(sets); i++)
		for (size_t k = 0; k < array_size(sets); k++) {
			int order = labels_compare(&l[i], &l[k]);

			assert_int_equal(strcmp(keys[i], keys[k]) == 0, i == k);
			assert_int_equal(labels_equal(&l[i], &l[k]), i == k);
			assert_int_equal(order == 0, i == k);
			assert_int_equal(order > 0, labels_compare(&l[k], &l[i]) < 0);
		}
	for (size_t i = 0; i < array_size(sets); i++) {
		labels_deinit(&l[i]);
		free(keys[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),	  cmocka_unit_test(test_names),
		cmocka_unit_test(test_order),	  cmocka_unit_test(test_full),
		cmocka_unit_test(test_many),	  cmocka_unit_test(test_copy_full),
		cmocka_unit_test(test_values),	  cmocka_unit_test(test_equal),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
