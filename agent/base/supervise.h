/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_SUPERVISE_H
#define PODPROF_BASE_SUPERVISE_H

/*
 * The program ends although one of its threads cannot. The work happens in a child process; the
 * parent passes on signals and ends with the child, or without it.
 */

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the description of threads. Reached: the others are left out. */
#define SUPERVISE_TEXT_MAX 256
/* Asks the child to end at once. The parent sends it for the second SIGINT or SIGTERM. */
#define SUPERVISE_AT_ONCE  SIGUSR1

enum supervise_forced {
	SUPERVISE_KILLED, /* SIGKILL has ended the child */
	SUPERVISE_STUCK,  /* a second after SIGKILL, a thread of the child is still there, and
			   * blocked; some seconds later, any thread */
};

/**
 * struct supervise_opts - the work and its limits
 * @run:      the work; called in the child, which exits with the returned status
 * @forced:   called in the parent after its SIGKILL to the child. @threads names the threads in the
 *            kernel with their place there, as far as /proc tells
 * @starved:  called in the parent each second from the SIGKILL on, while a thread of the child
 * lacks only a CPU; NULL: not called
 * @grace_ns: from the first SIGINT or SIGTERM to SIGKILL; 0: no limit
 * @leave_ns: from the return of @run, or the end of the main thread, to SIGKILL; 0: two seconds
 * @starved_ns: from SIGKILL to SUPERVISE_STUCK, if a thread lacks only a CPU; 0: four seconds
 */
struct supervise_opts {
	int (*run)(void *ctx);
	void (*forced)(void *ctx, enum supervise_forced how, const char *threads);
	void (*starved)(void *ctx);
	void *ctx;
	uint64_t grace_ns;
	uint64_t leave_ns;
	uint64_t starved_ns;
};

/**
 * supervise() - run the work in a child process
 * @ret_status: the exit status of @run; 1 without one
 *
 * Returns in the parent only. Call before any thread is started. SIGINT, SIGTERM and SIGHUP are
 * passed on, and a group's signals may reach the child twice: its handlers must be idempotent. The
 * child gets SIGKILL when the parent ends. The parent of a child killed by a signal ends with the
 * same signal; as process 1 of a container, with status 128 + signal.
 *
 * Return: 0 or -errno.
 */
int supervise(const struct supervise_opts *opts, int *ret_status);

#endif
