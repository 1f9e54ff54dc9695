/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_ATOMIC_FILE_H
#define PODPROF_BASE_ATOMIC_FILE_H

/* Files that appear under their name as a whole or not at all. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Write @n bytes to the file @name in the directory @dir_fd, in place of the one that may be there.
 * Follows no symbolic link. There is no fsync(): after a power cut it may be empty or the old one.
 * 0 or -errno. */
int atomic_file_write(int dir_fd, const char *name, mode_t mode, const void *data, size_t n);
/* All of it to an open file. 0 or -errno. */
int atomic_file_write_all(int fd, const void *data, size_t n);
/* Whether a file of that name is what was being written when somebody ended: to be removed. */
bool atomic_file_unfinished(const char *name);
/* mkdir -p: the directory gets @mode if it is new, its parents 0755. 0 or -errno. */
int atomic_file_make_dir(const char *path, mode_t mode);

#endif
