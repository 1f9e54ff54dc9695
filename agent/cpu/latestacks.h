/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_LATESTACKS_H
#define PODPROF_CPU_LATESTACKS_H

/*
 * Stacks that are walked here and not in the kernel: of processes that it did not know at that
 * moment, or with images that had no table yet. They come as copies (profile/copies.h), wait until
 * what they need is there, and become samples like any other.
 *
 * Waits off the CPU are copied when they begin. What is found of such a one is kept until the
 * thread comes back, when the time that it was away comes as a sample with the copy's id.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/copies.h"
#include "profile/sample.h"

struct late_stacks;
struct metric_sink;
struct space_cache;
struct unwinder;

/* Bytes of the copies that wait: some 900 copies. Above it the oldest ones are walked as it is
 * possible now, counted as "full". Reached: `podprof_late_stacks_total{outcome="full"}`: walked as
 * it is possible. */
#define LATE_STACKS_BYTES_MAX ((size_t)8 << 20)
/* Bytes of the stacks of threads that are away: some 8,000. Above it the oldest ones are forgotten,
 * counted as "away"; they are what frame pointers say then. Reached:
 * `podprof_late_stacks_total{outcome="away"}`: walked by frame pointers. */
#define LATE_STACKS_AWAY_MAX  ((size_t)4 << 20)
/* A table that has not come by then: the stack is walked as it is possible, counted as "expired".
 * Processes that have gone are known for twice as long (LIVES_KEEP_NS). */
#define LATE_STACKS_WAIT_NS   (10 * NSEC_PER_SEC)

/**
 * struct late_stacks_opts - what is borrowed must outlive it
 * @fns: who gets the samples, by kind
 */
struct late_stacks_opts {
	struct bpfobj_copies maps;
	struct space_cache *spaces;
	struct unwinder *unwinder;
	void (*fn)(void *ctx, enum copy_kind kind, const struct sample *sample);
	void *ctx;
};

int late_stacks_new(const struct late_stacks_opts *opts, struct late_stacks **ret);
void late_stacks_free(struct late_stacks *ls);

/* Readable when they should be taken in before the next tick. */
int late_stacks_fd(const struct late_stacks *ls);
/* Take in what there is, and hand over what can be walked of what was taken before @until_ns (boot
 * clock): of later ones it is not known what the kernel tells of their processes. 0 or -errno. */
int late_stacks_tick(struct late_stacks *ls, uint64_t until_ns);
/* A thread has come back: @sample is its wait, with a copy_id. True if it has been handed over with
 * the copy's stack, or will be; false if there is no such copy (any more). */
bool late_stacks_back(struct late_stacks *ls, const struct sample *sample);
/* A table is there, or is known not to come; 0: some are. */
void late_stacks_ready(struct late_stacks *ls, uint16_t exe);
/* No more will come: hand over all there is, as it can be walked now. */
void late_stacks_flush(struct late_stacks *ls);

/* How many wait, and are known to be samples. */
size_t late_stacks_pending(const struct late_stacks *ls);
/* A metric_collect_fn: podprof_late_stacks, podprof_late_stacks_waiting, and podprof_stack_copies.
 */
void late_stacks_collect(void *ctx, struct metric_sink *sink);

#endif
