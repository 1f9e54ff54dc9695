// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <sys/resource.h>

#include "base/open_files.h"

/* The limit moves up to the hard limit, and no further. */
static void test_raise(void **state)
{
	struct rlimit limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit = (struct rlimit){.rlim_cur = 100, .rlim_max = 200};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	open_files_raise();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(limit.rlim_cur, 200);
	assert_int_equal(limit.rlim_max, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
