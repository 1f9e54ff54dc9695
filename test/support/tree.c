// SPDX-License-Identifier: Apache-2.0
#include "support/tree.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void tree_init(struct tree *tree)
{
	/* prefer memory: thousands of directories take seconds on a disk */
	snprintf(tree->path, sizeof(tree->path), "/dev/shm/podprof-test-XXXXXX");
	if (!mkdtemp(tree->path)) {
		snprintf(tree->path, sizeof(tree->path), "/tmp/podprof-test-XXXXXX");
		assert_non_null(mkdtemp(tree->path));
	}
	tree->fd = open(tree->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	assert_true(tree->fd >= 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

void tree_deinit(struct tree *tree)
{
	close(tree->fd);
	assert_int_equal(nftw(tree->path, remove_one, 64, FTW_DEPTH | FTW_PHYS), 0);
}

uint64_t tree_mkdir(int fd, const char *path)
{
	char copy[TREE_PATH_MAX];
	struct stat st;
	size_t n = strlen(path);

	assert_true(n < sizeof(copy));
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(copy, path, i);
		copy[i] = '\0';
		if (mkdirat(fd, copy, 0755) && errno != EEXIST)
			fail_msg("cannot make %s: %s", copy, strerror(errno));
	}
	assert_int_equal(fstatat(fd, path, &st, 0), 0);
	return st.st_ino;
}

void tree_rmdir(int fd, const char *path)
{
	char copy[TREE_PATH_MAX];
	char *slash;

	assert_true(strlen(path) < sizeof(copy));
	snprintf(copy, sizeof(copy), "%s", path);
	if (unlinkat(fd, copy, AT_REMOVEDIR))
		fail_msg("cannot remove %s: %s", copy, strerror(errno));
	while ((slash = strrchr(copy, '/'))) {
		*slash = '\0';
		if (unlinkat(fd, copy, AT_REMOVEDIR))
			return;
	}
}

void tree_write(int fd, const char *path, const char *text)
{
	int file = openat(fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (file < 0)
		fail_msg("cannot open %s: %s", path, strerror(errno));
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	close(file);
}
