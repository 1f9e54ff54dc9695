/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_WAKEUP_H
#define PODPROF_BASE_WAKEUP_H

/* One thread wakes another, which waits for the descriptor (an eventfd) to be readable. What the
 * other has to do is elsewhere, under a lock or in an atomic variable: wake-ups are not counted. */

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The descriptor, owned by the caller; -1 with errno. */
static inline int wakeup_open(void)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* Any thread. Cannot fail: the counter would have to reach 2^64-1. */
static inline void wakeup_send(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

/* Before the thread that woke looks at what it has to do: a later wake-up makes @fd readable
 * again. */
static inline void wakeup_take(int fd)
{
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
}

#endif
