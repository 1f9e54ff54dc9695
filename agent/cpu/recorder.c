// SPDX-License-Identifier: Apache-2.0
/*
 * The recorder combines the agent's parts in another way: the same sampler, but the samples are
 * folded by process instead of by entity, and there is a single report at the end. The recorder
 * makes this report itself, without a worker, because nothing else is waiting.
 *
 * The recorder drains ten times a second. podprof reads the mappings of a process with the first
 * samples of the process, so a program that runs for 300 ms is still alive at that time. The
 * mappings are then kept until the end.
 */
#include "cpu/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/labels.h"
#include "base/nsec.h"
#include "base/vec.h"
#include "cpu/fold.h"
#include "cpu/report.h"
#include "cpu/sampler.h"
#include "cpu/series.h"
#include "discovery/descendants.h"
#include "discovery/discovery.h"
#include "pprof/pprof.h"
#include "profile/cgroup_events.h"
#include "profile/cgroup_sampling.h"
#include "profile/event.h"
#include "profile/oncpu.h"
#include "profile/pid_filter.h"
#include "symbolize/dwarfreader.h"
#include "symbolize/symbolizer.h"

#define RECORDER_TICK_NS      (100 * NSEC_PER_MSEC)
#define RECORDER_SWEEP_NS     (60 * NSEC_PER_SEC)
/* Bytes of symbol tables: a single report, on demand. */
#define RECORDER_SYMBOL_BYTES (256u << 20)
/* Passes over all processes; each pass finds the children made during the previous pass. */
#define RECORDER_FAMILY_LOOKS 10

struct recorder {
	struct recorder_opts opts;
	struct discovery *discovery; /* NULL: no cgroups visible */
	struct cpu_sampler *sampler;
	struct series_table *series;  /* by process and program */
	struct series_table *off_cpu; /* the same, off-CPU */
	struct descendants *descendants;
	struct symbolizer *symbolizer;
	char container[CGROUP_ID_MAX]; /* "" for none */
	int cost_fd;
	bool begun;
	bool seen; /* a sample of a target */
	uint64_t swept_ns;
	int add_result; /* of the last process or cgroup without an entry */
	uint64_t n_samples;
	uint64_t n_off_cpu;
	uint64_t n_ends[SAMPLE_END_MAX];
	uint64_t n_lost;
	uint64_t n_stacks;
	uint64_t n_processes;
};

DEFINE_CLEANUP(struct recorder *, recorder_freep, recorder_free);

/* ---------------------------------------------------------------- samples */

/* Labels of the entity, without those equal for all; then the tags; then the process's own labels,
 * which take precedence. */
static int labels_of(const struct recorder *r, const struct entity *entity,
		     const struct sample *sample, struct labels *ret)
{
	const struct labels *sources[] = {entity ? &entity->labels : NULL, r->opts.tags};
	char pid[24];
	int err = 0;

	for (size_t s = 0; s < array_size(sources); s++)
		for (size_t i = 0; sources[s] && i < sources[s]->n && err >= 0; i++)
			if (strcmp(sources[s]->items[i].name, "node") != 0)
				err = labels_set(ret, sources[s]->items[i].name,
						 sources[s]->items[i].value);
	snprintf(pid, sizeof(pid), "%" PRIu64, sample->pid.pid);
	if (err >= 0)
		err = labels_set(ret, "pid", pid);
	if (err >= 0)
		err = labels_set(ret, "comm", sample->comm);
	return err < 0 ? err : 0; /* the last of too many tags have no room */
}

