/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_HTTP_H
#define PODPROF_CPU_HTTP_H

/*
 * CPU and off-CPU profiles on demand, over HTTP. Requests take no samples of their own: each folds
 * the profiler's samples of the selected entities a second time (capture.h). The profiler's worker
 * encodes the result, ahead of the reports of windows.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "server/pull.h"

struct cpu_http;
struct cpu_share;
struct cpu_stack;
struct discovery;
struct entity;
struct loop;
struct metric_sink;
struct symbolizer;
struct worker;

/* Requests at a time, CAPTURE_BYTES_MAX each. Reached: 429;
 * `podprof_cpu_pulls_total{outcome="busy"}`. */
#define CPU_HTTP_MAX	     4
/* Nanoseconds of debt of the share of CPU time. Reached: 429;
 * `podprof_cpu_pulls_total{outcome="busy"}`. */
#define CPU_HTTP_DEBT_MAX_NS (5 * NSEC_PER_SEC)
/* Samples of an answer. Reached: the others are left out:
 * `podprof_cpu_pulls_total{outcome="dropped"}`. */
#define CPU_HTTP_SAMPLES_MAX (1u << 16)
/* Bytes of an answer before compression, twice as many as for a window's profile. Reached: the rest
 * is left out: `podprof_cpu_pulls_total{outcome="dropped"}`. */
#define CPU_HTTP_PPROF_MAX   (4u << 20)

/**
 * struct cpu_http_opts - borrowed until cpu_http_free()
 * @worker, @symbolizer: the profiler's; the symbolizer is the worker's
 * @off_cpu: the profiler takes off-CPU samples
 * @period:  value of an on-CPU sample, for a profile without samples
 * @drain:   ends the interval between two drains now
 * @doc_url: as in pprof_opts
 * @share:   of CPU time, charged with the encoding; far in debt, requests are refused. NULL: none
 */
struct cpu_http_opts {
	struct loop *loop;
	struct worker *worker;
	struct symbolizer *symbolizer;
	struct discovery *discovery;
	bool off_cpu;
	uint64_t period;
	void (*drain)(void *ctx);
	void *ctx;
	const char *doc_url;
	struct cpu_share *share;
};

/* 0 or -ENOMEM. */
int cpu_http_new(const struct cpu_http_opts *opts, struct cpu_http **ret);
/* Before worker_free(), which ends the last requests. Their answer is that the agent ends. */
void cpu_http_stop(struct cpu_http *h);
/* Afterwards. NULL is allowed. */
void cpu_http_free(struct cpu_http *h);

/* A sample of the profiler, with the stack. */
void cpu_http_sample(struct cpu_http *h, bool off_cpu, struct entity *entity,
		     const struct cpu_stack *stack, uint64_t count, uint64_t value);
/* All samples of a kind until @until_ns (boot clock) have come. */
void cpu_http_drained(struct cpu_http *h, bool off_cpu, uint64_t until_ns);

/* Borrowed; lives as long as @h. NULL for NULL. */
const struct pull_source *cpu_http_source(const struct cpu_http *h);
/* A metric_collect_fn: podprof_cpu_pulls. */
void cpu_http_collect(void *ctx, struct metric_sink *sink);

#endif
