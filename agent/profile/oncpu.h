/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_ONCPU_H
#define PODPROF_PROFILE_ONCPU_H

/* On-CPU samples: a clock on each CPU triggers a sample, and BPF counts equal stacks. */

#include <stdbool.h>
#include <stdint.h>

#include "base/nsec.h"
#include "profile/bpfobj.h"
#include "profile/sample.h"

struct cgroup_events;
struct cgroup_sampling;
struct event;
struct metric_sink;
struct oncpu;
struct pid_filter;
struct root;
struct stacks;

/* Hz. A higher rate costs more than the samples are worth. The kernel's own limit
 * (kernel.perf_event_max_sample_rate) is 100,000, too much for a whole node. Reached: wrong
 * usage. */
#define ONCPU_RATE_MAX 10000

/**
 * struct oncpu_opts - options of oncpu_new()
 * @rate_hz:       samples per second and CPU, 1 to ONCPU_RATE_MAX; a prime avoids lockstep with
 *                 periodic programs
 * @event:         trigger in place of the clock; NULL: a clock, at @rate_hz
 * @period:        events per sample; for @event only
 * @scope:         the sampled processes; with a scope other than all, nothing is sampled before an
 *                 entry in oncpu_pid_filter(), or for cgroups in oncpu_cgroup_sampling()
 * @kernel_stacks: include the kernel half of each stack
 * @unwind:        method of the walk
 * @thread_names:  threads of one stack and different names are different samples
 * @task_names:    the same for tasks
 * @stack_dumps:   dump stacks without unwind tables in the kernel, for
 *                 stack_dumps_new(oncpu_stack_dumps())
 * @offcpu:        also load the off-CPU programs, for offcpu_new()
 * @v1:            the version 1 hierarchy of a sample's second cgroup id
 * @interval_ns:   time between drains, shorter when the maps fill; 0: ONCPU_INTERVAL_NS
 * @unsafe_kernel: load even if a read of user memory can hang the machine (profile/kernel.h)
 * @proc, @sys:    /proc and /sys; borrowed, must outlive the sampler
 */
struct oncpu_opts {
	unsigned int rate_hz;
	const struct event *event;
	uint64_t period;
	enum settings_scope scope;
	bool kernel_stacks;
	enum settings_unwind unwind;
	bool thread_names;
	bool task_names;
	bool stack_dumps;
	bool offcpu;
	enum settings_v1 v1;
	uint64_t interval_ns;
	bool unsafe_kernel;
	const struct root *proc;
	const struct root *sys;
};

#define ONCPU_INTERVAL_NS (3 * NSEC_PER_SEC)

/* Load, attach, and start sampling. 0, or -errno with *@ret_why set (-ENOMEM without). */
int oncpu_new(const struct oncpu_opts *opts, struct bpfobj_why *ret_why, struct oncpu **ret);
void oncpu_free(struct oncpu *oc);

/* Follow CPU hot-plug: call after a CPU came or went, and once more a second later. It reads each
 * event, which interrupts all CPUs. 0 or -errno. */
int oncpu_follow(struct oncpu *oc);
/* Whether each online CPU of the last look has its event. */
bool oncpu_whole(const struct oncpu *oc);
/**
 * oncpu_tick() - oncpu_follow(), and half a drain of the counted stacks, on one thread
 * @fn: called for each distinct stack, with its count since the last drain
 *
 * A drain takes two ticks: the first switches the generation, the second delivers the samples.
 * After each tick, oncpu_interval_ns() gives the time until the next: a few milliseconds between
 * the two ticks of a drain, otherwise an interval. The interval shrinks when the maps fill. A
 * sample is at most an interval old when @fn gets it.
 *
 * Return: 0, or -errno (after delivery of all entries read before the error).
 */
int oncpu_tick(struct oncpu *oc, sample_fn fn, void *ctx);
/* Stop sampling and deliver the remaining samples. Only oncpu_collect() and oncpu_free() may
 * follow. */
int oncpu_finish(struct oncpu *oc, sample_fn fn, void *ctx);

/* The unwind maps of the walk; the sampler owns the descriptors. */
struct bpfobj_unwind oncpu_unwind(const struct oncpu *oc);
/* The stack dumps; the sampler owns the descriptors. */
struct bpfobj_stack_dumps oncpu_stack_dumps(const struct oncpu *oc);
/* Count a sample with a stack dump, after its walk (stacks_walked()). */
void oncpu_walked(struct oncpu *oc, const struct sample *sample);
/* Stop sampling without a drain: no program runs after the return. @oc may be NULL. */
void oncpu_stop(struct oncpu *oc);
/* Time from this tick to the next, in ns. */
uint64_t oncpu_interval_ns(const struct oncpu *oc);
/* The value of one sample: CPU time in ns with a clock, otherwise events. */
uint64_t oncpu_period(const struct oncpu *oc);
/* The pid filter; NULL if the scope is not by process. */
struct pid_filter *oncpu_pid_filter(const struct oncpu *oc);
/* The share of samples of each cgroup, on-CPU and off-CPU. */
struct cgroup_sampling *oncpu_cgroup_sampling(const struct oncpu *oc);
/* The cgroup directories created since the start; NULL without kernel support or with a pid
 * filter. */
struct cgroup_events *oncpu_cgroup_events(const struct oncpu *oc);
/* Number of CPUs with an open event. */
size_t oncpu_n_cpus(const struct oncpu *oc);
/* Error message of the last event that failed to open; "": none. */
const char *oncpu_why(const struct oncpu *oc);

/* Samples since the start by outcome (bpf/shared/sample.h). 0 or -errno. */
int oncpu_stats(const struct oncpu *oc, uint64_t ret[], size_t n);
/* The loaded program, for bpfobj_cost(), and its object. */
int oncpu_program(const struct oncpu *oc);
struct bpfobj *oncpu_object(const struct oncpu *oc);
/* The drain of the samples, for a thread of its own, and for stacks_collect(). */
struct stacks *oncpu_stacks(const struct oncpu *oc);
uint64_t oncpu_map_bytes(const struct oncpu *oc);

/* A metric_collect_fn: podprof_bpf_runs, _run_seconds and _map_bytes, podprof_sampled_cpus,
 * podprof_perf_events, and the metrics of cgroup_sampling_collect() and cgroup_events_collect(). */
void oncpu_collect(void *oncpu, struct metric_sink *sink);

#endif
