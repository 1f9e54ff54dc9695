/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_THREAD_FILE_H
#define PODPROF_BASE_THREAD_FILE_H

/* What /proc says about a thread: of this process, or of a child. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The begin of the file /proc/PID/task/TID/@file: up to @size - 1 bytes, NUL behind the last; "" if
 * the file cannot be read. @pid 0: this process. */
void thread_file_read(pid_t pid, pid_t tid, const char *file, char *ret, size_t size);

/* Whether the thread is on a CPU or waits for one. */
bool thread_file_runnable(pid_t pid, pid_t tid);

#endif
