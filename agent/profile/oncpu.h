/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_ONCPU_H
#define PODPROF_PROFILE_ONCPU_H

/* Samples of what runs on the CPUs, taken by a clock on each and counted by stack in the kernel. */

#include <stdbool.h>
#include <stdint.h>

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

/* Above it the clock's interrupts cost more than they tell; the kernel's own limit
 * (kernel.perf_event_max_sample_rate) is 100,000 but nobody profiles a node with that. */
/* Hz. Reached: wrong usage. */
#define ONCPU_RATE_MAX 10000

/**
 * struct oncpu_opts
 * @rate_hz:       samples per second and CPU, 1 to ONCPU_RATE_MAX; a prime does not fall into step
 *                 with programs that do something so many times a second
 * @event:         what samples are taken by instead of a clock; NULL: a clock, at @rate_hz
 * @period:        events that one sample stands for; for @event only
 * @scope:        whose samples are taken; if not everybody's, nobody's until they are entered in
 *                 oncpu_pid_filter(), or for cgroups in oncpu_cgroup_sampling()
 * @kernel_stacks: with the kernel half of each stack
 * @unwind:        how callers are found
 * @copies:        stacks that are not to be walked by rows in the kernel are copied out, for
 *                 stack_dumps_new(oncpu_stack_dumps())
 * @offcpu:        load the off-CPU programs, too, for offcpu_new()
 * @v1:            the version 1 hierarchy whose cgroup id a sample carries
 * @interval_ns:   how often samples are handed over, if the maps do; 0 is ONCPU_INTERVAL_NS
 * @unsafe_kernel: also where reading user memory may hang the machine (profile/kernel.h)
 * @proc, @sys:    /proc and /sys; borrowed, must outlive the sampler
 */
struct oncpu_opts {
	unsigned int rate_hz;
	const struct event *event;
	uint64_t period;
	enum settings_scope scope;
	bool kernel_stacks;
	enum settings_unwind unwind;
	bool stack_dumps;
	bool offcpu;
	enum settings_v1 v1;
	uint64_t interval_ns;
	bool unsafe_kernel;
	const struct root *proc;
	const struct root *sys;
};

#define ONCPU_INTERVAL_NS 3000000000ull

/* Load, attach, and begin to sample. 0, or -errno with *@ret_why set (-ENOMEM without). */
int oncpu_new(const struct oncpu_opts *opts, struct bpfobj_why *ret_why, struct oncpu **ret);
void oncpu_free(struct oncpu *oc);

/**
 * oncpu_tick() - hand over what was counted, and follow CPUs that come and go
 * @fn: called for each distinct stack, with its count since it was last handed over
 *
 * Every other tick hands over. Ask oncpu_interval_ns() after each for the time until the next: a
 * few milliseconds in the middle of it, then an interval, which becomes shorter when the maps are
 * filling. A sample is at most an interval old when it reaches @fn.
 *
 * Return: 0 or -errno (what was read so far has been handed over).
 */
int oncpu_tick(struct oncpu *oc, sample_fn fn, void *ctx);
/* Stop sampling and hand over all that is left. Only oncpu_collect() and oncpu_free() after it. */
int oncpu_finish(struct oncpu *oc, sample_fn fn, void *ctx);

/* What the walker goes by; the descriptors belong to the sampler. */
struct bpfobj_unwind oncpu_unwind(const struct oncpu *oc);
/* What was copied out; the descriptors belong to the sampler. */
struct bpfobj_stack_dumps oncpu_stack_dumps(const struct oncpu *oc);
/* One of those has been walked (stacks_walked()). */
void oncpu_walked(struct oncpu *oc, const struct sample *sample);
/* Stop sampling: when it returns, no program runs. What was counted is lost. NULL is fine. */
void oncpu_stop(struct oncpu *oc);
/* From this tick to the next one. */
uint64_t oncpu_interval_ns(const struct oncpu *oc);
/* What one sample stands for: CPU time in ns with a clock, else events. */
uint64_t oncpu_period(const struct oncpu *oc);
/* The processes whose samples are taken; NULL if it does not go by processes. */
struct pid_filter *oncpu_pid_filter(const struct oncpu *oc);
/* Which share of a cgroup's samples is taken, on and off the CPUs. */
struct cgroup_sampling *oncpu_cgroup_sampling(const struct oncpu *oc);
/* Cgroup directories made since the start; NULL where the kernel does not tell, or only some
 * processes' samples are wanted. */
struct cgroup_events *oncpu_cgroup_events(const struct oncpu *oc);
/* CPUs that have a clock now. */
size_t oncpu_n_cpus(const struct oncpu *oc);
/* Why the last clock that could not be had was refused; "" if there was none. */
const char *oncpu_why(const struct oncpu *oc);

/* How many samples had each outcome (bpf/shared/sample.h) since the start. 0 or -errno. */
int oncpu_stats(const struct oncpu *oc, uint64_t ret[], size_t n);
/* The loaded program, for its cost, and the object that it is in. */
int oncpu_program(const struct oncpu *oc);
const struct bpfobj *oncpu_object(const struct oncpu *oc);
/* What it counts, for stacks_collect(). */
const struct stacks *oncpu_stacks(const struct oncpu *oc);
uint64_t oncpu_map_bytes(const struct oncpu *oc);

/* A metric_collect_fn: podprof_bpf_runs, _run_seconds and _map_bytes, podprof_sampled_cpus,
 * podprof_perf_events, and those of cgroup_sampling_collect() and cgroup_events_collect(). */
void oncpu_collect(void *oncpu, struct metric_sink *sink);

#endif
