// SPDX-License-Identifier: Apache-2.0
#include "cpu/profiler.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/vec.h"
#include "base/worker.h"
#include "cpu/addresses.h"
#include "cpu/filter.h"
#include "cpu/fold.h"
#include "cpu/http.h"
#include "cpu/report.h"
#include "cpu/sampler.h"
#include "cpu/series.h"
#include "cpu/window.h"
#include "discovery/discovery.h"
#include "discovery/entity.h"
#include "pprof/pprof.h"
#include "profile/cgroup_events.h"
#include "profile/oncpu.h"
#include "symbolize/dwarfreader.h"
#include "symbolize/jitdump.h"
#include "symbolize/perf_map.h"
#include "symbolize/symbolizer.h"

/* Reports waiting for the worker: the series of a window, and as many again if the worker falls
 * behind. Reached: `podprof_profiled_samples_total{outcome="failed"}`. */
#define CPU_PROFILER_QUEUE_MAX ((size_t)2 * SERIES_MAX)

_Static_assert(FOLD_STACKS_MAX >= PROFILE_SAMPLES_MAX, "one fold can fill a profile");

/* Interval of drains. podprof reads the mappings of a process at its first sample, so a process
 * that ends earlier has stacks without names. A tick costs a few system calls. */
#define CPU_PROFILER_TICK_NS NSEC_PER_SEC

/* Interval of checks whether the entities of an ended window have names. */
#define CPU_PROFILER_NAMES_NS	     (250 * NSEC_PER_MSEC)
/* CPU time for the names of a profile, of symbol tables above all. The names of node, the slowest
 * of a developer's machine, take 45 ms. Reached: `podprof_symbolized_addresses_total{found="no"}`.
 */
#define CPU_PROFILER_SYMBOLS_NS	     (5 * NSEC_PER_SEC)
/* Time that the report of a profile waits for DWARF. The answers of the other files come with a
 * later profile. */
#define CPU_PROFILER_DWARF_NS	     (2 * NSEC_PER_SEC)
/* The same for all reports of a window: profiles must not be late because of DWARF. */
#define CPU_PROFILER_WINDOW_DWARF_NS (10 * NSEC_PER_SEC)
/* From a change of containers or their labels to the update of the filter: a new container below an
 * excluded cgroup is excluded until then. Further changes in this time belong to the same update.
 */
#define CPU_PROFILER_FILTER_NS	     NSEC_PER_SEC
/* Updates after a change: the second one tells the kernel which cgroups are new
 * (cgroup_sampling_know()). */
#define CPU_PROFILER_UPDATES	     2
/* Time between two ticks while nothing is sampled, rounded up to a look of the drain thread: the
 * process events of a quiet node wait so long. */
#define CPU_PROFILER_IDLE_NS	     (3 * NSEC_PER_SEC)

/* The longest wait of an ended window for files that are being opened: a file may block the thread
 * for OPENER_STUCK_NS before the next file is opened. */
#define CPU_PROFILER_FILES_NS (3 * NSEC_PER_SEC)

/* Outcomes of samples and reports in the agent. */
enum cpu_outcome {
	CPU_SAMPLES_FOLDED,
	CPU_SAMPLES_FILTERED,	/* of what is not to be profiled */
	CPU_SAMPLES_LOST,	/* a ceiling of the window, or no memory */
	CPU_SAMPLES_LEFT_OUT,	/* a ceiling of the profile */
	CPU_SAMPLES_UNREPORTED, /* their report was refused or failed */
	CPU_SAMPLES_DROPPED,	/* of an entity that was excluded later */
	CPU_OUTCOME_MAX,
};

