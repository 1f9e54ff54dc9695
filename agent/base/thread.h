/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_THREAD_H
#define PODPROF_BASE_THREAD_H

/* Starts threads, and reads what /proc says about one: of this process, or of a child. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Starts a thread that blocks all signals, which belong to the loop. @name: as ps shows it, at most
 * 15 characters; NULL: that of the calling thread. The caller joins or detaches *@ret. 0 or -errno.
 */
int thread_start(const char *name, void *(*run)(void *arg), void *arg, pthread_t *ret);

/* The begin of the file /proc/PID/task/TID/@file: up to @size - 1 bytes, NUL behind the last; "" if
 * the file cannot be read. @pid 0: this process. */
void thread_read_file(pid_t pid, pid_t tid, const char *file, char *ret, size_t size);

/* Whether the thread is on a CPU or waits for one. @pid as above. */
bool thread_is_runnable(pid_t pid, pid_t tid);

#endif
