/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_TREE_H
#define PODPROF_TEST_SUPPORT_TREE_H

#include <stdint.h>

/* Directories for tests: plain ones below /tmp, and cgroups. All fail the test where they cannot.
 */

#define TREE_PATH_MAX 4096

/* A new empty directory. */
struct tree {
	char path[64];
	int fd;
};

void tree_init(struct tree *tree);
/* Removes it with everything in it. */
void tree_deinit(struct tree *tree);

/* Make @path below @fd, with what is above it. Returns the inode number. */
uint64_t tree_mkdir(int fd, const char *path);
/* Remove an empty directory, and those above it that are empty then. */
void tree_rmdir(int fd, const char *path);
/* Make or replace a file. */
void tree_write(int fd, const char *path, const char *text);

#endif