struct cpu_profiler {
	struct cpu_profiler_opts opts;
	struct cpu_sampler *sampler;
	struct series_table *series;
	struct series_table *off_cpu; /* off-CPU; NULL: not requested */
	struct worker *worker;
	struct symbolizer *symbolizer; /* the worker's */
	struct cpu_http *http;	       /* NULL: no profiles on demand */
	struct cpu_filter *filter;
	struct loop_source *filter_steps;
	unsigned int n_updates; /* of the filter, still to begin */
	bool is_updating;
	struct log_limit filter_log;
	uint64_t outcomes[CPU_OUTCOME_MAX];
	uint64_t n_places;
	uint64_t n_unnamed;
	uint64_t n_missing[SYMBOL_MISSING_MAX];
	size_t symbol_bytes;		   /* after the last report */
	uint64_t n_reads[SYMBOL_READ_MAX]; /* of files for names, after the last report */
	uint64_t perf_map_events[PERF_MAP_EVENT_MAX];
	uint64_t jitdump_events[JITDUMP_EVENT_MAX];
	uint64_t n_dwarf[DWARFREADER_OUTCOME_MAX]; /* requests, the same */
	struct cpu_window *late;		   /* window waiting for names; NULL: none */
	struct loop_source *late_timer;
	uint64_t wait_ns;
	uint64_t files_ns; /* monotonic: until then @late waits for files, too */
	bool ahead;	   /* the worker has read the kernel's names, or reads now */
};

/* A series on the way through the worker. */
struct cpu_job {
	struct work work;
	struct cpu_profiler *profiler;
	struct cpu_report_part *parts;
	struct fold **folds;
	size_t n_parts;
	struct cpu_report_opts opts;
	struct cpu_report_stats stats;
	size_t symbol_bytes;
	uint64_t n_reads[SYMBOL_READ_MAX];
	uint64_t perf_map_events[PERF_MAP_EVENT_MAX];
	uint64_t jitdump_events[JITDUMP_EVENT_MAX];
	uint64_t n_dwarf[DWARFREADER_OUTCOME_MAX];
	struct buf pprof;
	int result;
	struct profile *profile; /* all but the bytes */
	uint64_t n_samples;
};

static void cpu_job_free(struct cpu_job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < job->n_parts; i++)
		fold_free(job->folds[i]);
	free(job->folds);
	free(job->parts);
	buf_deinit(&job->pprof);
	profile_free(job->profile);
	free(job);
}

DEFINE_CLEANUP(struct cpu_job *, cpu_job_freep, cpu_job_free);

/* On the worker's thread: uses only the job and the symbolizer. */
static void cpu_job_run(struct work *work)
{
	struct cpu_job *job = container_of(work, struct cpu_job, work);

	job->result = cpu_report(job->parts, job->n_parts, job->profiler->symbolizer, &job->opts,
				 &job->pprof, &job->stats);
	symbolizer_release(job->profiler->symbolizer);
	job->symbol_bytes = symbolizer_bytes(job->profiler->symbolizer);
	memcpy(job->n_reads, symbolizer_reads(job->profiler->symbolizer), sizeof(job->n_reads));
	memcpy(job->perf_map_events, symbolizer_perf_map_events(job->profiler->symbolizer),
	       sizeof(job->perf_map_events));
	memcpy(job->jitdump_events, symbolizer_jitdump_events(job->profiler->symbolizer),
	       sizeof(job->jitdump_events));
	symbolizer_dwarf_counts(job->profiler->symbolizer, job->n_dwarf);
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
	memcpy(p->n_reads, job->n_reads, sizeof(p->n_reads));
	memcpy(p->perf_map_events, job->perf_map_events, sizeof(p->perf_map_events));
	memcpy(p->jitdump_events, job->jitdump_events, sizeof(p->jitdump_events));
	memcpy(p->n_dwarf, job->n_dwarf, sizeof(p->n_dwarf));
	p->outcomes[CPU_SAMPLES_LEFT_OUT] += job->stats.n_left_out;
	p->n_places += job->stats.n_places;
	p->n_unnamed += job->stats.n_unnamed;
	for (size_t i = 0; i < SYMBOL_MISSING_MAX; i++)
		p->n_missing[i] += job->stats.n_missing[i];
	job->profile->pprof_len = job->pprof.len;
	job->profile->pprof = buf_take(&job->pprof);
	p->opts.out(p->opts.ctx, take_ptr(job->profile));
}

