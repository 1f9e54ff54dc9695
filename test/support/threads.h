/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_THREADS_H
#define PODPROF_TEST_SUPPORT_THREADS_H

/* Waits until all other threads of this process have ended, abandoned ones included. */
void threads_wait(void);

#endif
