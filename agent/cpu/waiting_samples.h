/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_WAITING_SAMPLES_H
#define PODPROF_CPU_WAITING_SAMPLES_H

/* Samples that wait for the mappings of their process (address_space_reading()), or for names of a
 * language runtime's functions (runtimes_wants()). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"

struct metric_sink;
struct sample;
struct waiting_samples;

/* Bytes of waiting samples, shared by owner (base/share.h): about 10,000 stacks, or the samples
 * of 50 CPUs in the two seconds that a blocked thread takes. Reached: a sample does not wait and
 * gets the names that are known, `podprof_waiting_samples_total{outcome="full"}`. */
#define WAITING_SAMPLES_BYTES_MAX ((size_t)4 << 20)
/* The longest wait: enough for two blocks of the thread (OPENER_STUCK_NS). Then a sample gets the
 * names that are known, counted as "expired". */
#define WAITING_SAMPLES_NS	  (5 * NSEC_PER_SEC)

/* When a sample was taken, boot clock: after @since_ns, not after @until_ns. */
struct sample_time {
	uint64_t since_ns;
	uint64_t until_ns;
};

/**
 * waiting_sample_fn - takes a sample whose wait may be over
 * @off_cpu, @taken, @sample: of waiting_samples_add()
 * @force: the sample does not wait any longer
 *
 * Return: false if the sample waits on.
 */
typedef bool (*waiting_sample_fn)(void *ctx, const struct sample *sample, bool off_cpu,
				  const struct sample_time *taken, bool force);

int waiting_samples_new(waiting_sample_fn fn, void *ctx, struct waiting_samples **ret);
/* Waiting samples are lost. NULL is fine. */
void waiting_samples_free(struct waiting_samples *ws);

/* Copies @sample of @owner (discovery_owner()). False at a ceiling or without memory. */
bool waiting_samples_add(struct waiting_samples *ws, const struct sample *sample, uint64_t owner,
			 bool off_cpu, const struct sample_time *taken);
/* The mappings of @pid have changed: marks the samples of @pid for waiting_samples_retry(). */
void waiting_samples_changed(struct waiting_samples *ws, uint64_t pid);
/* Calls the waiting_sample_fn for the marked samples and for samples that have waited too long;
 * with @force for all samples. It takes samples until @end_ns (monotonic), and at least one. True:
 * some are left. */
bool waiting_samples_retry(struct waiting_samples *ws, bool force, uint64_t end_ns);
size_t waiting_samples_n(const struct waiting_samples *ws);
/* A metric_collect_fn: podprof_waiting_samples. */
void waiting_samples_collect(void *ctx, struct metric_sink *sink);

#endif
