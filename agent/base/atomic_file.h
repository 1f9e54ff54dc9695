/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_ATOMIC_FILE_H
#define PODPROF_BASE_ATOMIC_FILE_H

/* Files that appear under their name completely or not at all. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Write @n bytes to the file @name in the directory @dir_fd and replace an existing file. Follows
 * no symbolic link. There is no fsync(): after a power cut the file may be empty or the old file.
 * 0 or -errno. */
int atomic_file_write(int dir_fd, const char *name, mode_t mode, const void *data, size_t n);
/* Write all @n bytes to an open file. 0 or -errno. */
int atomic_file_write_all(int fd, const void *data, size_t n);
/* Whether @name is a temporary file of an interrupted write. The caller removes such a file. */
bool atomic_file_unfinished(const char *name);
/* mkdir -p: a new directory gets @mode, its new parents 0755. 0 or -errno. */
int atomic_file_make_dir(const char *path, mode_t mode);

#endif
