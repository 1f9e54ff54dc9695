// SPDX-License-Identifier: Apache-2.0
#include "cpuprofiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/worker.h"
#include "cpusampler.h"
#include "discovery/discovery.h"
#include "discovery/owner.h"
#include "profile/fold.h"
#include "profile/oncpu.h"
#include "report/cpu.h"
#include "report/series.h"
#include "symbolize/symbolizer.h"

/* Reports waiting for the worker: a window's series, and as many again if it falls behind. */
#define CPU_PROFILER_QUEUE_MAX	 ((size_t)2 * SERIES_MAX)
/* Ceilings of one profile: Pyroscope refuses more samples, and more than 4 MiB before compression.
 */
#define CPU_PROFILER_SAMPLES_MAX 16000
#define CPU_PROFILER_PPROF_MAX	 (4u << 20)

/* A process's mappings are read when its first sample is handed over: one that ends before that has
 * stacks without names. A tick costs a few system calls. */
#define CPU_PROFILER_TICK_NS NSEC_PER_SEC

/* What became of samples on this side of the kernel, and of reports. */
enum cpu_outcome {
	CPU_SAMPLES_FOLDED,
	CPU_SAMPLES_FILTERED,	/* of what is not to be profiled */
	CPU_SAMPLES_LOST,	/* a ceiling of the window, or no memory */
	CPU_SAMPLES_LEFT_OUT,	/* a ceiling of the profile */
	CPU_SAMPLES_UNREPORTED, /* their report was refused or failed */
	CPU_OUTCOME_MAX,
};

struct cpu_profiler {
	struct cpu_profiler_opts opts;
	struct cpu_sampler *sampler;
	struct series_table *series;
	struct series_table *away; /* off the CPUs; NULL: not wanted */
	struct worker *worker;
	struct symbolizer *symbolizer; /* the worker's */
	uint64_t outcomes[CPU_OUTCOME_MAX];
	uint64_t n_places;
	uint64_t n_unnamed;
	size_t symbol_bytes; /* as the last report left it */
	uint64_t window_start_ns;
	uint64_t window_duration_ns;
};

/* One series on its way through the worker. */
struct cpu_job {
	struct work work;
	struct cpu_profiler *profiler;
	struct fold *fold;
	struct cpu_report_opts opts;
	struct cpu_report_stats stats;
	size_t symbol_bytes;
	struct buf pprof;
	int result;
	struct profile *profile; /* all but the bytes */
	uint64_t n_samples;
};

static void cpu_job_free(struct cpu_job *job)
{
	if (!job)
		return;
	fold_free(job->fold);
	buf_deinit(&job->pprof);
	profile_free(job->profile);
	free(job);
}

DEFINE_CLEANUP(struct cpu_job *, cpu_job_freep, cpu_job_free);

/* On the worker's thread: touches the job and the symbolizer alone. */
static void cpu_job_run(struct work *work)
{
	struct cpu_job *job = container_of(work, struct cpu_job, work);
	const struct cpu_report_part part = {.fold = job->fold};

	job->result = cpu_report(&part, 1, job->profiler->symbolizer, &job->opts, &job->pprof,
				 &job->stats);
	symbolizer_release(job->profiler->symbolizer);
	job->symbol_bytes = symbolizer_bytes(job->profiler->symbolizer);
}

static void cpu_job_done(struct work *work)
{
	_cleanup_(cpu_job_freep) struct cpu_job *job = container_of(work, struct cpu_job, work);
	struct cpu_profiler *p = job->profiler;

	if (work->cancelled || job->result) {
		p->outcomes[CPU_SAMPLES_UNREPORTED] += job->n_samples;
		return;
	}
	p->symbol_bytes = job->symbol_bytes;
	p->outcomes[CPU_SAMPLES_LEFT_OUT] += job->stats.n_left_out;
	p->n_places += job->stats.n_places;
	p->n_unnamed += job->stats.n_unnamed;
	job->profile->pprof_len = job->pprof.len;
	job->profile->pprof = buf_take(&job->pprof);
	p->opts.out(p->opts.ctx, take_ptr(job->profile));
}

