/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_STACKS_H
#define PODPROF_PROFILE_STACKS_H

/*
 * The drain of the stack maps of a BPF program, without loss of counts. One thread fetches: it
 * copies the samples out of the kernel. Another takes what is fetched. All other functions belong
 * to the thread that takes; without a thread that fetches, stacks_tick() does both.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "profile/bpfobj.h"
#include "profile/sample.h"

struct metric_sink;
struct stacks;

/* The shortest time between drains, even with full maps. */
#define STACKS_INTERVAL_MIN_NS (100 * NSEC_PER_MSEC)

/**
 * stacks_new() - set up the drain of one program's maps
 * @kind:      "cpu", for the metrics; borrowed
 * @maps:      the object owns them and must outlive the result
 * @sizes:     the maps' sizes
 * @wished_ns: time between drains, unless the maps fill earlier
 *
 * Return: 0 or -errno.
 */
int stacks_new(const char *kind, const struct bpfobj_stacks *maps, const struct bpfobj_sizes *sizes,
	       uint64_t wished_ns, struct stacks **ret);
void stacks_free(struct stacks *s);

/* Bytes of fetched samples, 360 each and more. Two CPUs at 97 Hz with distinct stacks reach the
 * ceiling in two minutes, 64 CPUs in 4 s. Memory is used only while the taking thread is late.
 * Reached: the drain stops, then `podprof_samples_total{outcome="lost_full"}`. */
#define STACKS_FETCHED_BYTES_MAX ((size_t)10 << 20)

/* A positive result of stacks_fetch(). */
#define STACKS_FETCHED 1

/**
 * stacks_fetch() - one half of a drain, on the thread that fetches
 *
 * A drain takes two calls: the first switches the generation, the second copies the samples. After
 * each call, stacks_interval_ns() gives the time until the next: a few milliseconds between the two
 * calls of a drain, otherwise an interval. The interval shrinks when the maps fill.
 *
 * Return: 0; STACKS_FETCHED: there is something to take; -errno: the next call tries again.
 */
int stacks_fetch(struct stacks *s);
/* True between two drains while no sample is stored: a drain would find nothing. The span of the
 * next samples then begins now. On the thread that fetches. */
bool stacks_idle(struct stacks *s);
/* True between two drains if few samples are to be expected: the last drain found less than a
 * quarter of what the maps hold. On the thread that fetches. */
bool stacks_sparse(const struct stacks *s);
/* After stacks_idle() said so: a drain without samples, for the thread that takes. Costs nothing in
 * the kernel. STACKS_FETCHED or -ENOMEM. */
int stacks_fetch_none(struct stacks *s);
/* Time from this stacks_fetch() or stacks_tick() to the next, in ns, if a drain is due every @n
 * intervals; on the same thread. */
uint64_t stacks_interval_ns(const struct stacks *s, unsigned int n);

/* Take the samples of one drain from what is fetched, the oldest. Samples that are taken and not
 * delivered stay taken. False if there are none. */
bool stacks_next(struct stacks *s);
/* Start of the span of these samples (boot clock), until the last is delivered. */
uint64_t stacks_since_ns(const struct stacks *s);
/* End of their span (boot clock): the change of generations. A program that ran meanwhile may have
 * stored a sample a moment later. Until the last is delivered. */
uint64_t stacks_until_ns(const struct stacks *s);
/* The same as stacks_since_ns() of the samples that are taken, or that stacks_next() will take;
 * UINT64_MAX if there are none. */
uint64_t stacks_next_since_ns(struct stacks *s);
/* Deliver them: @fn is called for each distinct stack, with its count since the last drain. */
void stacks_deliver(struct stacks *s, sample_fn fn, void *ctx);
/* The same until @end_ns (nsec_monotonic()), and at least one. Whether some are left. */
bool stacks_deliver_until(struct stacks *s, uint64_t end_ns, sample_fn fn, void *ctx);

/* stacks_fetch(), and the delivery of all that is fetched, on one thread. 0 or -errno. */
int stacks_tick(struct stacks *s, sample_fn fn, void *ctx);
/* Fetch the remaining samples, after the end of the program and of the thread that fetches. 0 or
 * -errno. */
int stacks_fetch_rest(struct stacks *s);
/* The same, and the delivery of all that is fetched. */
int stacks_finish(struct stacks *s, sample_fn fn, void *ctx);

/* Count a sample with a stack dump (SAMPLE_STAT_DUMPED) after its deferred unwind. The caller
 * delivers the sample. */
void stacks_walked(struct stacks *s, const struct sample *sample);

/* Samples since the start by outcome (bpf/shared/sample.h); "copied" counts stack dumps before
 * their walk. 0 or -errno. */
int stacks_stats(const struct stacks *s, uint64_t ret[], size_t n);

/* podprof_samples, podprof_frames, podprof_bpf_unsettled_drains, podprof_bpf_invalid_entries,
 * podprof_other_thread_samples over the @n kinds of @all. */
void stacks_collect(const struct stacks *const all[], size_t n, struct metric_sink *sink);

#endif
