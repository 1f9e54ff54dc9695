/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_STOPPING_H
#define PODPROF_TEST_SUPPORT_STOPPING_H

/* Stops threads of other programs anywhere, by ptrace, and resumes them without a trace. The
 * programs are children of the caller or otherwise traceable. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define STOPPING_THREADS_MAX 256

/* A stopped thread. */
struct stopping {
	pid_t tid;
	int sig; /* pending signal of the thread */
};

/* The running or ready threads of @pid and, with @family, of all descendants. */
size_t stopping_running(pid_t pid, bool family, pid_t ret[STOPPING_THREADS_MAX]);

/* Stop a thread at its present place. False if the thread is gone or does not stop. */
bool stopping_begin(struct stopping *s, pid_t tid);
/* Step one instruction, or into a signal's handler. False if the thread is gone, or must not be
 * stepped here. */
bool stopping_step(struct stopping *s);
/* Resume the thread. */
void stopping_end(struct stopping *s);

#endif
