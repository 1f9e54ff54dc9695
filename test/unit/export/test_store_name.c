// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <string.h>

#include "base/nsec.h"
#include "export/store_name.h"

struct folder_row {
	const char *name;
	const char *labels[5][2];
	const char *want; /* without the hash */
};

static const struct folder_row folder_rows[] = {
	{"kubernetes",
	 {{"namespace", "shop"},
	  {"service_name", "checkout"},
	  {"pod", "checkout-5d7c"},
	  {"container", "app"},
	  {"node", "n1"}},
	 "shop_checkout_checkout-5d7c_app-"},
	{"a service alone", {{"service_name", "nginx.service"}}, "nginx.service-"},
	{"the same twice", {{"service_name", "db"}, {"container", "db"}}, "db-"},
	{"none of them", {{"node", "n1"}}, "unnamed-"},
	{"no labels", {{NULL, NULL}}, "unnamed-"},
	{"up and away", {{"service_name", "../../etc/passwd"}}, "_._.._etc_passwd-"},
	{"hidden", {{"service_name", ".x"}, {"pod", ".."}}, "_x__.-"},
	{"control characters", {{"service_name", "a\x1b[31m\n"}}, "a__31m_-"},
	{"not ASCII", {{"service_name", "caf\xc3\xa9"}}, "caf__-"},
	{"longest",
	 {{"service_name", "0123456789012345678901234567890123456789012345678901234567890"}},
	 "012345678901234567890123456789012345678901234567-"},
};

static void make_labels(const char *const labels[5][2], struct labels *ret)
{
	for (size_t i = 0; i < 5 && labels[i][0]; i++)
		assert_int_equal(labels_set(ret, labels[i][0], labels[i][1]), 0);
}

static void test_folder(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(folder_rows); i++) {
		const struct folder_row *row = &folder_rows[i];
		_cleanup_(labels_deinit) struct labels labels = {0};
		char name[STORE_NAME_MAX], other[STORE_NAME_MAX];

		row_begin(row->name);
		make_labels(row->labels, &labels);
		store_name_folder(&labels, 0, name);
		assert_true(store_name_is_folder(name));
		assert_int_equal(strlen(name), strlen(row->want) + 8);
		name[strlen(row->want)] = '\0';
		assert_string_equal(name, row->want);
		store_name_folder(&labels, 0, name);
		store_name_folder(&labels, 1, other);
		assert_string_not_equal(name, other);
	}
}

static void test_folder_of_everything(void **state)
{
	static const char *const names[] = {"namespace", "service_name", "pod", "container"};
	_cleanup_(labels_deinit) struct labels labels = {0};
	char value[1001], name[STORE_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < array_size(names); i++) {
		memset(value, 'a' + (int)i, 1000);
		value[1000] = '\0';
		assert_int_equal(labels_set(&labels, names[i], value), 0);
	}
	store_name_folder(&labels, 0, name);
	assert_int_equal(strlen(name), 4 * STORE_NAME_PART_MAX + 3 + 9);
	assert_true(store_name_is_folder(name));
}

/* Equal values of other labels are another folder. */
static void test_folder_hash(void **state)
{
	_cleanup_(labels_deinit) struct labels a = {0}, b = {0};
	char x[STORE_NAME_MAX], y[STORE_NAME_MAX];

	(void)state;
	assert_int_equal(labels_set(&a, "p", "qr"), 0);
	assert_int_equal(labels_set(&b, "pq", "r"), 0);
	store_name_folder(&a, 0, x);
	store_name_folder(&b, 0, y);
	assert_string_not_equal(x, y);
}

static void test_is_folder(void **state)
{
	static const char *const bad[] = {
		"",	      "-",	     "-00000000",    "a-0000000",    "a_00000000",
		"a-0000000G", ".a-00000000", "a/b-00000000", "a b-00000000", "lost+found"};

	(void)state;
	assert_true(store_name_is_folder("a-0123abcd"));
	for (size_t i = 0; i < array_size(bad); i++) {
		row_begin(bad[i]);
		assert_false(store_name_is_folder(bad[i]));
	}
}