/* ---------------------------------------------------------------- before the first report */

/* Drains until the missing tables are known. */
#define AHEAD_DRAINS 2

struct ahead_job {
	struct work work;
	struct symbolizer *symbolizer;
};

static void ahead_run(struct work *work)
{
	symbolizer_ahead(container_of(work, struct ahead_job, work)->symbolizer);
}

static void ahead_done(struct work *work)
{
	free(container_of(work, struct ahead_job, work));
}

/* The worker has nothing to do in the first window. With the chart's CPU request on a busy node,
 * the kernel's names take seconds, and the first profile would wait for them. Stacks wait for
 * tables at the same time, so tables come first. */
static void read_ahead(struct cpu_profiler *p)
{
	struct ahead_job *job;

	if (p->ahead || !p->opts.kernel_stacks || cpu_sampler_drains(p->sampler) < AHEAD_DRAINS ||
	    cpu_sampler_pending(p->sampler))
		return;
	p->ahead = true;
	job = calloc(1, sizeof(*job));
	if (!job)
		return;
	job->work = (struct work){.run = ahead_run, .done = ahead_done};
	job->symbolizer = p->symbolizer;
	if (worker_submit(p->worker, &job->work))
		free(job);
}

/* Takes the folds after the last step that can fail. */
static int cpu_job_parts(struct cpu_job *job, struct cpu_window_part *parts, size_t n)
{
	uint64_t value = 0;

	job->parts = calloc(n, sizeof(*job->parts));
	job->folds = calloc(n, sizeof(*job->folds));
	if (!job->parts || !job->folds)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		job->parts[i].fold = job->folds[i] = take_ptr(parts[i].fold);
		job->n_samples += parts[i].n;
		value += parts[i].value;
	}
	job->n_parts = n;
	/* the mean: samples of an entity with reduced sampling have a larger weight */
	if (job->opts.kind == CPU_REPORT_TIME)
		job->opts.period = (value + job->n_samples / 2) / job->n_samples;
	return 0;
}

/* For shares of ceilings. A pod is one owner, because its containers can start again and again,
 * each time with a new id. */
static uint64_t owner_of(const struct entity *entity)
{
	const char *name = entity->id.outer_id[0]	? entity->id.outer_id
			   : entity->id.pod_uid[0]	? entity->id.pod_uid
			   : entity->id.container_id[0] ? entity->id.container_id
							: entity->key;

	return hash_bytes(name, strlen(name));
}

static int cpu_job_new(struct cpu_profiler *p, const struct cpu_window *w,
		       struct cpu_window_part *parts, size_t n, struct cpu_job **ret)
{
	static const char *const comments[] = {pprof_producer};
	_cleanup_(cpu_job_freep) struct cpu_job *job = calloc(1, sizeof(*job));

	if (!job)
		return -ENOMEM;
	job->profile = calloc(1, sizeof(*job->profile));
	if (!job->profile)
		return -ENOMEM;
	job->work = (struct work){.run = cpu_job_run, .done = cpu_job_done};
	job->profiler = p;
	job->opts = (struct cpu_report_opts){
		.kind = parts->kind == PROFILE_CPU ? CPU_REPORT_TIME : CPU_REPORT_OFF_CPU,
		.period = 1,
		.start_ns = cpu_window_start_ns(w),
		.duration_ns = cpu_window_duration_ns(w),
		.max_samples = p->opts.limits.samples,
		.max_bytes = p->opts.limits.bytes,
		.comments = comments,
		.n_comments = array_size(comments),
		.unnamed = p->opts.unnamed,
		.unnamed_ctx = p->opts.ctx,
		.owner = owner_of(parts->entity),
		.for_disk = p->opts.for_disk,
		.doc_url = p->opts.doc_url,
		.is_learned = true,
	};
	buf_init(&job->pprof, p->opts.limits.bytes);
	job->profile->kind = parts->kind;
	job->profile->start_ns = cpu_window_start_ns(w);
	job->profile->duration_ns = cpu_window_duration_ns(w);
	job->profile->thread_names = p->opts.thread_names || p->opts.task_names;
	if (labels_copy(&parts->entity->labels, &job->profile->labels) ||
	    cpu_job_parts(job, parts, n))
		return -ENOMEM;
	*ret = take_ptr(job);
	return 0;
}

