/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_LOCKDIR_H
#define PODPROF_EXPORT_LOCKDIR_H

/* A directory of files that only one process may write. The lock is flock()'s, and lasts as long as
 * the descriptor and its copies. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strview.h"

/* Lines of /proc/locks that are read: a lock each, and a container can take any number of locks. A
 * node has some hundreds. Reached: the process with the lock stays unknown. */
#define LOCKDIR_LINES_MAX 4096

enum lockdir_outcome {
	LOCKDIR_OK = 0,
	LOCKDIR_BUSY, /* another process has the lock, or an ended one whose threads still wait */
};

/**
 * lockdir_open() - make, open and lock a directory
 * @mode:       of a new directory; its new parents get 0755
 * @ret_holder: for LOCKDIR_BUSY: the process with the lock; 0: unknown
 *
 * On a file system without locks the user must prevent a second process. Blocks as long as the disk
 * does. Return: 0, LOCKDIR_BUSY, -errno.
 */
int lockdir_open(const char *path, mode_t mode, int *ret_fd, pid_t *ret_holder);

/* The process with the lock of a directory; 0: none, or unknown. Takes no lock. */
pid_t lockdir_holder(const char *path);

/* A line of /proc/locks. True if the line says that a process has a flock() of the file.
 * Source: Linux, fs/locks.c, lock_get_status(). */
bool lockdir_line(struct strview line, dev_t dev, ino_t ino, pid_t *ret_pid);

#endif