struct file_row {
	const char *file;
	enum profile_kind kind;
	uint64_t start_ms;
	uint64_t duration_ms;
};

static const struct file_row file_rows[] = {
	{"20261121T113400.000Z_60s_cpu.pb.gz", PROFILE_CPU, 1795260840000, 60000},
	{"20261121T113400.007Z_0s_go_heap.pb.gz", PROFILE_GO_HEAP, 1795260840007, 0},
	{"19700101T000000.000Z_999ms_cpu.pb.gz", PROFILE_CPU, 0, 999},
	{"22620411T234716.854Z_1ms_cpu.pb.gz", PROFILE_CPU, 9223372036854, 1},
};

static void test_file(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(file_rows); i++) {
		const struct file_row *row = &file_rows[i];
		struct store_name name = {row->kind, row->start_ms * NSEC_PER_MSEC,
					  row->duration_ms * NSEC_PER_MSEC};
		struct store_name back = {0};
		char file[STORE_NAME_MAX];

		row_begin(row->file);
		store_name_file(&name, file);
		assert_string_equal(file, row->file);
		assert_true(store_name_parse(file, &back));
		assert_int_equal(back.kind, name.kind);
		assert_int_equal(back.start_ns, name.start_ns);
		assert_int_equal(back.duration_ns, name.duration_ns);
	}
}

struct duration_row {
	const char *name;
	uint64_t ms;
	uint64_t want_ms;
};

static const struct duration_row duration_rows[] = {
	{"nothing", 0, 0},
	{"short", 999, 999},
	{"a second", 1000, 1000},
	{"down", 1499, 1000},
	{"up", 1500, 2000},
	{"a window", 59993, 60000},
	{"a longer one", 60012, 60000},
};

static void test_duration(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(duration_rows); i++) {
		const struct duration_row *row = &duration_rows[i];

		row_begin(row->name);
		assert_int_equal(store_name_duration(row->ms * NSEC_PER_MSEC + 7),
				 row->want_ms * NSEC_PER_MSEC);
	}
}

static void test_other_files(void **state)
{
	static const char *const bad[] = {
		"",
		"labels.json",
		".pb.gz",
		"20261121T113400.000Z_60s_cpu.pb",
		"20261121T113400.000Z_60s_disk.pb.gz",
		"20261121T113400.000Z_60s_cpu_.pb.gz",
		"20261121T113400.000Z_60_cpu.pb.gz",
		"20261121T113400.000Z_060s_cpu.pb.gz",
		"20261121T113400.000Z_60000ms_cpu.pb.gz",
		"20261121T113400.000Z_1500ms_cpu.pb.gz",
		"20261121T113400.000Z_99999999999999999999s_cpu.pb.gz",
		"20261121T113400.000Z_18446744074s_cpu.pb.gz",
		"20261131T113400.000Z_60s_cpu.pb.gz",
		"20261321T113400.000Z_60s_cpu.pb.gz",
		"20261121T250000.000Z_60s_cpu.pb.gz",
		"20261121T113400Z_60s_cpu.pb.gz",
		"99991121T113400.000Z_60s_cpu.pb.gz",
		"19691121T113400.000Z_60s_cpu.pb.gz",
		" 20261121T113400.000Z_60s_cpu.pb.gz",
	};
	struct store_name name;

	(void)state;
	for (size_t i = 0; i < array_size(bad); i++) {
		row_begin(bad[i]);
		assert_false(store_name_parse(bad[i], &name));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folder),	    cmocka_unit_test(test_folder_of_everything),
		cmocka_unit_test(test_folder_hash), cmocka_unit_test(test_is_folder),
		cmocka_unit_test(test_file),	    cmocka_unit_test(test_duration),
		cmocka_unit_test(test_other_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