static void count_parts(struct cpu_profiler *p, enum cpu_outcome outcome,
			const struct cpu_window_part *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p->outcomes[outcome] += parts[i].n;
}

/* The report was refused, or nobody waits for it. */
static void count_unreported(void *ctx, const struct cpu_window *w, struct cpu_window_part *parts,
			     size_t n)
{
	(void)w;
	count_parts(ctx, CPU_SAMPLES_UNREPORTED, parts, n);
}

/* ---------------------------------------------------------------- memory */

static void trim_run(struct work *work)
{
	(void)work;
	(void)malloc_trim(0);
}

static void trim_done(struct work *work)
{
	free(work);
}

/* Gives the memory that the reports leave back to the kernel: the C library keeps it until the
 * next window. */
static void trim_memory(struct cpu_profiler *p)
{
	struct work *work = calloc(1, sizeof(*work));

	if (!work)
		return;
	*work = (struct work){.run = trim_run, .done = trim_done};
	if (worker_submit(p->worker, work))
		free(work);
}

/* ---------------------------------------------------------------- the names of a window */

/* The reports of a window, while the worker asks for all their names together. */
struct window_job {
	struct work work;
	struct cpu_profiler *profiler;
	struct cpu_job **jobs;
	size_t n;
	size_t cap;
};

static void window_job_free(struct window_job *wj)
{
	free(wj->jobs);
	free(wj);
}

/* Without memory for all names, the reports ask for the rest. */
static void window_job_run(struct work *work)
{
	struct window_job *wj = container_of(work, struct window_job, work);
	struct symbolizer *symbolizer = wj->profiler->symbolizer;
	struct addresses addresses = {0};

	symbolizer_begin(symbolizer, CPU_PROFILER_WINDOW_DWARF_NS);
	for (size_t i = 0; i < wj->n; i++) {
		const struct cpu_job *job = wj->jobs[i];

		for (size_t k = 0; k < job->n_parts; k++) {
			fold_settle(job->folds[k]);
			addresses_add(&addresses, job->folds[k]);
		}
	}
	(void)addresses_learn(&addresses, symbolizer);
	symbolizer_release(symbolizer);
}

static void submit_report(struct cpu_job *job, bool cancelled)
{
	struct cpu_profiler *p = job->profiler;

	if (!cancelled && !worker_submit(p->worker, &job->work))
		return;
	p->outcomes[CPU_SAMPLES_UNREPORTED] += job->n_samples;
	cpu_job_free(job);
}

static void window_job_done(struct work *work)
{
	struct window_job *wj = container_of(work, struct window_job, work);

	for (size_t i = 0; i < wj->n; i++)
		submit_report(wj->jobs[i], work->cancelled);
	if (!work->cancelled)
		trim_memory(wj->profiler);
	window_job_free(wj);
}

static void report_series(void *ctx, const struct cpu_window *w, struct cpu_window_part *parts,
			  size_t n)
{
	struct window_job *wj = ctx;
	struct cpu_job *job;

	if (vec_grow(&wj->jobs, &wj->cap, wj->n + 1, sizeof(*wj->jobs), CPU_PROFILER_QUEUE_MAX) ||
	    cpu_job_new(wj->profiler, w, parts, n, &job))
		count_parts(wj->profiler, CPU_SAMPLES_UNREPORTED, parts, n);
	else
		wj->jobs[wj->n++] = job;
}

