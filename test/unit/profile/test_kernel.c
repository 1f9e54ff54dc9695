// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include "base/root.h"
#include "profile/kernel.h"

struct version_row {
	const char *name;
	const char *release;
	const char *version;
	const char *signature;
	struct {
		uint32_t major, minor, patch;
	} want;
	bool may_hang;
};

#define DEBIAN(v) "#1 SMP PREEMPT_DYNAMIC Debian " v " (2023-05-08)"

static const struct version_row version_rows[] = {
	/* in the distributions' form */
	{"Debian 11",
	 "5.10.0-32-cloud-amd64",
	 "#1 SMP Debian 5.10.223-1 (2024-08-10)",
	 "",
	 {5, 10, 223},
	 false},
	{"Debian 12.0", "6.1.0-9-amd64", DEBIAN("6.1.27-1"), "", {6, 1, 27}, true},
	{"Debian 12.1", "6.1.0-10-amd64", DEBIAN("6.1.37-1"), "", {6, 1, 37}, false},
	{"Debian 13",
	 "6.12.107+deb13-cloud-amd64",
	 "#1 SMP PREEMPT_DYNAMIC Debian 6.12.107-1 (2026-08-01)",
	 "",
	 {6, 12, 107},
	 false},
	{"Debian's experimental",
	 "7.3-cloud-amd64",
	 DEBIAN("7.3~rc7-1~exp1"),
	 "",
	 {7, 3, 0},
	 false},
	{"Ubuntu 22.04, newer kernel",
	 "5.19.0-50-generic",
	 "#50-Ubuntu SMP PREEMPT_DYNAMIC",
	 "Ubuntu 5.19.0-50.50-generic 5.19.17\n",
	 {5, 19, 17},
	 true},
	{"Ubuntu 23.04",
	 "6.2.0-39-generic",
	 "#40~22.04.1-Ubuntu SMP",
	 "Ubuntu 6.2.0-39.40~22.04.1-generic 6.2.16\n",
	 {6, 2, 16},
	 true},
	{"Ubuntu 24.04",
	 "6.8.0-31-generic",
	 "#31-Ubuntu SMP",
	 "Ubuntu 6.8.0-31.31-generic 6.8.1\n",
	 {6, 8, 1},
	 false},
	{"Amazon 2023", "6.1.34-59.116.amzn2023.x86_64", "#1 SMP", "", {6, 1, 34}, true},
	{"Amazon 2023, mended", "6.1.38-59.109.amzn2023.x86_64", "#1 SMP", "", {6, 1, 38}, false},
	{"Fedora 38", "6.2.9-300.fc38.x86_64", "#1 SMP", "", {6, 2, 9}, true},
	{"RHEL 9", "5.14.0-362.8.1.el9_3.x86_64", "#1 SMP PREEMPT_DYNAMIC", "", {5, 14, 0}, false},
	{"Container-Optimized OS", "6.1.25+", "#1 SMP", "", {6, 1, 25}, true},
	{"Azure Linux", "6.6.35.1-4.azl3", "#1 SMP", "", {6, 6, 35}, false},
	{"a release candidate", "6.4.0-rc1", "#1 SMP", "", {6, 4, 0}, false},
	/* limits */
	{"the last one before", "5.18.19", "", "", {5, 18, 19}, false},
	{"the first one", "5.19.0", "", "", {5, 19, 0}, true},
	{"after the first one", "6.0.19", "", "", {6, 0, 19}, true},
	{"long-term, the last bad one", "6.1.35", "", "", {6, 1, 35}, true},
	{"long-term, mended", "6.1.36", "", "", {6, 1, 36}, false},
	{"6.3, the last bad one", "6.3.9", "", "", {6, 3, 9}, true},
	{"6.3, mended", "6.3.10", "", "", {6, 3, 10}, false},
	{"mended from the start", "6.4", "", "", {6, 4, 0}, false},
	{"a major one later", "7.1.2", "", "", {7, 1, 2}, false},
	/* other texts do not count */
	{"another series' Debian", "6.1.20", DEBIAN("6.3.11-1"), "", {6, 1, 20}, true},
	{"another series' Ubuntu", "6.1.40", "", "Ubuntu 5.19.0-1.1 5.19.17", {6, 1, 40}, false},
	{"Debian and no number", "6.1.20", "#1 SMP Debian", "", {6, 1, 20}, true},
	{"Debian and a word", "6.1.20", "#1 SMP Debian x.y", "", {6, 1, 20}, true},
	{"a signature of two words", "6.1.20", "", "Ubuntu 6.1.50", {6, 1, 20}, true},
	{"somebody else's signature", "6.1.20", "", "Other 6.1.0-1 6.1.50", {6, 1, 20}, true},
};

static void test_version(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(version_rows); i++) {
		const struct version_row *row = &version_rows[i];
		struct kernel_version v = {0};

		row_begin(row->name);
		assert_true(kernel_version_parse(row->release, row->version, row->signature, &v));
		assert_int_equal(v.major, row->want.major);
		assert_int_equal(v.minor, row->want.minor);
		assert_int_equal(v.patch, row->want.patch);
		assert_int_equal(kernel_may_hang(&v), row->may_hang);
	}
}

static void test_ring_may_sleep(void **state)
{
	static const struct {
		const char *release;
		const char *version;
		bool may_sleep;
	} rows[] = {
		{"6.12.107", "#1 SMP PREEMPT_RT", true},
		{"6.13.0", "#1 SMP PREEMPT_RT", false},
		{"6.12.107", "#1 SMP PREEMPT_DYNAMIC", false},
		{"6.1.0-42-rt-amd64", "#1 SMP PREEMPT_RT Debian 6.1.159-1 (2025-12-30)", true},
		{"6.8.1-1015-realtime", "#16-Ubuntu SMP PREEMPT_RT", true},
		{"5.10.0-rt17", "#1 SMP PREEMPT RT", true},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct kernel_version v = {0};

		row_begin(rows[i].version);
		assert_true(kernel_version_parse(rows[i].release, rows[i].version, "", &v));
		assert_int_equal(kernel_ring_may_sleep(&v), rows[i].may_sleep);
	}
}

static void test_no_version(void **state)
{
	static const char *const releases[] = {
		"",
		"6",
		"6.",
		".1",
		"v6.1.2",
		"6.1.",
		"6.1.x",
		"6.4294967296.1",
		"99999999999999999999.1",
	};
	struct kernel_version v;

	(void)state;
	for (size_t i = 0; i < array_size(releases); i++) {
		row_begin(releases[i]);
		assert_false(kernel_version_parse(releases[i], "", "", &v));
	}
}

static void test_here(void **state)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	struct kernel_version v;

	(void)state;
	assert_int_equal(root_open("/proc", &proc), 0);
	assert_true(kernel_version_here(&proc, &v));
	assert_false(kernel_is_before(&v, 4, 18));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_ring_may_sleep),
		cmocka_unit_test(test_no_version),
		cmocka_unit_test(test_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
