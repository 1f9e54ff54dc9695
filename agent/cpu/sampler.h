/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_SAMPLER_H
#define PODPROF_CPU_SAMPLER_H

/*
 * From the kernel's samples to stacks of places in images: what the agent's CPU profiler and
 * `podprof record` begin with. Takes the samples in time after time, while their processes live.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/hierarchy.h"
#include "procmap/image.h"
#include "profile/bpfobj.h"
#include "profile/sample.h"
#include "shared/sample.h"

struct event;
struct loop;
struct metric_sink;
struct oncpu;
struct root;
struct runtime;
struct cpu_sampler;

/* Frames of one stack: both halves. Reached:
 * `podprof_samples_total{outcome="truncated_max_frames"}`. */
#define CPU_STACK_FRAMES_MAX (SAMPLE_USER_FRAMES_MAX + SAMPLE_KERNEL_FRAMES_MAX)

/* A sample's stack as places, innermost first: the kernel's part, then the user's. The kind of each
 * is its image's. Owns references to the images. */
struct cpu_stack {
	struct frame frames[CPU_STACK_FRAMES_MAX];
	uint8_t return_address[CPU_STACK_FRAMES_MAX];
	size_t n;
};

void cpu_stack_deinit(struct cpu_stack *stack);

/* At the end: how long tables are waited for that the last stacks need. */
#define CPU_SAMPLER_LATE_NS 5000000000ull

/* Some thousand libraries. */
#define CPU_SAMPLER_TABLE_BYTES ((size_t)32 << 20)

/**
 * struct cpu_sampler_opts - what is borrowed must outlive the sampler
 * @v1:          the version 1 hierarchy whose cgroup ids samples are to carry
 * @interval_ns: how often samples are taken in; a process that ends before its first ones are has
 *               stacks without names
 * @event_ring_bytes: of each CPU, for what the kernel tells of processes; 0: SIDEBAND_RING_BYTES
 * @unwind:      how callers are found
 * @table_bytes: ceiling of kernel memory for unwind tables; 0 is CPU_SAMPLER_TABLE_BYTES
 * @runtimes:    readers of language runtimes: @n_runtimes as in runtimes_opts; NULL: podprof's own
 * @off_cpu:     share of task switches that is looked at, up to 1; 0: no off-CPU samples
 * @off_fn:      as @fn, for off-CPU stacks
 * @fn:          called on the loop for each distinct stack of an interval
 */
struct cpu_sampler_opts {
	struct loop *loop;
	const struct root *proc;
	const struct root *sys;
	enum controller v1;
	unsigned int rate_hz; /* this, and the next six: as in oncpu_opts */
	const struct event *event;
	uint64_t period;
	enum settings_scope scope;
	bool kernel_stacks;
	enum settings_unwind unwind;
	bool unsafe_kernel;
	size_t table_bytes;
	const struct runtime *const *runtimes;
	size_t n_runtimes;
	uint64_t interval_ns;
	size_t event_ring_bytes;
	double off_cpu;
	sample_fn off_fn;
	sample_fn fn;
	void *ctx;
};

/* Begins to sample. 0, or -errno with a sentence in *@ret_why. */
int cpu_sampler_new(const struct cpu_sampler_opts *opts, struct bpfobj_why *ret_why,
		    struct cpu_sampler **ret);
void cpu_sampler_free(struct cpu_sampler *s);
/* Stop sampling and take in what is left. */
void cpu_sampler_finish(struct cpu_sampler *s);

/* Where a sample was, while it is being handed over. @ret is to be empty, and to be given to
 * cpu_stack_deinit() whatever happens. 0 or -ENOMEM. */
int cpu_sampler_resolve(struct cpu_sampler *s, const struct sample *sample, struct cpu_stack *ret);
/* Every minute or so: forget mappings and images that are not in use. */
void cpu_sampler_sweep(struct cpu_sampler *s);

/* Unwind tables that are wanted and not there yet. */
size_t cpu_sampler_pending(const struct cpu_sampler *s);
/* The kernel's side, for its counters and for those who are wanted. */
const struct oncpu *cpu_sampler_oncpu(const struct cpu_sampler *s);
/* Memory of the mappings. */
size_t cpu_sampler_address_space_bytes(const struct cpu_sampler *s);
/* A metric_collect_fn. */
void cpu_sampler_collect(void *ctx, struct metric_sink *sink);

#endif