/* The entity was excluded after the samples had been taken. */
static void drop_series(void *ctx, const struct cpu_window *w, struct cpu_window_part *parts,
			size_t n)
{
	const struct window_job *wj = ctx;

	(void)w;
	count_parts(wj->profiler, CPU_SAMPLES_DROPPED, parts, n);
}

/* ---------------------------------------------------------------- the end of a window */

static void report_late(struct cpu_profiler *p)
{
	struct cpu_window *w = take_ptr(p->late);
	struct window_job *wj;

	if (!w)
		return;
	(void)loop_disarm(p->late_timer);
	wj = calloc(1, sizeof(*wj));
	if (wj) {
		wj->work = (struct work){.run = window_job_run, .done = window_job_done};
		wj->profiler = p;
		cpu_window_report(w, report_series, drop_series, wj);
	} else {
		cpu_window_report(w, count_unreported, count_unreported, p);
	}
	cpu_window_free(w);
	if (wj && worker_submit(p->worker, &wj->work)) {
		wj->work.cancelled = true;
		window_job_done(&wj->work);
	}
}

static void on_late(void *ctx)
{
	struct cpu_profiler *p = ctx;

	if (p->late && cpu_window_ready(p->late) &&
	    (!cpu_sampler_opening(p->sampler) || nsec_monotonic() >= p->files_ns))
		report_late(p);
}

static void add_series(struct cpu_profiler *p, struct series *series, enum profile_kind kind)
{
	struct cpu_window_part part = {
		.entity = series->entity,
		.kind = kind,
		.fold = series->fold,
		.n = series->n_window,
		.value = series->value,
	};

	if (!p->late || cpu_window_add(p->late, &part))
		p->outcomes[CPU_SAMPLES_UNREPORTED] += series->n_window;
	else
		series->fold = NULL;
}

static void on_series_end(void *ctx, struct series *series)
{
	add_series(ctx, series, PROFILE_CPU);
}

static void on_off_cpu_end(void *ctx, struct series *series)
{
	add_series(ctx, series, PROFILE_OFF_CPU);
}

void cpu_profiler_end_window(struct cpu_profiler *p, uint64_t start_ns, uint64_t duration_ns)
{
	report_late(p); /* only one window waits at a time */
	p->files_ns = nsec_monotonic() + CPU_PROFILER_FILES_NS;
	(void)cpu_window_new(start_ns, duration_ns, nsec_monotonic() + p->wait_ns, &p->late);
	series_end_window(p->series, on_series_end, p);
	if (p->off_cpu)
		series_end_window(p->off_cpu, on_off_cpu_end, p);
	cpu_sampler_sweep(p->sampler);
	on_late(p);
	if (p->late && loop_arm(p->late_timer, CPU_PROFILER_NAMES_NS, CPU_PROFILER_NAMES_NS))
		report_late(p);
}

/* @value: the weight of the sample. */
static void take(struct cpu_profiler *p, struct series_table *series, const struct sample *sample,
		 uint64_t value)
{
	const bool off_cpu = series == p->off_cpu;
	_cleanup_(cpu_stack_deinit) struct cpu_stack stack = {.n = 0};
	struct fold_sample folded;
	struct series_of of = {0};
	struct entity *entity;
	int r;

	entity = discovery_entity(p->opts.discovery, sample->cgroup_id, sample->cgroup_v1_id,
				  &sample->pid, sample->comm);
	if (!entity || entity->left_out) {
		p->outcomes[CPU_SAMPLES_FILTERED] += sample->count;
		return;
	}
	r = cpu_sampler_resolve(p->sampler, sample, &stack);
	if (!r && p->http)
		cpu_http_sample(p->http, off_cpu, entity, &stack, sample->count, value);
	of.id = entity->key;
	of.entity = entity;
	folded = cpu_stack_folded(&stack);
	if (r || series_add(series, &of, &folded, sample->count, value)) {
		p->outcomes[CPU_SAMPLES_LOST] += sample->count;
		return;
	}
	p->outcomes[CPU_SAMPLES_FOLDED] += sample->count;
}

