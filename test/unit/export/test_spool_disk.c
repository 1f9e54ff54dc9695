// SPDX-License-Identifier: Apache-2.0
/* test_spool.c has the failures of disks. */
#include "support/test.h"

#include <stdio.h>
#include <sys/stat.h>

#include "support/tree.h"

#include "export/spool_disk.h"

/* A file that the list of segments has missed keeps its bytes. */
static void test_number_taken(void **state)
{
	static const char name[] = "spool/0000000000000001.segment";
	_cleanup_(tree_deinit) struct tree t = {0};
	struct spool_disk *disk;
	char dir[128];
	pid_t holder;
	struct stat st;

	(void)state;
	tree_init(&t);
	tree_mkdir(t.fd, "spool");
	tree_write(t.fd, name, "mine");
	snprintf(dir, sizeof(dir), "%s/spool", t.path);
	assert_int_equal(spool_disk_new(dir, &disk), 0);
	assert_int_equal(spool_disk_open(disk, &holder), 0);
	assert_int_equal(spool_disk_begin(disk, 1), SPOOL_FAILED);
	assert_false(spool_disk_is_open(disk));
	assert_int_equal(fstatat(t.fd, name, &st, 0), 0);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(spool_disk_begin(disk, 2), 0);
	assert_true(spool_disk_is_open(disk));
	spool_disk_free(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