static int cpu_job_new(struct cpu_profiler *p, struct series *series, enum profile_kind kind,
		       struct cpu_job **ret)
{
	_cleanup_(cpu_job_freep) struct cpu_job *job = calloc(1, sizeof(*job));

	if (!job)
		return -ENOMEM;
	job->profile = calloc(1, sizeof(*job->profile));
	if (!job->profile)
		return -ENOMEM;
	job->work = (struct work){.run = cpu_job_run, .done = cpu_job_done};
	job->profiler = p;
	job->opts = (struct cpu_report_opts){
		.kind = kind == PROFILE_CPU ? CPU_REPORT_TIME : CPU_REPORT_AWAY,
		.period = kind == PROFILE_CPU ? cpu_profiler_period_ns(p) : 1,
		.start_ns = p->window_start_ns,
		.duration_ns = p->window_duration_ns,
		.max_samples = CPU_PROFILER_SAMPLES_MAX,
		.max_bytes = CPU_PROFILER_PPROF_MAX,
	};
	job->n_samples = series->n_window;
	buf_init(&job->pprof, CPU_PROFILER_PPROF_MAX);
	job->profile->kind = kind;
	job->profile->start_ns = p->window_start_ns;
	job->profile->duration_ns = p->window_duration_ns;
	if (labels_copy(&series->labels, &job->profile->labels))
		return -ENOMEM;
	job->fold = take_ptr(series->fold);
	*ret = take_ptr(job);
	return 0;
}

static void report_series(struct cpu_profiler *p, struct series *series, enum profile_kind kind)
{
	_cleanup_(cpu_job_freep) struct cpu_job *job = NULL;

	if (cpu_job_new(p, series, kind, &job) || worker_submit(p->worker, &job->work)) {
		p->outcomes[CPU_SAMPLES_UNREPORTED] += series->n_window;
		return;
	}
	(void)take_ptr(job);
}

static void on_series_end(void *ctx, struct series *series)
{
	report_series(ctx, series, PROFILE_CPU);
}

static void on_away_end(void *ctx, struct series *series)
{
	report_series(ctx, series, PROFILE_OFF_CPU);
}

void cpu_profiler_end_window(struct cpu_profiler *p, uint64_t start_ns, uint64_t duration_ns)
{
	p->window_start_ns = start_ns;
	p->window_duration_ns = duration_ns;
	series_end_window(p->series, on_series_end, p);
	if (p->away)
		series_end_window(p->away, on_away_end, p);
	cpu_sampler_sweep(p->sampler);
}

/* @value: what the sample stands for. */
static void take(struct cpu_profiler *p, struct series_table *series, const struct sample *sample,
		 uint64_t value)
{
	_cleanup_(cpu_stack_deinit) struct cpu_stack stack = {.n = 0};
	const struct owner *owner;

	owner = discovery_owner(p->opts.discovery, sample->cgroup_id, sample->cgroup_v1_id,
				&sample->pid, sample->comm);
	if (!owner) {
		p->outcomes[CPU_SAMPLES_FILTERED] += sample->count;
		return;
	}
	if (cpu_sampler_resolve(p->sampler, sample, &stack) ||
	    series_add(series, owner->key, &owner->labels, stack.frames, stack.return_address,
		       stack.n, sample->count, value)) {
		p->outcomes[CPU_SAMPLES_LOST] += sample->count;
		return;
	}
	p->outcomes[CPU_SAMPLES_FOLDED] += sample->count;
}

static void on_sample(void *ctx, const struct sample *sample)
{
	struct cpu_profiler *p = ctx;

	take(p, p->series, sample, sample->count * cpu_profiler_period_ns(p));
}

static void on_away(void *ctx, const struct sample *sample)
{
	struct cpu_profiler *p = ctx;

	take(p, p->away, sample, sample->total_ns);
}

void cpu_profiler_finish(struct cpu_profiler *p)
{
	cpu_sampler_finish(p->sampler);
}

