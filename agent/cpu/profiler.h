/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_PROFILER_H
#define PODPROF_CPU_PROFILER_H

/*
 * The way of a CPU sample, and of one of a thread off the CPUs: from the kernel, to its entity, to
 * places in images, folded by series; at the end of a window to the worker, which names the places
 * and encodes; and out as a profile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/export.h"
#include "profile/bpfobj.h"

struct cpu_sampler;
struct discovery;
struct loop;
struct metric_sink;
struct root;
struct series;
struct cpu_profiler;

/* What is borrowed must outlive the profiler. */
struct cpu_profiler_opts {
	struct loop *loop;
	const struct root *proc;
	const struct root *sys;
	struct discovery *discovery;
	unsigned int rate_hz;
	double off_cpu; /* as in cpu_sampler_opts */
	bool kernel_stacks;
	enum settings_unwind unwind;
	bool unsafe_kernel;	      /* as in oncpu_opts */
	size_t symbol_bytes;	      /* ceiling for symbol tables kept */
	size_t table_bytes;	      /* ceiling for unwind tables in the kernel */
	struct profile_limits limits; /* of one profile; {0}: profile_limits_max */
	/* Takes a finished profile; called on the loop. */
	void (*out)(void *ctx, struct profile *profile);
	void *ctx;
};

/* 0, or -errno with a sentence in *@ret_why. */
int cpu_profiler_new(const struct cpu_profiler_opts *opts, struct bpfobj_why *ret_why,
		     struct cpu_profiler **ret);
/* Waits for the report that is being made; those that wait are dropped and counted. */
void cpu_profiler_free(struct cpu_profiler *p);

/* What was folded until now goes out as profiles of this span (wall clock): when all its entities
 * have their names or are not waited for any more, or when the next window ends. */
void cpu_profiler_end_window(struct cpu_profiler *p, uint64_t start_ns, uint64_t duration_ns);
/* Stop sampling and take in what is left; then end the window a last time, of which names that have
 * not come are waited for no longer than this. */
void cpu_profiler_finish(struct cpu_profiler *p, uint64_t wait_ns);
/* Reports that are not out yet. */
size_t cpu_profiler_pending(const struct cpu_profiler *p);

/* An entity's series, NULL if it has none. */
const struct series *cpu_profiler_series(const struct cpu_profiler *p, const char *entity);
/* CPU time that one sample stands for. */
uint64_t cpu_profiler_period_ns(const struct cpu_profiler *p);
/* Memory of the caches: symbol tables as of the last report, and mappings. */
struct cpu_profiler_caches {
	size_t symbol_bytes;
	size_t address_space_bytes;
};
struct cpu_profiler_caches cpu_profiler_caches(const struct cpu_profiler *p);
/* What it takes samples by; borrowed. */
const struct cpu_sampler *cpu_profiler_sampler(const struct cpu_profiler *p);
/* A metric_collect_fn. */
void cpu_profiler_collect(void *ctx, struct metric_sink *sink);

#endif