static int add_stack(struct recorder *r, struct series_table *table, const char *key,
		     const struct labels *labels, const struct cpu_stack *stack, uint64_t count,
		     uint64_t value)
{
	const struct series *series = series_find(table, key);
	size_t before = series && series->fold ? fold_n(series->fold) : 0;
	const struct series_of of = {
		.id = key,
		.labels = labels,
	};
	const struct fold_sample sample = cpu_stack_folded(stack);
	int err;

	if (r->n_stacks >= RECORDER_STACKS_MAX)
		return SERIES_FULL;
	r->n_processes += !series_find(r->series, key) && !series_find(r->off_cpu, key);
	err = series_add(table, &of, &sample, count, value);
	if (err)
		return err;
	series = series_find(table, key);
	r->n_stacks += fold_n(series->fold) - before;
	return 0;
}

/* The series keeps the labels, which are made once for each process and program. */
static int add_sample(struct recorder *r, const struct entity *entity, const struct sample *sample,
		      bool off_cpu, const struct cpu_stack *stack)
{
	const uint64_t period = oncpu_period(cpu_sampler_oncpu(r->sampler));
	const uint64_t value = off_cpu ? sample->total : sample_value(sample, period);
	_cleanup_(labels_deinit) struct labels labels = {0};
	const struct series *known;
	char key[64 + PID_COMM_MAX];

	snprintf(key, sizeof(key), "%" PRIu64 " %" PRIu64 " %s", sample->pid.pid,
		 sample->pid.start_ticks, sample->comm);
	known = series_find(off_cpu ? r->off_cpu : r->series, key);
	if (!known && labels_of(r, entity, sample, &labels))
		return -ENOMEM;
	return add_stack(r, off_cpu ? r->off_cpu : r->series, key, &labels, stack, sample->count,
			 value);
}

static void take(struct recorder *r, const struct sample *sample, bool off_cpu)
{
	_cleanup_(cpu_stack_deinit) struct cpu_stack stack = {.n = 0};
	const struct entity *entity = NULL;

	if (r->discovery)
		entity = discovery_entity(r->discovery, sample->cgroup_id, sample->cgroup_v1_id,
					  &sample->pid, sample->comm);
	if (r->container[0] && !discovery_in_container(entity, r->container))
		return;
	r->seen = true;
	if (!r->begun) {
		(void)cpu_sampler_resolve(r->sampler, sample, &stack); /* requests tables */
		return;
	}
	if (cpu_sampler_resolve(r->sampler, sample, &stack) ||
	    add_sample(r, entity, sample, off_cpu, &stack)) {
		r->n_lost += sample->count;
		return;
	}
	if (off_cpu) {
		r->n_off_cpu += sample->count;
		return;
	}
	r->n_samples += sample->count;
	if (sample->end < SAMPLE_END_MAX && !sample_is_lost(sample))
		r->n_ends[sample->end] += sample->count;
}

static void on_sample(void *ctx, const struct sample *sample)
{
	take(ctx, sample, false);
}

static void on_off_cpu(void *ctx, const struct sample *sample)
{
	take(ctx, sample, true);
}

/* ---------------------------------------------------------------- whose */

static struct pid_filter *pid_filter_of(const struct recorder *r)
{
	return oncpu_pid_filter(cpu_sampler_oncpu(r->sampler));
}

static void enter_process(void *ctx, pid_t pid)
{
	struct recorder *r = ctx;
	int err = pid_filter_add(pid_filter_of(r), pid);

	if (err)
		r->add_result = err;
}

int recorder_add_process(struct recorder *r, pid_t pid, bool descendants)
{
	struct pid_id id;
	int err, n = descendants ? 1 : 0;

	enter_process(r, pid);
	(void)descendants_add(r->descendants, pid);
	for (int i = 0; i < RECORDER_FAMILY_LOOKS && n > 0; i++)
		n = descendants_grow(r->descendants, r->opts.proc, enter_process, r);
	if (r->add_result || n < 0)
		return r->add_result == -E2BIG ? RECORDER_FULL : n < 0 ? n : r->add_result;
	/* last: the process existed when its entry was made */
	err = pid_read(r->opts.proc, pid, &id);
	return err > 0 ? RECORDER_GONE : err;
}

