// SPDX-License-Identifier: Apache-2.0
/* A sample of `make check-rows`: some files of each kind, against readelf. */
#include "support/test.h"

#include <unistd.h>

#include "support/fixture.h"
#include "support/rowsoracle.h"

static void told(void *ctx, uint64_t vaddr, const char *theirs, const char *ours)
{
	(void)ctx;
	print_message("  %llx: readelf '%s', podprof '%s'\n", (unsigned long long)vaddr, theirs,
		      ours);
}

static void compare(const char *path, struct rowsoracle_report *ret)
{
	*ret = (struct rowsoracle_report){0};
	row_begin(path);
	assert_int_equal(rowsoracle_compare(path, told, NULL, ret), 0);
	assert_int_equal(ret->different, 0);
	assert_int_equal(ret->skipped, 0);
	assert_int_equal(ret->overlapped, 0);
	assert_true(ret->rows > 0 && ret->functions > 0);
}

static void test_fixtures(void **state)
{
	static const char *const names[] = {"plain-pie", "plain-fixed", "plain-stripped", "cxx"};
	struct rowsoracle_report report;
	char path[FIXTURE_PATH_MAX];

	(void)state;
	for (size_t i = 0; i < array_size(names); i++) {
		compare(fixture_path(names[i], path), &report);
		assert_int_equal(rowsoracle_unsupported(&report), 0);
	}
	compare(fixture_path("plain-static", path), &report);
	/* the C library: process start, signal handling, and register copies for setcontext() */
	assert_true(report.stops > 0 && report.signals > 0);
}

static void test_machine(void **state)
{
	static const char *const paths[] = {"/bin/ls", "/bin/bash", "/usr/bin/readelf",
					    "/usr/bin/python3"};
	struct rowsoracle_report report;

	(void)state;
	for (size_t i = 0; i < array_size(paths); i++)
		if (access(paths[i], R_OK) == 0)
			compare(paths[i], &report);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixtures),
		cmocka_unit_test(test_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