static int cpu_profiler_init(struct cpu_profiler *p, struct bpfobj_why *ret_why)
{
	const struct cpu_profiler_opts *o = &p->opts;
	const struct cpu_sampler_opts sampler_opts = {
		.loop = o->loop,
		.proc = o->proc,
		.sys = o->sys,
		.v1 = discovery_v1_controller(o->discovery),
		.rate_hz = o->rate_hz,
		.kernel_stacks = o->kernel_stacks,
		.unwind = o->unwind,
		.table_bytes = o->table_bytes,
		.rows_dir = o->rows_dir,
		.table_cache = o->table_cache,
		.unsafe_kernel = o->unsafe_kernel,
		.interval_ns = CPU_PROFILER_TICK_NS,
		.fn = on_sample,
		.off_cpu = o->off_cpu,
		.off_fn = on_away,
		.ctx = p,
	};
	const struct symbolizer_opts symbolizer_opts = {.proc = o->proc,
							.cache_bytes = o->symbol_bytes};
	int r = series_table_new(&p->series);

	if (!r && o->off_cpu > 0)
		r = series_table_new(&p->away);
	if (!r)
		r = symbolizer_new(&symbolizer_opts, &p->symbolizer);
	if (!r)
		r = worker_new(o->loop, "report", CPU_PROFILER_QUEUE_MAX, &p->worker);
	if (!r)
		r = cpu_sampler_new(&sampler_opts, ret_why, &p->sampler);
	return r;
}

int cpu_profiler_new(const struct cpu_profiler_opts *opts, struct bpfobj_why *ret_why,
		     struct cpu_profiler **ret)
{
	struct cpu_profiler *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->opts = *opts;
	r = cpu_profiler_init(p, ret_why);
	if (r)
		cpu_profiler_free(p);
	else
		*ret = p;
	return r;
}

void cpu_profiler_free(struct cpu_profiler *p)
{
	if (!p)
		return;
	cpu_sampler_free(p->sampler);
	worker_free(p->worker);
	symbolizer_free(p->symbolizer);
	series_table_free(p->series);
	series_table_free(p->away);
	free(p);
}

size_t cpu_profiler_pending(const struct cpu_profiler *p)
{
	return worker_pending(p->worker);
}

const struct series *cpu_profiler_series(const struct cpu_profiler *p, const char *owner)
{
	return series_find(p->series, owner);
}

uint64_t cpu_profiler_period_ns(const struct cpu_profiler *p)
{
	return oncpu_period(cpu_sampler_oncpu(p->sampler));
}

struct cpu_profiler_caches cpu_profiler_caches(const struct cpu_profiler *p)
{
	return (struct cpu_profiler_caches){
		.symbol_bytes = p->symbol_bytes,
		.space_bytes = cpu_sampler_space_bytes(p->sampler),
	};
}

void cpu_profiler_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc samples = {
		"podprof_profiled_samples", METRIC_COUNTER,
		"Samples taken over from the kernel, by what became of them.", NULL};
	static const struct metric_family_desc places = {
		"podprof_symbolized_places", METRIC_COUNTER,
		"Distinct addresses looked up, by whether a name was found.", NULL};
	static const char *const names[CPU_OUTCOME_MAX] = {
		[CPU_SAMPLES_FOLDED] = "folded",
		[CPU_SAMPLES_FILTERED] = "filtered",
		[CPU_SAMPLES_LOST] = "lost",
		[CPU_SAMPLES_LEFT_OUT] = "left_out",
		[CPU_SAMPLES_UNREPORTED] = "unreported",
	};
	struct cpu_profiler *p = ctx;

	cpu_sampler_collect(p->sampler, sink);
	series_collect(p->series, sink);
	metric_by_name(sink, &samples, "outcome", p->outcomes, names, CPU_OUTCOME_MAX);
	metric_family(sink, &places);
	metric_u64(sink, p->n_places - p->n_unnamed, &(struct metric_label){"found", "yes"}, 1);
	metric_u64(sink, p->n_unnamed, &(struct metric_label){"found", "no"}, 1);
}
