/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_DRAIN_H
#define PODPROF_PROFILE_DRAIN_H

/*
 * A thread that copies samples out of the kernel in time. The loop may be late: it reads files of
 * processes, and on a busy node it waits long for a CPU. The maps and the ring in the kernel hold
 * the samples of about two seconds. The copies hold those of minutes.
 */

#include <stddef.h>

#include "profile/stack_dump.h"
#include "profile/stacks.h"

struct drain;

/* On-CPU and off-CPU samples. */
#define DRAIN_KINDS 2

/**
 * struct drain_opts - borrowed until drain_free()
 * @stacks: the first @n are drained; nobody else may call stacks_fetch()
 * @dumps:  NULL: none
 */
struct drain_opts {
	struct stacks *stacks[DRAIN_KINDS];
	size_t n;
	struct stack_dumps *dumps;
};

/* Start the thread. 0 or -errno. */
int drain_new(const struct drain_opts *opts, struct drain **ret);
/* Stop it. What it has fetched stays with the stacks and dumps. NULL: does nothing. */
void drain_free(struct drain *d);

/* An eventfd, readable when something is fetched. */
int drain_fd(const struct drain *d);
/* Make it readable again, for a caller that leaves something for the next turn. */
void drain_again(struct drain *d);
/* The last error of a fetch since the last call, -errno; 0: none. */
int drain_error(struct drain *d);

#endif