int recorder_add_child(struct recorder *r, pid_t pid)
{
	struct pid_id id;
	int err = recorder_add_process(r, pid, false);

	if (err)
		return err;
	err = pid_read(r->opts.proc, pid, &id);
	if (!err)
		cpu_sampler_child(r->sampler, &id);
	return err > 0 ? RECORDER_GONE : err;
}

static struct cgroup_sampling *cgroup_sampling_of(const struct recorder *r)
{
	return oncpu_cgroup_sampling(cpu_sampler_oncpu(r->sampler));
}

static void enter_cgroup(void *ctx, struct entity *entity, enum hierarchy hierarchy, uint64_t id)
{
	struct recorder *r = ctx;
	int err;

	if (!discovery_in_container(entity, r->container))
		return;
	err = cgroup_sampling_set(cgroup_sampling_of(r), hierarchy, id, 1, 1);
	if (err)
		r->add_result = err == CGROUP_SAMPLING_FULL ? -E2BIG : err;
}

/* Directories that a container makes later are entered by the next sweep. */
static int enter_cgroups(struct recorder *r)
{
	int err;

	cgroup_sampling_begin(cgroup_sampling_of(r));
	discovery_for_each_cgroup(r->discovery, enter_cgroup, r);
	err = cgroup_sampling_end(cgroup_sampling_of(r));
	return r->add_result ? r->add_result : err;
}

int recorder_add_container(struct recorder *r, const char *id)
{
	enum discovery_find found;

	if (!r->discovery)
		return RECORDER_NO_CGROUPS;
	found = discovery_find_container(r->discovery, id, r->container);
	if (found == DISCOVERY_FOUND)
		return enter_cgroups(r);
	return found == DISCOVERY_AMBIGUOUS ? RECORDER_AMBIGUOUS : RECORDER_GONE;
}

/* As at the end of a window in the agent: drops state of ended processes. */
static void sweep_sampler(struct recorder *r)
{
	const uint64_t now = nsec_monotonic();

	if (now - r->swept_ns < RECORDER_SWEEP_NS)
		return;
	r->swept_ns = now;
	cpu_sampler_sweep(r->sampler);
}

int recorder_sweep(struct recorder *r)
{
	int err;

	sweep_sampler(r);
	switch (r->opts.scope) {
	case SETTINGS_SCOPE_PROCESSES:
		return pid_filter_sweep(pid_filter_of(r));
	case SETTINGS_SCOPE_CGROUPS:
		err = enter_cgroups(r);
		return err ? err : discovery_container_runs(r->discovery, r->container);
	default:
		return 1;
	}
}

/* ---------------------------------------------------------------- life */

static int start_discovery(struct recorder *r)
{
	const struct discovery_opts opts = {
		.loop = r->opts.loop,
		.proc = r->opts.proc,
		.host_processes = true,
		.node_name = "",
		.grace_ns = 60 * NSEC_PER_SEC,
	};
	int err = discovery_new(&opts, &r->discovery);

	/* without cgroups a sample has only its process */
	return err < 0 ? err : 0;
}

