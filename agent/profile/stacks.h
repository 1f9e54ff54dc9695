/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_STACKS_H
#define PODPROF_PROFILE_STACKS_H

/* The drain of the stack maps of a BPF program, without loss of counts. */

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

/**
 * stacks_tick() - one half of a drain
 * @fn: called for each distinct stack, with its count since the last drain
 *
 * A drain takes two ticks: the first switches the generation, the second delivers the samples.
 * After each tick, stacks_interval_ns() gives the time until the next: a few milliseconds between
 * the two ticks of a drain, otherwise an interval. The interval shrinks when the maps fill. A
 * sample is at most an interval old when @fn gets it.
 *
 * Return: 0, or -errno (after delivery of all entries read before the error).
 */
int stacks_tick(struct stacks *s, sample_fn fn, void *ctx);
/* Deliver the remaining samples, after the end of the program. */
int stacks_finish(struct stacks *s, sample_fn fn, void *ctx);

/* Count a sample with a stack dump (SAMPLE_STAT_DUMPED) after its deferred unwind. The caller
 * delivers the sample. */
void stacks_walked(struct stacks *s, const struct sample *sample);

/* Time from this tick to the next, in ns. */
uint64_t stacks_interval_ns(const struct stacks *s);
/* Start of the span of the next tick's or stacks_finish()'s samples (boot clock). */
uint64_t stacks_since_ns(const struct stacks *s);
/* Samples since the start by outcome (bpf/shared/sample.h); "copied" counts stack dumps before
 * their walk. 0 or -errno. */
int stacks_stats(const struct stacks *s, uint64_t ret[], size_t n);

/* podprof_samples, podprof_frames, podprof_bpf_unsettled_drains, podprof_bpf_invalid_entries over
 * the @n kinds of @all. */
void stacks_collect(const struct stacks *const all[], size_t n, struct metric_sink *sink);

#endif
