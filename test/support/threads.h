/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_THREADS_H
#define PODPROF_TEST_SUPPORT_THREADS_H

#include <sys/types.h>

/* Waits until all other threads of this process have ended, abandoned ones included. */
void threads_wait(void);

/* The child process that this thread has started; 0: none. */
pid_t threads_child(void);

#endif
