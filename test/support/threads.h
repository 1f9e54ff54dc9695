/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_THREADS_H
#define PODPROF_TEST_SUPPORT_THREADS_H

#include <stddef.h>
#include <sys/types.h>

/* Waits until all other threads of this process have ended, abandoned ones included. Fails the test
 * after UNTIL_SECONDS. */
void threads_wait(void);

/* Threads of this process with this name. */
size_t threads_named(const char *name);

/* The number of such a thread; 0: none. */
pid_t threads_find(const char *name);

/* Moves this thread, and those that it starts later, to the first CPU of its set. The test may run
 * on a set of CPUs. */
void threads_pin(void);

/* The child process that this thread has started; 0: none. */
pid_t threads_child(void);

#endif