static int start(struct recorder *r, struct bpfobj_why *ret_why)
{
	const struct recorder_opts *o = &r->opts;
	struct cpu_sampler_opts sampler = {
		.loop = o->loop,
		.proc = o->proc,
		.sys = o->sys,
		.rate_hz = o->rate_hz,
		.event = o->event,
		.period = o->period,
		.scope = o->scope,
		/* stacks of a few processes are complete from the begin of the recording on */
		.all_tables = o->scope == SETTINGS_SCOPE_PROCESSES,
		.urgent_runtimes = true,
		.kernel_stacks = o->kernel_stacks,
		.unwind = o->unwind,
		.thread_names = o->thread_names,
		.task_names = o->task_names,
		.unsafe_kernel = o->unsafe_kernel,
		.interval_ns = RECORDER_TICK_NS,
		.off_cpu = o->off_cpu,
		.off_fn = on_off_cpu,
		.fn = on_sample,
		.ctx = r,
	};
	const struct dwarfreader_opts dwarf = {0};
	const struct symbolizer_opts symbolizer = {
		.proc = o->proc,
		.dwarf = o->dwarf ? &dwarf : NULL,
		.cache_bytes = RECORDER_SYMBOL_BYTES,
		.debuginfod = o->debuginfod,
	};
	int err = symbolizer_new(&symbolizer, &r->symbolizer);

	if (!err)
		err = series_table_new(&r->series);
	if (!err)
		err = series_table_new(&r->off_cpu);
	if (!err)
		err = descendants_new(&r->descendants);
	if (!err)
		err = start_discovery(r);
	if (err)
		return err;
	if (r->discovery)
		sampler.v1 = discovery_v1_controller(r->discovery);
	r->cost_fd = bpfobj_count_cost(); /* otherwise the summary omits this number */
	sampler.discovery = r->discovery;
	err = cpu_sampler_new(&sampler, ret_why, &r->sampler);
	if (!err && r->discovery)
		discovery_ask(r->discovery, cgroup_events_find,
			      oncpu_cgroup_events(cpu_sampler_oncpu(r->sampler)));
	return err;
}

int recorder_new(const struct recorder_opts *opts, struct bpfobj_why *ret_why,
		 struct recorder **ret)
{
	_cleanup_(recorder_freep) struct recorder *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->opts = *opts;
	r->cost_fd = -1;
	err = start(r, ret_why);
	if (err)
		return err;
	*ret = take_ptr(r);
	return 0;
}

void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	cpu_sampler_free(r->sampler);
	series_table_free(r->series);
	series_table_free(r->off_cpu);
	discovery_free(r->discovery);
	descendants_free(r->descendants);
	symbolizer_free(r->symbolizer);
	close_fdp(&r->cost_fd);
	free(r);
}

size_t recorder_loading(const struct recorder *r)
{
	return cpu_sampler_loading(r->sampler);
}

bool recorder_seen(const struct recorder *r)
{
	return r->seen;
}

size_t recorder_missing(const struct recorder *r)
{
	return cpu_sampler_pending(r->sampler) - cpu_sampler_loading(r->sampler);
}

size_t recorder_reading(const struct recorder *r)
{
	return cpu_sampler_reading(r->sampler);
}

uint64_t recorder_drains(const struct recorder *r)
{
	return cpu_sampler_drains(r->sampler);
}

void recorder_begin(struct recorder *r)
{
	r->begun = true;
	r->swept_ns = nsec_monotonic();
}

void recorder_finish(struct recorder *r)
{
	cpu_sampler_finish(r->sampler);
}

void recorder_stats(const struct recorder *r, struct recorder_stats *ret)
{
	const struct oncpu *oncpu = cpu_sampler_oncpu(r->sampler);
	uint64_t stats[SAMPLE_STAT_MAX] = {0};
	struct bpfobj_cost cost = {0};

	(void)oncpu_stats(oncpu, stats, SAMPLE_STAT_MAX);
	(void)bpfobj_cost(oncpu_program(oncpu), &cost);
	*ret = (struct recorder_stats){
		.n_samples = r->n_samples,
		.n_off_cpu = r->n_off_cpu,
		.n_complete = r->n_ends[SAMPLE_END_COMPLETE] + r->n_ends[SAMPLE_END_NO_USER],
		.n_lost = r->n_lost + stats[SAMPLE_STAT_LOST_FULL] + stats[SAMPLE_STAT_LOST_BUSY] +
			  stats[SAMPLE_STAT_LOST_INTERNAL],
		.n_refused =
			oncpu_pid_filter(oncpu) ? pid_filter_n_refused(oncpu_pid_filter(oncpu)) : 0,
		.n_processes = r->n_processes,
		.bpf_ns = cost.run_ns,
	};
	memcpy(ret->n_ends, r->n_ends, sizeof(ret->n_ends));
}

