/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_DRAIN_H
#define PODPROF_PROFILE_DRAIN_H

/*
 * A thread that copies samples and process records out of the kernel in time. The loop may be late:
 * on a busy node it waits long for a CPU. The maps and the ring in the kernel hold the samples of
 * about two seconds. The copies hold those of minutes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "profile/stack_dump.h"
#include "profile/stacks.h"

struct drain;
struct sideband;

/* On-CPU and off-CPU samples. */
#define DRAIN_KINDS 2

/**
 * struct drain_opts - borrowed until drain_free()
 * @stacks: the first @n are drained; nobody else may call stacks_fetch()
 * @dumps:  NULL: none
 * @sideband: its full rings are fetched; NULL: none
 * @idle_ns: longest time between two drains while no sample is stored. Until then the thread only
 *           looks, every other interval, and it drains every other interval while there are few
 *           samples. 0: always drains, each interval
 */
struct drain_opts {
	struct stacks *stacks[DRAIN_KINDS];
	size_t n;
	struct stack_dumps *dumps;
	struct sideband *sideband;
	uint64_t idle_ns;
};

/* Start the thread. 0 or -errno. */
int drain_new(const struct drain_opts *opts, struct drain **ret);
/* Stop it. What it has fetched stays with the stacks and dumps. NULL: does nothing. */
void drain_free(struct drain *d);

/* An eventfd, readable when something is fetched that the owner should take now. */
int drain_fd(const struct drain *d);
/* Make it readable again, for a caller that leaves something for the next turn. */
void drain_again(struct drain *d);
/* @busy: the caller waits for the next drain, so there is one also without samples. */
void drain_set_busy(struct drain *d, bool busy);
/* Drain, or look while no sample is stored, after short times: DRAIN_SOON_PART of the time since
 * @since_ns (monotonic) within these bounds, for DRAIN_SOON_NS. 0: as usual. */
#define DRAIN_SOON_NS	    (5 * NSEC_PER_SEC)
#define DRAIN_SOON_PART	    8
#define DRAIN_SOON_FIRST_NS (25 * NSEC_PER_MSEC)
#define DRAIN_SOON_LAST_NS  (200 * NSEC_PER_MSEC)
void drain_set_soon(struct drain *d, uint64_t since_ns);
/* Drain now instead of after the interval, also without samples: a caller wants the samples up to
 * this moment, and a span that begins with it. */
void drain_now(struct drain *d);
/* The last error of a fetch since the last call, -errno; 0: none. */
int drain_error(struct drain *d);

#endif
