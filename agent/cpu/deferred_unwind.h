/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_DEFERRED_UNWIND_H
#define PODPROF_CPU_DEFERRED_UNWIND_H

/*
 * Stacks that are walked here and not in the kernel: of processes that it did not know at that
 * moment, or with images that had no table yet. They come as copies (profile/stack_dump.h), wait
 * until what they need is there, and become samples like any other.
 *
 * Waits off the CPU are copied when they begin. What is found of such a one is kept until the
 * thread comes back, when the time that it was away comes as a sample with the copy's id.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/sample.h"
#include "profile/stack_dump.h"

struct address_space_cache;
struct deferred_unwind;
struct metric_sink;
struct unwind_publisher;

/* Bytes of the copies that wait: some 900 copies. Above it the oldest ones are walked as it is
 * possible now, counted as "full". Reached: `podprof_deferred_stacks_total{outcome="full"}`: walked
 * as it is possible. */
#define DEFERRED_UNWIND_BYTES_MAX   ((size_t)8 << 20)
/* Bytes of the stacks of threads that are off the CPU: some 8,000. Above it the oldest ones are
 * forgotten, counted as "off_cpu"; they are what frame pointers say then. Reached:
 * `podprof_deferred_stacks_total{outcome="off_cpu"}`: walked by frame pointers. */
#define DEFERRED_UNWIND_OFF_CPU_MAX ((size_t)4 << 20)
/* A table that has not come by then: the stack is walked as it is possible, counted as "expired".
 * Processes that have gone are known for twice as long (PROCESS_HISTORY_KEEP_NS). */
#define DEFERRED_UNWIND_WAIT_NS	    (10 * NSEC_PER_SEC)

/**
 * struct deferred_unwind_opts - what is borrowed must outlive it
 * @fns: who gets the samples, by kind
 */
struct deferred_unwind_opts {
	struct bpfobj_stack_dumps maps;
	struct address_space_cache *spaces;
	struct unwind_publisher *publisher;
	void (*fn)(void *ctx, enum stack_dump_kind kind, const struct sample *sample);
	void *ctx;
};

int deferred_unwind_new(const struct deferred_unwind_opts *opts, struct deferred_unwind **ret);
void deferred_unwind_free(struct deferred_unwind *du);

/* Readable when they should be taken in before the next tick. */
int deferred_unwind_fd(const struct deferred_unwind *du);
/* Take in what there is, and hand over what can be walked of what was taken before @until_ns (boot
 * clock): of later ones it is not known what the kernel tells of their processes. 0 or -errno. */
int deferred_unwind_tick(struct deferred_unwind *du, uint64_t until_ns);
/* A thread has come back: @sample is its wait, with a dump_id. True if it has been handed over with
 * the copy's stack, or will be; false if there is no such copy (any more). */
bool deferred_unwind_back(struct deferred_unwind *du, const struct sample *sample);
/* A table is there, or is known not to come; 0: some are. */
void deferred_unwind_ready(struct deferred_unwind *du, uint16_t exe);
/* No more will come: hand over all there is, as it can be walked now. */
void deferred_unwind_flush(struct deferred_unwind *du);

/* How many wait, and are known to be samples. */
size_t deferred_unwind_pending(const struct deferred_unwind *du);
/* A metric_collect_fn: podprof_deferred_stacks, podprof_deferred_stacks_pending, and
 * podprof_stack_dumps. */
void deferred_unwind_collect(void *ctx, struct metric_sink *sink);

#endif