/* ---------------------------------------------------------------- report */

struct parts {
	struct cpu_report_part *items;
	size_t n;
	size_t cap;
	int result;
};

/* Borrowed: the table keeps series, labels and folds until it is freed. */
static void add_part(struct parts *p, const struct series *series, bool off_cpu)
{
	if (series->fold)
		fold_settle(series->fold);
	if (!p->result)
		p->result = vec_grow(&p->items, &p->cap, p->n + 1, sizeof(*p->items), SERIES_MAX);
	if (!p->result)
		p->items[p->n++] = (struct cpu_report_part){series->fold, &series->labels, off_cpu};
}

static void add_cpu_part(void *ctx, const struct series *series)
{
	add_part(ctx, series, false);
}

static void add_off_cpu_part(void *ctx, const struct series *series)
{
	add_part(ctx, series, true);
}

/* Images that were asked. */
struct asked {
	struct image *image;
	UT_hash_handle hh;
};

static int ask_one(struct symbolizer *s, struct asked **asked, struct image *image)
{
	bool hash_oom = false;
	struct asked *a;

	HASH_FIND_PTR(*asked, &image, a);
	if (a || !image->file)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->image = image;
	HASH_ADD_PTR(*asked, image, a);
	if (hash_oom) {
		free(a);
		return -ENOMEM;
	}
	return symbolizer_sources(s, image, NULL, NULL);
}

static int ask_fold(struct symbolizer *s, struct asked **asked, const struct fold *fold)
{
	int err = 0;

	for (size_t i = 0; i < fold_n(fold) && !err; i++) {
		const struct fold_stack stack = fold_get(fold, i);

		for (size_t j = 0; j < stack.n_frames && !err; j++)
			err = ask_one(s, asked, stack.frames[j].image);
	}
	return err;
}

int recorder_ask(struct recorder *r)
{
	struct asked *asked = NULL, *a, *next;
	struct parts parts = {0};
	int err;

	series_for_each(r->series, add_cpu_part, &parts);
	series_for_each(r->off_cpu, add_off_cpu_part, &parts);
	err = parts.result;
	for (size_t i = 0; i < parts.n && !err; i++)
		if (parts.items[i].fold)
			err = ask_fold(r->symbolizer, &asked, parts.items[i].fold);
	HASH_ITER(hh, asked, a, next) {
		HASH_DEL(asked, a);
		free(a);
	}
	free(parts.items);
	return err;
}

int recorder_report(struct recorder *r, uint64_t start_ns, uint64_t duration_ns,
		    const char *const *comments, size_t n_comments, struct buf *ret,
		    uint64_t *ret_left_out)
{
	const struct cpu_report_opts opts = {
		.kind = r->opts.event	      ? CPU_REPORT_EVENTS
			: r->opts.off_cpu > 0 ? CPU_REPORT_BOTH
					      : CPU_REPORT_TIME,
		.event = r->opts.event ? r->opts.event->name : NULL,
		.period = oncpu_period(cpu_sampler_oncpu(r->sampler)),
		.start_ns = start_ns,
		.duration_ns = duration_ns,
		.max_samples = PPROF_SAMPLES_MAX,
		.max_bytes = RECORDER_PPROF_MAX,
		.comments = comments,
		.n_comments = n_comments,
	};
	struct cpu_report_stats stats = {0};
	struct parts parts = {0};
	int err;

	series_for_each(r->series, add_cpu_part, &parts);
	series_for_each(r->off_cpu, add_off_cpu_part, &parts);
	err = parts.result;
	if (!err)
		err = cpu_report(parts.items, parts.n, r->symbolizer, &opts, ret, &stats);
	symbolizer_release(r->symbolizer);
	free(parts.items);
	*ret_left_out = stats.n_left_out;
	return err;
}