static void on_sample(void *ctx, const struct sample *sample)
{
	struct cpu_profiler *p = ctx;

	take(p, p->series, sample,
	     sample_value(sample, oncpu_period(cpu_sampler_oncpu(p->sampler))));
}

static void on_off_cpu(void *ctx, const struct sample *sample)
{
	struct cpu_profiler *p = ctx;

	take(p, p->off_cpu, sample, sample->total);
}

static void on_drained(void *ctx, bool off_cpu, uint64_t until_ns)
{
	struct cpu_profiler *p = ctx;

	read_ahead(p);
	if (p->http)
		cpu_http_drained(p->http, off_cpu, until_ns);
}

static void drain_now(void *ctx)
{
	struct cpu_profiler *p = ctx;

	cpu_sampler_drain(p->sampler);
}

static int start_http(struct cpu_profiler *p)
{
	const struct cpu_http_opts opts = {
		.loop = p->opts.loop,
		.worker = p->worker,
		.symbolizer = p->symbolizer,
		.discovery = p->opts.discovery,
		.off_cpu = p->off_cpu,
		.period = oncpu_period(cpu_sampler_oncpu(p->sampler)),
		.drain = drain_now,
		.ctx = p,
		.share = p->opts.pull_share,
		.doc_url = p->opts.doc_url,
	};

	return p->opts.pull ? cpu_http_new(&opts, &p->http) : 0;
}

static void arm_filter(struct cpu_profiler *p)
{
	/* fails only for an invalid delay */
	(void)loop_arm(p->filter_steps, CPU_PROFILER_FILTER_NS, 0);
}

/* Update the sampling rates of entities. A change during an update needs as many as any other. */
static bool on_filter(void *ctx)
{
	struct cpu_profiler *p = ctx;
	uint64_t suppressed;
	int r;

	p->n_updates -= !p->is_updating;
	p->is_updating = true;
	r = cpu_filter_step(p->filter);
	if (r == CPU_FILTER_MORE)
		return true;
	p->is_updating = false;
	if (r < 0)
		p->n_updates = CPU_PROFILER_UPDATES;
	if (p->n_updates)
		arm_filter(p);
	if (r < 0 && log_limit_ok(&p->filter_log, &suppressed))
		log_warn("cannot update cgroup sampling in the kernel, retrying", log_err(r),
			 log_uint("suppressed", suppressed));
	return false;
}

static void on_change(void *ctx)
{
	struct cpu_profiler *p = ctx;

	if (!p->n_updates && !p->is_updating)
		arm_filter(p);
	p->n_updates = CPU_PROFILER_UPDATES;
}

static int start_filter(struct cpu_profiler *p)
{
	const struct oncpu *oncpu = cpu_sampler_oncpu(p->sampler);
	int r = cpu_filter_new(p->opts.discovery, p->opts.rate_hz, oncpu_cgroup_sampling(oncpu),
			       &p->filter);

	if (!r)
		r = loop_add_steps(p->opts.loop, on_filter, p, &p->filter_steps);
	if (r)
		return r;
	p->filter_log.interval_ns = 60 * NSEC_PER_SEC;
	discovery_watch(p->opts.discovery, on_change, p);
	on_change(p);
	return 0;
}

void cpu_profiler_finish(struct cpu_profiler *p, uint64_t wait_ns)
{
	p->wait_ns = wait_ns;
	cpu_sampler_finish(p->sampler);
}

