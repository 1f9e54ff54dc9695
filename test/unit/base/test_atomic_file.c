// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/atomic_file.h"
#include "support/tree.h"

static void read_back(int dir, const char *name, char *ret, size_t n)
{
	_cleanup_(close_fdp) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	assert_true(fd >= 0);
	got = read(fd, ret, n - 1);
	assert_true(got >= 0);
	ret[got] = '\0';
}

static void test_write(void **state)
{
	_cleanup_(tree_deinit) struct tree tree;
	struct stat st;
	char text[16];

	tree_init(&tree);
	assert_int_equal(atomic_file_write(tree.fd, "a", 0600, "one", 3), 0);
	tree_write(tree.fd, ".new-a", "left by an interrupted write");
	assert_int_equal(atomic_file_write(tree.fd, "a", 0600, "two!", 4), 0);
	read_back(tree.fd, "a", text, sizeof(text));
	assert_string_equal(text, "two!");
	assert_int_equal(fstatat(tree.fd, "a", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* A link in place of the file or the temporary file is not followed. */
static void test_links(void **state)
{
	_cleanup_(tree_deinit) struct tree tree;
	char text[16];

	tree_init(&tree);
	tree_write(tree.fd, "precious", "mine");
	assert_int_equal(symlinkat("precious", tree.fd, "a"), 0);
	assert_int_equal(symlinkat("precious", tree.fd, ".new-a"), 0);
	assert_int_equal(atomic_file_write(tree.fd, "a", 0600, "new", 3), 0);
	read_back(tree.fd, "precious", text, sizeof(text));
	assert_string_equal(text, "mine");
	read_back(tree.fd, "a", text, sizeof(text));
	assert_string_equal(text, "new");
}

/* A failure leaves nothing. */
static void test_fails(void **state)
{
	_cleanup_(tree_deinit) struct tree tree;
	char name[300];

	tree_init(&tree);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(atomic_file_write(tree.fd, name, 0600, "x", 1), -ENAMETOOLONG);
	tree_mkdir(tree.fd, "folder/inside");
	assert_int_equal(atomic_file_write(tree.fd, "folder", 0600, "x", 1), -EISDIR);
	assert_int_equal(faccessat(tree.fd, ".new-folder", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	assert_true(atomic_file_unfinished(".new-folder"));
	assert_false(atomic_file_unfinished("folder"));
}

static void test_make_dir(void **state)
{
	_cleanup_(tree_deinit) struct tree tree;
	char path[128];
	struct stat st;

	tree_init(&tree);
	snprintf(path, sizeof(path), "%s/a/b/c", tree.path);
	assert_int_equal(atomic_file_make_dir(path, 0700), 0);
	assert_int_equal(atomic_file_make_dir(path, 0700), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	tree_write(tree.fd, "file", "");
	snprintf(path, sizeof(path), "%s/file/b", tree.path);
	assert_int_equal(atomic_file_make_dir(path, 0700), -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_fails),
		cmocka_unit_test(test_make_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
