/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_TREE_H
#define PODPROF_TEST_SUPPORT_TREE_H

#include <stdint.h>

/* Directories for tests: plain ones below /tmp, and cgroups. All functions fail the test on errors.
 */

#define TREE_PATH_MAX 4096

/* A new empty directory. */
struct tree {
	char path[64];
	int fd;
};

void tree_init(struct tree *tree);
/* Removes the directory with its contents. */
void tree_deinit(struct tree *tree);

/* Make @path below @fd, with its parents. Returns the inode number. */
uint64_t tree_mkdir(int fd, const char *path);
/* Remove an empty directory and its empty parents. */
void tree_rmdir(int fd, const char *path);
/* Make or replace a file. */
void tree_write(int fd, const char *path, const char *text);

#endif