static int cpu_profiler_init(struct cpu_profiler *p, struct bpfobj_why *ret_why)
{
	const struct cpu_profiler_opts *o = &p->opts;
	const struct cpu_sampler_opts sampler_opts = {
		.loop = o->loop,
		.proc = o->proc,
		.sys = o->sys,
		.discovery = o->discovery,
		.v1 = discovery_v1_controller(o->discovery),
		.rate_hz = o->rate_hz,
		.kernel_stacks = o->kernel_stacks,
		.unwind = o->unwind,
		.table_bytes = o->table_bytes,
		.unsafe_kernel = o->unsafe_kernel,
		.thread_names = o->thread_names,
		.task_names = o->task_names,
		.interval_ns = CPU_PROFILER_TICK_NS,
		.idle_ns = CPU_PROFILER_IDLE_NS,
		.fn = on_sample,
		.off_cpu = o->off_cpu,
		.off_fn = on_off_cpu,
		.drained = on_drained,
		.ctx = p,
	};
	const struct dwarfreader_opts dwarf = {.patience_ns = CPU_PROFILER_DWARF_NS};
	const struct symbolizer_opts symbolizer_opts = {
		.proc = o->proc,
		.cache_bytes = o->symbol_bytes,
		.dwarf = o->dwarf ? &dwarf : NULL,
		.debuginfod = o->debuginfod,
		.guarded = true,
		.report_ns = CPU_PROFILER_SYMBOLS_NS,
	};
	int r = series_table_new(&p->series);

	if (!r && o->off_cpu > 0)
		r = series_table_new(&p->off_cpu);
	if (!r)
		r = symbolizer_new(&symbolizer_opts, &p->symbolizer);
	if (!r)
		r = loop_add_timer(o->loop, on_late, p, &p->late_timer);
	if (!r)
		r = worker_new(o->loop, "report", CPU_PROFILER_QUEUE_MAX, &p->worker);
	if (!r)
		r = cpu_sampler_new(&sampler_opts, ret_why, &p->sampler);
	if (!r)
		r = start_http(p);
	if (!r)
		r = start_filter(p);
	if (!r)
		discovery_ask(o->discovery, cgroup_events_find,
			      oncpu_cgroup_events(cpu_sampler_oncpu(p->sampler)));
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
	p->opts.limits = profile_limits_within(opts->limits, profile_limits_max);
	p->wait_ns = ENTITY_PENDING_NS;
	r = cpu_profiler_init(p, ret_why);
	if (r)
		cpu_profiler_free(p);
	else
		*ret = p;
	return r;
}

/* Reports that the end did not wait for. Nobody reads the metrics any more. */
static void end_reports(struct cpu_profiler *p)
{
	const uint64_t before = p->outcomes[CPU_SAMPLES_UNREPORTED];
	uint64_t n;

	worker_free(p->worker);
	if (p->late)
		cpu_window_report(p->late, count_unreported, count_unreported, p);
	cpu_window_free(p->late);
	n = p->outcomes[CPU_SAMPLES_UNREPORTED] - before;
	if (n)
		log_warn("no time for the last profiles, losing their samples",
			 log_uint("samples", n));
}

void cpu_profiler_free(struct cpu_profiler *p)
{
	if (!p)
		return;
	loop_remove(p->filter_steps);
	discovery_watch(p->opts.discovery, NULL, NULL);
	cpu_filter_free(p->filter);
	discovery_ask(p->opts.discovery, NULL, NULL);
	cpu_sampler_free(p->sampler);
	if (p->symbolizer)
		symbolizer_stop(p->symbolizer);
	cpu_http_stop(p->http);
	end_reports(p);
	cpu_http_free(p->http);
	symbolizer_free(p->symbolizer);
	loop_remove(p->late_timer);
	series_table_free(p->series);
	series_table_free(p->off_cpu);
	free(p);
}

void cpu_profiler_stop_symbols(struct cpu_profiler *p)
{
	symbolizer_stop(p->symbolizer);
}

size_t cpu_profiler_pending(const struct cpu_profiler *p)
{
	return worker_pending(p->worker) + (p->late ? 1 : 0);
}

const struct series *cpu_profiler_series(const struct cpu_profiler *p, const char *entity)
{
	return series_find(p->series, entity);
}

