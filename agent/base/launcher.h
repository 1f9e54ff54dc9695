/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_LAUNCHER_H
#define PODPROF_BASE_LAUNCHER_H

/*
 * Starts programs that get one descriptor of ours. The close of a copied descriptor asks its file
 * system (FUSE_FLUSH), and so does an exec. A file system without an answer would block the new
 * process, and us with it. So the new process gets no copy of a foreign file's descriptor, not even
 * for a moment.
 */

#include <sys/types.h>

/* The descriptor in the new process. The lower ones are /dev/null. */
#define LAUNCHER_FD	  3
#define LAUNCHER_RESERVED 64

struct launcher;

/* Call before a foreign file is opened: takes all free descriptors below LAUNCHER_RESERVED. A
 * second launcher finds none: it works, but its processes may get copies of foreign files. 0 or
 * -errno. */
int launcher_new(struct launcher **ret);
/* NULL is fine. */
void launcher_free(struct launcher *l);

/* Starts @program with @argv, in a process group of its own, without environment and with the usual
 * signals. @fd is copied. The caller waits for the process; its exit status is LAUNCHER_FAILED if
 * the program cannot be run. 0 or -errno. */
#define LAUNCHER_FAILED 127
int launcher_start(struct launcher *l, const char *program, char *const argv[], int fd, pid_t *ret);

#endif
