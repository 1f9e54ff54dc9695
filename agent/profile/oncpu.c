// SPDX-License-Identifier: Apache-2.0
/*
 * The user-space half of bpf/oncpu.bpf.c: loading, a clock for each CPU, and access to the maps
 * (stacks.c).
 */
#include "profile/oncpu.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "profile/cgroup_events.h"
#include "profile/cgroup_sampling.h"
#include "profile/event.h"
#include "profile/offcpu.h"
#include "profile/perf_events.h"
#include "profile/pid_filter.h"
#include "profile/stack_dump.h"
#include "profile/stacks.h"
#include "shared/sample.h"

/* Stacks in one generation. All samples of an interval may have different stacks. Above the
 * ceilings the interval becomes shorter, and stacks without room are counted as lost_full. Kernel
 * memory at the ceilings: 2 x (16384 x 0.44 + 2048 x 1.4 + 256 x 5.2) KB = 23 MB. */
#define ONCPU_SMALL_MIN 256
/* Stacks of up to 40 frames between two drains. Reached:
 * `podprof_samples_total{outcome="lost_full"}`. */
#define ONCPU_SMALL_MAX 16384
#define ONCPU_LARGE_MIN 128
/* Deeper stacks between two drains. Reached: `podprof_samples_total{outcome="lost_full"}`. */
#define ONCPU_LARGE_MAX 2048
#define ONCPU_DEEP_MIN	32
/* Stacks of more than 160 words in a generation, 5 KB each: one for each sample of the shortest
 * interval, up to this ceiling. Reached: the interval becomes shorter, down to 100 ms, and
 * `podprof_samples_total{outcome="lost_full"}`. */
#define ONCPU_DEEP_MAX	256

struct oncpu {
	struct bpfobj *obj;
	struct bpfobj_oncpu bpf;
	struct stacks *stacks;
	struct perf_events perf_events;
	struct pid_filter *pid_filter;
	struct cgroup_sampling *cgroup_sampling;
	struct cgroup_events *cgroup_events;
	const struct root *proc;
	uint64_t map_bytes;
	struct bpfobj_why why;
};

DEFINE_CLEANUP(struct oncpu *, oncpu_freep, oncpu_free);

/* ---------------------------------------------------------------- sizes */

static uint64_t clamp(uint64_t x, uint64_t min, uint64_t max)
{
	return x < min ? min : x > max ? max : x;
}

/* How often events other than a clock's come nobody knows: room for as many as there may be. */
static uint64_t samples_per_second(const struct oncpu_opts *opts, size_t n_cpus)
{
	return (uint64_t)(opts->event ? ONCPU_RATE_MAX : opts->rate_hz) * n_cpus;
}

/* Samples of all CPUs in an interval. */
static uint64_t samples_in(const struct oncpu_opts *opts, size_t n_cpus, uint64_t interval_ns)
{
	return samples_per_second(opts, n_cpus) * (interval_ns / NSEC_PER_MSEC) / 1000 + n_cpus;
}

/* Entries of the small class: twice the samples of an interval, since a tick may be late. Returns
 * the interval, shorter than requested if the maps would be too small. */
static uint64_t choose_sizes(const struct oncpu_opts *opts, size_t n_cpus, struct bpfobj_sizes *ret)
{
	uint64_t interval_ns = opts->interval_ns ? opts->interval_ns : ONCPU_INTERVAL_NS;
	uint64_t per_second = samples_per_second(opts, n_cpus);
	uint64_t n, deep;

	if (samples_in(opts, n_cpus, interval_ns) > ONCPU_SMALL_MAX)
		interval_ns = NSEC_PER_SEC * ONCPU_SMALL_MAX / per_second;
	if (interval_ns < STACKS_INTERVAL_MIN_NS)
		interval_ns = STACKS_INTERVAL_MIN_NS;
	n = samples_in(opts, n_cpus, interval_ns);
	deep = samples_in(opts, n_cpus, STACKS_INTERVAL_MIN_NS);
	if (deep < n / 8)
		deep = n / 8; /* fewer stacks are deep, and a full class shortens the interval */
	*ret = (struct bpfobj_sizes){
		.small = (uint32_t)clamp(2 * n, ONCPU_SMALL_MIN, ONCPU_SMALL_MAX),
		.large = (uint32_t)clamp(n, ONCPU_LARGE_MIN, ONCPU_LARGE_MAX),
		.deep = (uint32_t)clamp(deep, ONCPU_DEEP_MIN, ONCPU_DEEP_MAX),
	};
	return interval_ns;
}

