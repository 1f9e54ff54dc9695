/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_STACKS_H
#define PODPROF_PROFILE_STACKS_H

/* Stacks that a BPF program counts in the kernel, taken over from there without losing a count. */

#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "profile/bpfobj.h"
#include "profile/sample.h"

struct metric_sink;
struct stacks;

/* Drains do not come more often than this, however full the maps are. */
#define STACKS_INTERVAL_MIN_NS (100 * NSEC_PER_MSEC)

/**
 * stacks_new() - for one program's maps
 * @kind:      "cpu", for the metrics; borrowed
 * @maps:      belong to the object, which must outlive this
 * @sizes:     as the maps were made
 * @wished_ns: how often they are emptied if they do not fill sooner
 *
 * Return: 0 or -errno.
 */
int stacks_new(const char *kind, const struct bpfobj_stacks *maps, const struct bpfobj_sizes *sizes,
	       uint64_t wished_ns, struct stacks **ret);
void stacks_free(struct stacks *s);

/**
 * stacks_tick() - hand over what was counted
 * @fn: called for each distinct stack, with its count since it was last handed over
 *
 * Every other tick hands over. Ask stacks_interval_ns() after each for the time until the next: a
 * few milliseconds in the middle of it, then an interval, which becomes shorter when the maps are
 * filling. A sample is at most an interval old when it reaches @fn.
 *
 * Return: 0 or -errno (what was read so far has been handed over).
 */
int stacks_tick(struct stacks *s, sample_fn fn, void *ctx);
/* All that is left, when the program does not run any more. */
int stacks_finish(struct stacks *s, sample_fn fn, void *ctx);

/* One that was copied out (SAMPLE_STAT_DUMPED) has been walked, and is handed over by who did
 * it. */
void stacks_walked(struct stacks *s, const struct sample *sample);

/* From this tick to the next one. */
uint64_t stacks_interval_ns(const struct stacks *s);
/* The samples that the next tick hands over, or stacks_finish(), were taken after that time (boot
 * clock). */
uint64_t stacks_since_ns(const struct stacks *s);
/* How many samples had each outcome (bpf/shared/sample.h) since the start; "copied" are those that
 * are not walked yet. 0 or -errno. */
int stacks_stats(const struct stacks *s, uint64_t ret[], size_t n);

/* podprof_samples, podprof_frames, podprof_bpf_unsettled_drains, podprof_bpf_invalid_entries over
 * all kinds; @all has @n of them. */
void stacks_collect(const struct stacks *const all[], size_t n, struct metric_sink *sink);

#endif
