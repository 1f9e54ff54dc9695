// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "base/nsec.h"
#include "export/store_table.h"

static struct store_folder *add_folder(struct store_table *t, const char *name)
{
	_cleanup_(labels_deinit) struct labels labels = {0};
	struct store_folder *folder = NULL;

	assert_int_equal(labels_set(&labels, "service_name", name), 0);
	assert_int_equal(store_table_add_folder(t, name, &labels, &folder), 0);
	assert_int_equal(labels.n, 0);
	return folder;
}

static struct store_profile profile(const struct store_folder *folder, uint64_t start_s)
{
	return (struct store_profile){
		.folder = folder, .start_ns = start_s * NSEC_PER_SEC, .bytes = 4096};
}

static void insert(struct store_table *t, const struct store_folder *folder, uint64_t start_s)
{
	struct store_profile p = profile(folder, start_s);

	assert_int_equal(store_table_reserve(t, 1), 0);
	store_table_insert(t, &p);
}

static void check(const struct store_table *t, size_t n)
{
	assert_int_equal(store_table_n(t), n);
	assert_int_equal(t->bytes, n * 4096);
	for (size_t i = t->first; i < t->end; i++) {
		assert_true(t->profiles[i].id != 0);
		assert_ptr_equal(store_table_find(t, t->profiles[i].id), &t->profiles[i]);
		if (i > t->first)
			assert_true(t->profiles[i - 1].start_ns <= t->profiles[i].start_ns);
	}
}

static void test_order(void **state)
{
	_cleanup_(store_table_deinit) struct store_table t = {0};
	struct store_folder *a = add_folder(&t, "a-00000000"), *b = add_folder(&t, "b-00000000");
	static const uint64_t starts[] = {50, 10, 30, 30, 60, 20, 50, 1};

	(void)state;
	for (size_t i = 0; i < array_size(starts); i++)
		insert(&t, i % 3 ? a : b, starts[i]);
	check(&t, 7); /* 50 came twice in the same folder, 30 in two */
	assert_int_equal(t.profiles[t.first].start_ns, NSEC_PER_SEC);
	assert_int_equal(a->n_profiles + b->n_profiles, 7);
	assert_ptr_equal(store_table_folder(&t, "a-00000000"), a);
	assert_null(store_table_folder(&t, "c-00000000"));
	assert_ptr_equal(store_table_remove_oldest(&t), a);
	check(&t, 6);
}

/* In at the end, out at the front, for longer than the array: the array does not grow with time. */
static void test_sliding(void **state)
{
	_cleanup_(store_table_deinit) struct store_table t = {0};
	struct store_folder *a = add_folder(&t, "a-00000000");

	(void)state;
	for (uint64_t i = 0; i < 5000; i++) {
		insert(&t, a, i);
		if (i >= 100)
			assert_ptr_equal(store_table_remove_oldest(&t), a);
	}
	check(&t, 100);
	assert_int_equal(t.profiles[t.first].start_ns, 4900 * NSEC_PER_SEC);
	assert_in_range(t.cap, 100, 512);
}

static void test_append(void **state)
{
	_cleanup_(store_table_deinit) struct store_table t = {0};
	_cleanup_(store_table_deinit) struct store_table one_by_one = {0};
	struct store_folder *a = add_folder(&t, "a-00000000");
	struct store_folder *b = add_folder(&one_by_one, "a-00000000");

	(void)state;
	store_table_sort(&t);
	for (uint64_t i = 0; i < 300; i++) {
		struct store_profile p = profile(a, i * 7919 % 300);

		assert_int_equal(store_table_append(&t, &p, 256), 0);
		if (i < 256)
			insert(&one_by_one, b, i * 7919 % 300);
	}
	store_table_sort(&t);
	check(&t, 256);
	/* the ids are the same as after inserting */
	for (size_t i = 0; i < 256; i++)
		assert_int_equal(t.profiles[i].id, one_by_one.profiles[one_by_one.first + i].id);
}

/* Two profiles with the same id: the later profile gets the next id. */
static void test_same_id(void **state)
{
	_cleanup_(store_table_deinit) struct store_table t = {0};
	struct store_folder *a = add_folder(&t, "a-00000000");
	uint64_t id;

	(void)state;
	insert(&t, a, 1);
	id = t.profiles[0].id;
	insert(&t, a, 2);
	t.profiles[1].id = id; /* as if */
	store_table_sort(&t);
	check(&t, 2);
	assert_int_equal(t.profiles[0].id, id);
	assert_int_equal(t.profiles[1].id, id + 1);
	/* and the next number, if this number is taken, too */
	t.profiles[0].id = id + 5;
	insert(&t, a, 1);
	assert_int_equal(store_table_n(&t), 2);
	insert(&t, a, 3);
	id = t.profiles[2].id;
	t.profiles[0].id = id;
	insert(&t, a, 3);
	check(&t, 3);
	assert_int_equal(t.profiles[2].id, id + 1);
}

static void test_folders_ceiling(void **state)
{
	_cleanup_(store_table_deinit) struct store_table t = {0};
	_cleanup_(labels_deinit) struct labels labels = {0};
	struct store_folder *folder = NULL;
	char name[32];

	(void)state;
	for (int i = 0; i < STORE_FOLDERS_MAX; i++) {
		snprintf(name, sizeof(name), "a-%08x", (unsigned int)i);
		folder = add_folder(&t, name);
	}
	assert_int_equal(labels_set(&labels, "a", "b"), 0);
	assert_int_equal(store_table_add_folder(&t, "b-00000000", &labels, &folder), STORE_FOLDERS);
	assert_int_equal(labels.n, 1);
	store_table_drop_folder(&t, store_table_folder(&t, "a-00000000"));
	assert_int_equal(store_table_add_folder(&t, "b-00000000", &labels, &folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),		cmocka_unit_test(test_sliding),
		cmocka_unit_test(test_append),		cmocka_unit_test(test_same_id),
		cmocka_unit_test(test_folders_ceiling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