/* ---------------------------------------------------------------- starting */

_Static_assert(SETTINGS_PIDNS_INIT == PID_NAMESPACE_FIRST, "the same namespace");

/* If the namespace is unknown, assume the first one: a foreign /proc is the node's. */
static uint32_t pidns_of(const struct root *proc)
{
	const uint32_t inum = pid_namespace(proc);

	return inum ? inum : SETTINGS_PIDNS_INIT;
}

static size_t count_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (size_t)n : 1;
}

static int load(struct oncpu *oc, const struct oncpu_opts *opts, struct bpfobj_why *ret_why)
{
	const unsigned int n_cpus = perf_events_possible(opts->sys);
	const int n_possible = libbpf_num_possible_cpus();
	struct bpfobj_sizes sizes;
	const uint64_t interval_ns = choose_sizes(opts, count_cpus(), &sizes);
	const struct bpfobj_opts obj_opts = {
		.settings =
			{
				.v1_controller = opts->v1,
				.kernel_stacks = opts->kernel_stacks,
				.unwind = opts->unwind,
				.pidns_inum = pidns_of(opts->proc),
				.scope = opts->scope,
				.thread_names = opts->thread_names,
				.task_names = opts->task_names,
				.dumps_per_second =
					opts->stack_dumps ? stack_dumps_per_cpu(count_cpus()) : 0,
			},
		.oncpu = sizes,
		.offcpu = opts->offcpu ? OFFCPU_SIZES : (struct bpfobj_sizes){0},
		.stack_dump_bytes = opts->stack_dumps ? STACK_DUMPS_RING_BYTES : 0,
		.n_cpus = n_cpus ? n_cpus : (uint32_t)(n_possible > 0 ? n_possible : 1),
		.unsafe_kernel = opts->unsafe_kernel,
		.proc = opts->proc,
		.sys = opts->sys,
	};
	struct bpfobj_cgroup_sampling cgroup_sampling;
	int r;

	r = bpfobj_new(&obj_opts, ret_why, &oc->obj);
	if (r < 0)
		return r;
	oc->bpf = bpfobj_oncpu(oc->obj);
	oc->map_bytes = bpfobj_map_bytes(oc->obj, opts->proc);
	cgroup_sampling = bpfobj_cgroup_sampling(oc->obj);
	r = cgroup_sampling_new(&cgroup_sampling, &oc->cgroup_sampling);
	if (r < 0)
		return r;
	return stacks_new("cpu", &oc->bpf.stacks, &sizes, interval_ns, &oc->stacks);
}

static void note_failure(struct oncpu *oc)
{
	if (oc->perf_events.error)
		bpfobj_explain_here(oc->perf_events.attaching ? BPFOBJ_ATTACH : BPFOBJ_EVENT,
				    oc->perf_events.error, oc->perf_events.sys, &oc->why);
}

/* Open the clocks of all CPUs. Profiling requires at least one. */
static int start(struct oncpu *oc, const struct oncpu_opts *opts, struct bpfobj_why *ret_why)
{
	int r;

	perf_events_init(&oc->perf_events, opts->event ? opts->event : event_clock(),
			 opts->event ? opts->period : NSEC_PER_SEC / opts->rate_hz, oc->bpf.program,
			 opts->sys);
	r = perf_events_follow(&oc->perf_events);
	if (r < 0)
		return r;
	if (r > 0) {
		snprintf(ret_why->text, sizeof(ret_why->text),
			 "finding the CPUs failed (%s); the host's /sys must be mounted with "
			 "devices/system/cpu/online in it",
			 perf_events_outcome_name(r));
		return -ENOENT;
	}
	note_failure(oc);
	if (perf_events_n_open(&oc->perf_events))
		return 0;
	*ret_why = oc->why;
	return oc->perf_events.error ? oc->perf_events.error : -ENODEV;
}