struct cpu_profiler_caches cpu_profiler_caches(const struct cpu_profiler *p)
{
	return (struct cpu_profiler_caches){
		.symbol_bytes = p->symbol_bytes,
		.address_space_bytes = cpu_sampler_address_space_bytes(p->sampler),
	};
}

const struct pull_source *cpu_profiler_pull_source(const struct cpu_profiler *p)
{
	return cpu_http_source(p->http);
}

const struct cpu_sampler *cpu_profiler_sampler(const struct cpu_profiler *p)
{
	return p->sampler;
}

void cpu_profiler_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc samples = {
		"podprof_profiled_samples", METRIC_COUNTER,
		"Samples handed over by the kernel, by outcome.", NULL};
	static const struct metric_family_desc places = {
		"podprof_symbolized_addresses", METRIC_COUNTER,
		"Distinct addresses looked up for a name, by result.", NULL};
	static const struct metric_family_desc reads = {"podprof_symbol_reads", METRIC_COUNTER,
							"Reads of files for names, by outcome.",
							NULL};
	static const struct metric_family_desc missing = {
		"podprof_unnamed_addresses", METRIC_COUNTER,
		"Distinct addresses without a name, by reason.", NULL};
	static const struct metric_family_desc perf_maps = {
		"podprof_perf_map_events", METRIC_COUNTER,
		"Reads of perf maps of processes, and what was found, by event.", NULL};
	static const struct metric_family_desc jitdumps = {
		"podprof_jitdump_events", METRIC_COUNTER,
		"Reads of jitdumps of processes, and what was found, by event.", NULL};
	static const struct metric_family_desc dwarf = {
		"podprof_dwarf_requests", METRIC_COUNTER,
		"Requests for lines and inlined functions, by outcome.", NULL};
	static const struct metric_family_desc other = {
		"podprof_fold_other_thread_samples", METRIC_COUNTER,
		"Samples without the name of their thread or task, above the window's limit of "
		"names.",
		NULL};
	static const char *const names[CPU_OUTCOME_MAX] = {
		[CPU_SAMPLES_FOLDED] = "folded",     [CPU_SAMPLES_FILTERED] = "filtered",
		[CPU_SAMPLES_LOST] = "lost",	     [CPU_SAMPLES_LEFT_OUT] = "over_limit",
		[CPU_SAMPLES_UNREPORTED] = "failed", [CPU_SAMPLES_DROPPED] = "excluded",
	};
	struct cpu_profiler *p = ctx;

	cpu_sampler_collect(p->sampler, sink);
	if (p->http)
		cpu_http_collect(p->http, sink);
	series_collect(p->series, sink);
	metric_family(sink, &other);
	metric_u64(sink,
		   series_n_other_threads(p->series) +
			   (p->off_cpu ? series_n_other_threads(p->off_cpu) : 0),
		   NULL, 0);
	metric_by_name(sink, &samples, "outcome", p->outcomes, names, CPU_OUTCOME_MAX);
	metric_family(sink, &places);
	metric_u64(sink, p->n_places - p->n_unnamed, &(struct metric_label){"found", "yes"}, 1);
	metric_u64(sink, p->n_unnamed, &(struct metric_label){"found", "no"}, 1);
	metric_by_name(sink, &missing, "reason", p->n_missing + 1, symbol_missing_names + 1,
		       SYMBOL_MISSING_MAX - 1);
	metric_by_name(sink, &reads, "outcome", p->n_reads, symbol_read_names, SYMBOL_READ_MAX);
	metric_by_name(sink, &perf_maps, "event", p->perf_map_events, perf_map_event_names,
		       PERF_MAP_EVENT_MAX);
	metric_by_name(sink, &jitdumps, "event", p->jitdump_events, jitdump_event_names,
		       JITDUMP_EVENT_MAX);
	metric_by_name(sink, &dwarf, "outcome", p->n_dwarf, dwarfreader_outcome_names,
		       DWARFREADER_OUTCOME_MAX);
}
