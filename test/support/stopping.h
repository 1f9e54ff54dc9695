/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_STOPPING_H
#define PODPROF_TEST_SUPPORT_STOPPING_H

/* Stopping threads of other programs anywhere, by ptrace, and letting them go on as if nothing had
 * been. The programs are children of the caller or may be traced by it. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define STOPPING_THREADS_MAX 256

/* A thread that is stopped. */
struct stopping {
	pid_t tid;
	int sig; /* that it is about to get */
};

/* The threads of @pid, and with @family those of its children and theirs, which are on a CPU or
 * want to be. */
size_t stopping_running(pid_t pid, bool family, pid_t ret[STOPPING_THREADS_MAX]);

/* Stop a thread where it is. False if it has gone or does not stop. */
bool stopping_begin(struct stopping *s, pid_t tid);
/* One instruction on, or into a signal's handler. False if it has gone, or must not be stepped
 * here. */
bool stopping_step(struct stopping *s);
/* Let it go on. */
void stopping_end(struct stopping *s);

#endif