static int start_pid_filter(struct oncpu *oc, const struct oncpu_opts *opts,
			    struct bpfobj_why *ret_why)
{
	const struct bpfobj_pid_filter parts = bpfobj_pid_filter(oc->obj);
	int r;

	if (opts->scope != SETTINGS_SCOPE_PROCESSES)
		return 0;
	r = pid_filter_new(&parts, &oc->pid_filter);
	if (r < 0)
		bpfobj_explain_here(BPFOBJ_FOLLOW, r, opts->sys, ret_why);
	return r;
}

/* Without this program, containers that live for milliseconds stay unknown. Sampling continues. */
static int start_cgroup_events(struct oncpu *oc, const struct oncpu_opts *opts)
{
	const struct bpfobj_cgroup_events parts = bpfobj_cgroup_events(oc->obj);
	struct bpfobj_why why;
	int r;

	if (opts->scope == SETTINGS_SCOPE_PROCESSES)
		return 0;
	r = cgroup_events_new(&parts, &oc->cgroup_events);
	if (r < 0) {
		bpfobj_explain_here(BPFOBJ_CGROUP_EVENTS, r, opts->sys, &why);
		log_warn("containers with a life of milliseconds will have no names",
			 log_str("why", why.text));
	}
	return r == -ENOMEM ? r : 0;
}

int oncpu_new(const struct oncpu_opts *opts, struct bpfobj_why *ret_why, struct oncpu **ret)
{
	_cleanup_(oncpu_freep) struct oncpu *oc = NULL;
	int r;

	if (opts->event ? !opts->period : opts->rate_hz < 1 || opts->rate_hz > ONCPU_RATE_MAX)
		return -EINVAL;
	oc = calloc(1, sizeof(*oc));
	if (!oc)
		return -ENOMEM;
	oc->proc = opts->proc;
	r = load(oc, opts, ret_why);
	if (r < 0)
		return r;
	r = start_pid_filter(oc, opts, ret_why);
	if (r < 0)
		return r;
	r = start_cgroup_events(oc, opts);
	if (r < 0)
		return r;
	r = start(oc, opts, ret_why);
	if (r < 0)
		return r;
	*ret = take_ptr(oc);
	return 0;
}

void oncpu_free(struct oncpu *oc)
{
	if (!oc)
		return;
	perf_events_deinit(&oc->perf_events);
	pid_filter_free(oc->pid_filter);
	cgroup_sampling_free(oc->cgroup_sampling);
	cgroup_events_free(oc->cgroup_events);
	stacks_free(oc->stacks);
	bpfobj_unref(oc->obj);
	free(oc);
}

int oncpu_follow(struct oncpu *oc)
{
	int r = perf_events_follow(&oc->perf_events);

	if (r < 0)
		return r;
	note_failure(oc);
	return 0;
}

bool oncpu_whole(const struct oncpu *oc)
{
	return perf_events_whole(&oc->perf_events);
}

int oncpu_tick(struct oncpu *oc, sample_fn fn, void *ctx)
{
	int r = oncpu_follow(oc);

	return r ? r : stacks_tick(oc->stacks, fn, ctx);
}

void oncpu_stop(struct oncpu *oc)
{
	if (oc)
		perf_events_deinit(&oc->perf_events);
}

int oncpu_finish(struct oncpu *oc, sample_fn fn, void *ctx)
{
	perf_events_deinit(&oc->perf_events);
	return stacks_finish(oc->stacks, fn, ctx);
}

/* ---------------------------------------------------------------- telling */

struct bpfobj_unwind oncpu_unwind(const struct oncpu *oc)
{
	return bpfobj_unwind(oc->obj);
}

