/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_SAMPLER_H
#define PODPROF_CPU_SAMPLER_H

/*
 * From the kernel's samples to stacks of places in images, for the agent's CPU profiler and
 * `podprof record`. The intervals between drains are short, so most processes are still alive when
 * the sampler reads their mappings.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "cpu/fold.h"
#include "discovery/hierarchy.h"
#include "procmap/image.h"
#include "profile/bpfobj.h"
#include "profile/sample.h"
#include "shared/sample.h"

struct discovery;
struct event;
struct loop;
struct metric_sink;
struct oncpu;
struct root;
struct runtime;
struct cpu_sampler;

/* Frames of a stack: both halves. Reached:
 * `podprof_samples_total{outcome="truncated_max_frames"}`. */
#define CPU_STACK_FRAMES_MAX (SAMPLE_USER_FRAMES_MAX + SAMPLE_KERNEL_FRAMES_MAX)

/* A sample's stack as places, innermost first: kernel frames, then user frames. A frame has the
 * kind of its image. Owns references to the images. */
struct cpu_stack {
	struct frame frames[CPU_STACK_FRAMES_MAX];
	uint8_t return_address[CPU_STACK_FRAMES_MAX];
	size_t n;
	char thread[PID_COMM_MAX];    /* as in struct sample */
	char task[SAMPLE_TASK_BYTES]; /* likewise */
	bool is_truncated;	      /* outer frames are missing */
	bool is_lost;		      /* sample_is_lost() */
};

void cpu_stack_deinit(struct cpu_stack *stack);

/* Borrows from @stack. */
static inline struct fold_sample cpu_stack_folded(const struct cpu_stack *stack)
{
	return (struct fold_sample){
		.frames = stack->frames,
		.return_address = stack->return_address,
		.n_frames = stack->n,
		.thread = stack->thread,
		.task = stack->task,
		.is_truncated = stack->is_truncated,
		.is_lost = stack->is_lost,
	};
}

/* At the end: the longest wait for files and unwind tables of the last stacks. */
#define CPU_SAMPLER_LATE_NS (5 * NSEC_PER_SEC)

/* Default ceiling of unwind tables: some thousand libraries. */
#define CPU_SAMPLER_TABLE_BYTES ((size_t)32 << 20)

/**
 * struct cpu_sampler_opts - borrowed until cpu_sampler_free()
 * @discovery:   for the owners of samples (base/share.h); NULL: the cgroups
 * @v1:          the version 1 hierarchy of the samples' second cgroup id
 * @interval_ns: time between drains. The names of a process that ends before its first drain depend
 *               on the events and the stack dumps
 * @idle_ns:     longest time between drains while there are no samples; 0: always @interval_ns
 * @event_queue_bytes: as @queue_bytes in sideband_opts
 * @unwind:      method of the walk
 * @table_bytes: ceiling of kernel memory for unwind tables; 0 is CPU_SAMPLER_TABLE_BYTES
 * @all_tables:  as in unwind_publisher_opts
 * @runtimes:    @n_runtimes readers of language runtimes, as in runtimes_opts; NULL: podprof's own
 * @urgent_runtimes: as @urgent of runtime_loader_new()
 * @thread_names, @task_names: as in oncpu_opts
 * @off_cpu:     share of sampled task switches, up to 1; 0: no off-CPU samples
 * @off_fn:      as @fn, for off-CPU stacks
 * @fn:          called on the loop for each distinct stack of an interval, and for each stack dump
 * @drained:     called after the stacks of an interval, which ended at @until_ns (boot clock);
 *               NULL: not called. Stacks that wait for mappings or tables come later
 */
struct cpu_sampler_opts {
	struct loop *loop;
	const struct root *proc;
	const struct root *sys;
	struct discovery *discovery;
	enum controller v1;
	unsigned int rate_hz; /* this, and the next six: as in oncpu_opts */
	const struct event *event;
	uint64_t period;
	enum settings_scope scope;
	bool kernel_stacks;
	enum settings_unwind unwind;
	bool unsafe_kernel;
	size_t table_bytes;
	bool all_tables;
	const struct runtime *const *runtimes;
	size_t n_runtimes;
	bool urgent_runtimes;
	bool thread_names;
	bool task_names;
	uint64_t interval_ns;
	uint64_t idle_ns;
	size_t event_queue_bytes;
	double off_cpu;
	sample_fn off_fn;
	sample_fn fn;
	void (*drained)(void *ctx, bool off_cpu, uint64_t until_ns);
	void *ctx;
};

/* Starts sampling. 0, or -errno with *@ret_why set. */
int cpu_sampler_new(const struct cpu_sampler_opts *opts, struct bpfobj_why *ret_why,
		    struct cpu_sampler **ret);
void cpu_sampler_free(struct cpu_sampler *s);
/* Asks the drain thread to end the present interval of both kinds now. Does not wait. */
void cpu_sampler_drain(struct cpu_sampler *s);
/* Stop sampling and take the remaining samples. Waits at most CPU_SAMPLER_LATE_NS, outside of the
 * loop; then all samples are delivered as they are. */
void cpu_sampler_finish(struct cpu_sampler *s);

/* The places of a sample, for use inside @fn or @off_fn. @ret must be empty; call
 * cpu_stack_deinit() in any case, also after an error. 0 or -ENOMEM. */
int cpu_sampler_resolve(struct cpu_sampler *s, const struct sample *sample, struct cpu_stack *ret);
/* Free unused mappings and images, once a window. */
void cpu_sampler_sweep(struct cpu_sampler *s);

/* The caller has made @child by fork(), and the child has executed nothing yet
 * (address_space_cache_child()): the first samples of its program have names. */
void cpu_sampler_child(struct cpu_sampler *s, const struct pid_id *child);
/* Number of requested unwind tables not yet made, of files not yet opened, and of walks of runtimes
 * not yet loaded. */
size_t cpu_sampler_pending(const struct cpu_sampler *s);
/* Number of walks of language runtimes that are being loaded, or will be; of cpu_sampler_pending().
 */
size_t cpu_sampler_loading(const struct cpu_sampler *s);
/* Number of tasks with the threads of language runtimes: processes and names to read. */
size_t cpu_sampler_reading(const struct cpu_sampler *s);
/* Number of files not yet opened. */
size_t cpu_sampler_opening(const struct cpu_sampler *s);
/* Waits a limited time for these files and settles the frames. For tests. */
void cpu_sampler_settle(struct cpu_sampler *s, struct cpu_stack *stack);
/* Number of drains of on-CPU samples so far. */
uint64_t cpu_sampler_drains(const struct cpu_sampler *s);
/* The on-CPU sampler, for its counters and its pid filter. */
const struct oncpu *cpu_sampler_oncpu(const struct cpu_sampler *s);
/* Memory of the mappings. */
size_t cpu_sampler_address_space_bytes(const struct cpu_sampler *s);
/* The mappings, for pages. */
const struct address_space_cache *cpu_sampler_address_spaces(const struct cpu_sampler *s);
/* A metric_collect_fn. */
void cpu_sampler_collect(void *ctx, struct metric_sink *sink);

#endif
