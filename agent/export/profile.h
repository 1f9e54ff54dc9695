/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_PROFILE_H
#define PODPROF_EXPORT_PROFILE_H

/* A finished profile, passed from a pipeline to export. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"

enum profile_kind {
	PROFILE_CPU,
	PROFILE_OFF_CPU,
	PROFILE_GO_HEAP,
	PROFILE_GO_MUTEX,
	PROFILE_GO_BLOCK,
	PROFILE_KIND_MAX,
};

/* The label of a sample with the name of its thread. */
#define PROFILE_THREAD "thread"
/* ... and of its asyncio task. */
#define PROFILE_TASK   "task"

/**
 * struct profile - one series and window, encoded
 * @labels:      without __name__ and other labels of a single backend
 * @start_ns:    wall clock
 * @thread_names: samples may have the labels PROFILE_THREAD and PROFILE_TASK
 * @pprof:       gzip; cumulative if the kind is (the form in files and pulls)
 * @pprof_delta: the same window with alloc values as differences, for destinations with @deltas;
 *               NULL if there is no difference
 */
struct profile {
	enum profile_kind kind;
	struct labels labels;
	uint64_t start_ns;
	uint64_t duration_ns;
	bool thread_names;
	char *pprof;
	size_t pprof_len;
	char *pprof_delta;
	size_t pprof_delta_len;
};

/* Samples of one profile for any destination: the number of stacks of a fold (cpu/fold.h). Reached:
 * `podprof_profiled_samples_total{outcome="over_limit"}`,
 * `podprof_go_heap_reads_total{outcome="records_dropped"}`. */
#define PROFILE_SAMPLES_MAX 16000
/* Bytes of one profile before compression; the encoder takes up to 48 times as much memory, 97 MiB.
 * Reached: as PROFILE_SAMPLES_MAX. */
#define PROFILE_BYTES_MAX   (2u << 20)

/* Ceilings of one profile. */
struct profile_limits {
	size_t samples;
	size_t bytes; /* before compression */
};

/* Each ceiling: @value, or @all if @value is 0 or larger. */
struct profile_limits profile_limits_within(struct profile_limits value, struct profile_limits all);
/* PROFILE_SAMPLES_MAX and PROFILE_BYTES_MAX. */
extern const struct profile_limits profile_limits_max;

void profile_free(struct profile *profile);
/* Moves the encoded bytes into memory of their size, before a long wait: an encoder's buffer has 16
 * KiB for its next piece. Without memory they stay. */
void profile_fit(struct profile *profile);
const char *profile_kind_name(enum profile_kind kind); /* "cpu", "go_heap" */
/* Whether each profile of the kind covers the time since its processes began. */
bool profile_kind_is_cumulative(enum profile_kind kind);

#endif