struct bpfobj_stack_dumps oncpu_stack_dumps(const struct oncpu *oc)
{
	return bpfobj_stack_dumps(oc->obj);
}

void oncpu_walked(struct oncpu *oc, const struct sample *sample)
{
	stacks_walked(oc->stacks, sample);
}

uint64_t oncpu_interval_ns(const struct oncpu *oc)
{
	return stacks_interval_ns(oc->stacks, 1);
}

uint64_t oncpu_period(const struct oncpu *oc)
{
	return oc->perf_events.period;
}

struct pid_filter *oncpu_pid_filter(const struct oncpu *oc)
{
	return oc->pid_filter;
}

struct cgroup_sampling *oncpu_cgroup_sampling(const struct oncpu *oc)
{
	return oc->cgroup_sampling;
}

struct cgroup_events *oncpu_cgroup_events(const struct oncpu *oc)
{
	return oc->cgroup_events;
}

size_t oncpu_n_cpus(const struct oncpu *oc)
{
	return perf_events_n_open(&oc->perf_events);
}

const char *oncpu_why(const struct oncpu *oc)
{
	return oc->why.text;
}

int oncpu_program(const struct oncpu *oc)
{
	return oc->bpf.program;
}

struct bpfobj *oncpu_object(const struct oncpu *oc)
{
	return oc->obj;
}

uint64_t oncpu_map_bytes(const struct oncpu *oc)
{
	return oc->map_bytes;
}

struct stacks *oncpu_stacks(const struct oncpu *oc)
{
	return oc->stacks;
}

int oncpu_stats(const struct oncpu *oc, uint64_t ret[], size_t n)
{
	return stacks_stats(oc->stacks, ret, n);
}

static void collect_perf_events(const struct oncpu *oc, struct metric_sink *sink)
{
	static const struct metric_family_desc cpus = {"podprof_sampled_cpus", METRIC_GAUGE,
						       "Sampled CPUs.", NULL};
	static const struct metric_family_desc perf_events = {
		"podprof_perf_events", METRIC_COUNTER, "Perf events for CPUs, by outcome.", NULL};

	metric_family(sink, &cpus);
	metric_u64(sink, perf_events_n_open(&oc->perf_events), NULL, 0);
	metric_family(sink, &perf_events);
	metric_u64(sink, oc->perf_events.opened, &(struct metric_label){"outcome", "opened"}, 1);
	metric_u64(sink, oc->perf_events.failed, &(struct metric_label){"outcome", "failed"}, 1);
}

static void collect_cost(const struct oncpu *oc, struct metric_sink *sink)
{
	static const struct metric_family_desc runs = {"podprof_bpf_runs", METRIC_COUNTER,
						       "Runs of podprof's BPF programs.", NULL};
	static const struct metric_family_desc seconds = {"podprof_bpf_run_seconds", METRIC_COUNTER,
							  "Time of podprof's BPF programs.",
							  "seconds"};
	static const struct metric_label label = {"program", "oncpu_sample"};
	struct bpfobj_cost cost;

	/* Nothing is counted unless kernel.bpf_stats_enabled is on. */
	if (bpfobj_cost(oc->bpf.program, &cost) < 0 || !cost.runs)
		return;
	metric_family(sink, &runs);
	metric_u64(sink, cost.runs, &label, 1);
	metric_family(sink, &seconds);
	metric_double(sink, (double)cost.run_ns / (double)NSEC_PER_SEC, &label, 1);
}

void oncpu_collect(void *oncpu, struct metric_sink *sink)
{
	static const struct metric_family_desc bytes = {"podprof_bpf_map_bytes", METRIC_GAUGE,
							"Kernel memory of the BPF maps.", "bytes"};
	const struct oncpu *oc = oncpu;

	collect_cost(oc, sink);
	metric_family(sink, &bytes);
	metric_u64(sink, oc->map_bytes, NULL, 0);
	collect_perf_events(oc, sink);
	cgroup_sampling_collect(oc->cgroup_sampling, sink);
	if (oc->cgroup_events)
		cgroup_events_collect(oc->cgroup_events, sink);
}
