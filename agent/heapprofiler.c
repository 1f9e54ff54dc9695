// SPDX-License-Identifier: Apache-2.0
/*
 * Reading a heap takes milliseconds, and a target can make it slow, so it happens on a worker of
 * its own, which alone owns the readers. A round is one job for each container, with the processes
 * that it has now, and at its end one job that forgets the readers of processes that were in none.
 *
 * A process that is no Go program keeps a reader too: an empty one, so that its executable is
 * opened once and not in every window. An exec keeps pid and start time, so the executable's
 * identity is looked at each time.
 */
#include "heapprofiler.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/vec.h"
#include "base/worker.h"
#include "discovery/discovery.h"
#include "discovery/owner.h"
#include "goheap/goheap.h"
#include "procmap/space.h"
#include "report/heap.h"
#include "report/heapsnap.h"
#include "symbolize/symbolizer.h"

/* Processes with a reader. One more is not read, counted as "full". */
#define HEAP_PROFILER_PROCESSES_MAX  16384
/* Processes of one container that are looked at in a round; counted as "full" beyond. */
#define HEAP_PROFILER_CONTAINER_MAX  1024
/* Containers in a round. */
#define HEAP_PROFILER_CONTAINERS_MAX 4096
/* Rounds that a container's counters outlive it: its last values must have been scraped. */
#define HEAP_PROFILER_KEEP_ROUNDS    3
/* Ceiling of one encoded profile. Pyroscope refuses more than 4 MiB before compression. */
#define HEAP_PROFILER_SAMPLES_MAX    16000
#define HEAP_PROFILER_PPROF_MAX	     (4u << 20)

struct exe_key {
	uint64_t device;
	uint64_t inode;
};

/* The worker's: a reader for each process. */
struct heap_reader {
	struct pid_id pid;
	struct exe_key exe;
	struct goheap *heap;
	size_t bytes; /* of its records, as counted in heap_worker.bytes */
	bool forced; /* sampling was turned on in this process: never again, whatever it executes */
	unsigned int round;
	UT_hash_handle hh;
};

/* What the worker alone touches. */
struct heap_worker {
	const struct root *proc;
	bool force;
	size_t max_bytes;
	size_t bytes; /* of all readers' records */
	unsigned int round;
	struct heap_reader *readers;
	struct space_cache *spaces; /* images of the Go programs alone */
	struct symbolizer *symbolizer;
};

/* One process of a container, on its way through the worker. */
struct heap_target {
	struct pid_id pid;
	bool is_go;
	struct goalloc_reading reading;
	char go_version[GORUNTIME_VERSION_MAX];
};

enum heap_outcome {
	HEAP_PROFILES_MADE,
	HEAP_PROFILES_FAILED,
	HEAP_ROUNDS_SKIPPED,   /* the one before was not finished */
	HEAP_PROCESSES_FULL,   /* over a ceiling: not read */
	HEAP_PROCESSES_FAILED, /* our own side, for want of memory */
	HEAP_RECORDS_LEFT_OUT, /* a ceiling of the profile */
	HEAP_OUTCOME_MAX,
};

struct heap_profiler {
	struct heap_profiler_opts opts;
	struct worker *worker;
	struct heap_worker own; /* the worker's */
	struct goalloc *allocs;
	uint64_t start_ns;
	uint64_t duration_ns;
	uint64_t outcomes[HEAP_OUTCOME_MAX];
	struct heap_profiler_caches caches;
};

struct heap_job {
	struct work work;
	struct heap_profiler *profiler;
	char *owner;
	struct labels labels;
	struct heap_target *targets;
	size_t n_targets;
	size_t cap_targets;
	uint64_t start_ns;
	uint64_t duration_ns;
	struct heapsnap **snaps; /* of the processes that had something */
	size_t n_snaps;
	struct buf pprof;
	struct buf pprof_delta;
	int result;
	uint64_t n_full;
	uint64_t n_failed;
	uint64_t n_left_out;
	struct heap_profiler_caches caches; /* at the round's end */
	bool ends_round;
	UT_hash_handle hh; /* while a round is gathered, by owner */
};

static void heap_job_free(struct heap_job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < job->n_snaps; i++)
		heapsnap_free(job->snaps[i]);
	free(job->snaps);
	labels_deinit(&job->labels);
	buf_deinit(&job->pprof);
	buf_deinit(&job->pprof_delta);
	free(job->targets);
	free(job->owner);
	free(job);
}

DEFINE_CLEANUP(struct heap_job *, heap_job_freep, heap_job_free);

/* ---------------------------------------------------------------- on the worker */

static void reader_free(struct heap_worker *w, struct heap_reader *reader)
{
	w->bytes -= reader->bytes;
	HASH_DEL(w->readers, reader);
	goheap_free(reader->heap);
	free(reader);
}

static void heap_worker_deinit(struct heap_worker *w)
{
	struct heap_reader *reader, *next;

	HASH_ITER(hh, w->readers, reader, next)
		reader_free(w, reader);
	symbolizer_free(w->symbolizer);
	space_cache_free(w->spaces);
}

/* Zeros where it cannot be read: the process has gone, or is a kernel thread. */
static struct exe_key read_exe(const struct heap_worker *w, const struct pid_id *pid)
{
	struct stat st;
	char path[48];

	snprintf(path, sizeof(path), "%" PRIu64 "/exe", pid->pid);
	if (fstatat(w->proc->fd, path, &st, 0) < 0)
		return (struct exe_key){0};
	return (struct exe_key){.device = st.st_dev, .inode = st.st_ino};
}

static int reader_add(struct heap_worker *w, const struct pid_id *pid, struct heap_reader **ret)
{
	struct heap_reader *reader = calloc(1, sizeof(*reader));
	bool hash_oom = false;

	if (!reader)
		return -ENOMEM;
	reader->pid = *pid;
	HASH_ADD(hh, w->readers, pid, sizeof(reader->pid), reader);
	if (hash_oom) {
		free(reader);
		return -ENOMEM;
	}
	*ret = reader;
	return 0;
}

static void reader_account(struct heap_worker *w, struct heap_reader *reader)
{
	size_t bytes = reader->heap ? goheap_bytes(reader->heap) : 0;

	w->bytes = w->bytes - reader->bytes + bytes;
	reader->bytes = bytes;
}

/* The process runs this program now: look at it afresh. */
static int reader_open(struct heap_worker *w, struct heap_reader *reader, struct exe_key exe)
{
	const struct goheap_opts opts = {
		.proc = w->proc,
		.id = reader->pid,
		.force = w->force,
		.was_forced = reader->forced,
		.max_bytes = w->max_bytes > w->bytes ? w->max_bytes - w->bytes : 1,
	};
	int r;

	goheap_free(reader->heap);
	reader->heap = NULL;
	reader->exe = exe;
	r = goheap_new(&opts, &reader->heap);
	reader_account(w, reader);
	return r;
}

/* 0, 1 when there are too many, -errno. */
static int reader_get(struct heap_worker *w, const struct pid_id *pid, struct heap_reader **ret)
{
	struct exe_key exe = read_exe(w, pid);
	struct heap_reader *reader;
	int r;

	HASH_FIND(hh, w->readers, pid, sizeof(*pid), reader);
	if (!reader) {
		if (HASH_COUNT(w->readers) >= HEAP_PROFILER_PROCESSES_MAX)
			return 1;
		r = reader_add(w, pid, &reader);
		if (r)
			return r;
	}
	reader->round = w->round;
	*ret = reader;
	if (reader->heap && exe.inode == reader->exe.inode && exe.device == reader->exe.device)
		return 0;
	return reader_open(w, reader, exe);
}

static void target_describe(struct heap_target *target, const struct goheap *heap)
{
	const struct goruntime *runtime = goheap_runtime(heap);

	/* of a process that has gone before anybody looked nothing is known, nor that it was Go */
	target->is_go = runtime || goheap_state(heap) == GORUNTIME_DENIED;
	if (runtime)
		snprintf(target->go_version, sizeof(target->go_version), "%s",
			 runtime->file.version);
	target->reading.source = "profile";
	target->reading.state = goruntime_state_name(goheap_state(heap));
}

/* Where the pcs of one process are. */
struct snap_space {
	struct space_cache *spaces;
	const struct pid_id *pid;
};

static int on_resolve(void *ctx, uint64_t pc, struct frame *ret)
{
	const struct snap_space *s = ctx;

	return space_cache_resolve(s->spaces, s->pid, pc, ret);
}

/* Whether the process began in the job's window: then all that it has allocated is the window's. */
static bool began_in_window(const struct heap_job *job, const struct pid_id *pid)
{
	uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t age_ns = nsec_boot() - pid->start_ticks * tick_ns;

	return age_ns <= nsec_wall() - job->start_ns;
}

static int target_snap(struct heap_job *job, const struct heap_target *target,
		       const struct heap_reader *reader, const struct goheap_profile *profile)
{
	struct snap_space space = {job->profiler->own.spaces, &target->pid};
	const struct heapsnap_opts opts = {
		.resolve = on_resolve,
		.ctx = &space,
		.forced = reader->forced,
		.since_start = began_in_window(job, &target->pid),
	};
	int r = heapsnap_new(profile, &opts, &job->snaps[job->n_snaps]);

	if (!r)
		job->n_snaps++;
	return r;
}

static void target_totals(struct heap_target *target, const struct goheap_profile *profile)
{
	struct goheap_totals totals;

	goheap_totals(profile, &totals);
	target->reading.has_values = true;
	target->reading.alloc_bytes = (uint64_t)totals.alloc.bytes;
	target->reading.alloc_objects = (uint64_t)totals.alloc.objects;
	target->reading.inuse_bytes = (uint64_t)totals.inuse.bytes;
	target->reading.inuse_objects = (uint64_t)totals.inuse.objects;
}

/* Over the ceiling of all together: what this process had is forgotten, and read as if for the
 * first time in the next round, with what room there is then. */
static void reader_shed(struct heap_job *job, struct heap_reader *reader)
{
	struct heap_worker *w = &job->profiler->own;

	if (w->bytes <= w->max_bytes)
		return;
	goheap_free(reader->heap);
	reader->heap = NULL;
	reader_account(w, reader);
	job->n_full++;
}

static int target_read(struct heap_job *job, struct heap_target *target, struct heap_reader *reader)
{
	struct heap_worker *w = &job->profiler->own;
	struct goheap_profile profile;
	int state = goheap_read(reader->heap, &profile), r;

	reader_account(w, reader);
	reader->forced |= goheap_was_forced(reader->heap);
	target_describe(target, reader->heap);
	if (state != GORUNTIME_OK && state != GORUNTIME_FORCED)
		return state < 0 ? state : 0;
	target_totals(target, &profile);
	r = target_snap(job, target, reader, &profile);
	reader_shed(job, reader);
	return r;
}

static int target_run(struct heap_job *job, struct heap_target *target)
{
	struct heap_reader *reader;
	int r = reader_get(&job->profiler->own, &target->pid, &reader);

	if (r > 0) {
		job->n_full++;
		return 0;
	}
	if (r)
		return r;
	if (goheap_state(reader->heap) == GORUNTIME_NO_RUNTIME)
		return 0;
	return target_read(job, target, reader);
}

static int heap_job_encode(struct heap_job *job, bool delta, struct buf *ret)
{
	const struct heap_report_opts opts = {
		.delta = delta,
		.time_ns = job->start_ns,
		.duration_ns = job->duration_ns,
		.max_samples = HEAP_PROFILER_SAMPLES_MAX,
		.max_bytes = HEAP_PROFILER_PPROF_MAX,
	};
	struct heap_report_stats stats;
	int r = heap_report(job->snaps, job->n_snaps, job->profiler->own.symbolizer, &opts, ret,
			    &stats);

	symbolizer_release(job->profiler->own.symbolizer);
	if (!r)
		job->n_left_out += stats.n_left_out;
	return r;
}

/* A process that cannot be read costs the container that process. */
static void heap_job_run(struct work *work)
{
	struct heap_job *job = container_of(work, struct heap_job, work);

	job->snaps = calloc(job->n_targets, sizeof(*job->snaps));
	if (!job->snaps) {
		job->result = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < job->n_targets; i++)
		if (target_run(job, &job->targets[i]))
			job->n_failed++;
	if (!job->n_snaps)
		return;
	job->result = heap_job_encode(job, false, &job->pprof);
	if (!job->result)
		job->result = heap_job_encode(job, true, &job->pprof_delta);
}

/* Ends a round: readers that were not asked for go. */
static void heap_job_sweep(struct work *work)
{
	struct heap_job *job = container_of(work, struct heap_job, work);
	struct heap_worker *w = &job->profiler->own;
	struct heap_reader *reader, *next;

	HASH_ITER(hh, w->readers, reader, next)
		if (reader->round != w->round)
			reader_free(w, reader);
	w->round++;
	space_cache_sweep(w->spaces);
	job->caches = (struct heap_profiler_caches){
		.symbol_bytes = symbolizer_bytes(w->symbolizer),
		.space_bytes = space_cache_bytes(w->spaces),
		.record_bytes = w->bytes,
	};
}

/* ---------------------------------------------------------------- on the loop */

static void heap_job_account(struct heap_job *job)
{
	struct heap_profiler *p = job->profiler;

	p->outcomes[HEAP_PROCESSES_FULL] += job->n_full;
	p->outcomes[HEAP_PROCESSES_FAILED] += job->n_failed;
	p->outcomes[HEAP_RECORDS_LEFT_OUT] += job->n_left_out;
	for (size_t i = 0; i < job->n_targets; i++) {
		struct heap_target *target = &job->targets[i];

		if (!target->is_go)
			continue;
		target->reading.go_version = target->go_version;
		/* what is refused is counted there */
		(void)goalloc_update(p->allocs, job->owner, &job->labels, &target->pid,
				     &target->reading);
	}
}

static int heap_job_profile(struct heap_job *job, struct profile **ret)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return -ENOMEM;
	profile->kind = PROFILE_GO_HEAP;
	profile->labels = job->labels;
	job->labels = (struct labels){0};
	profile->start_ns = job->start_ns;
	profile->duration_ns = job->duration_ns;
	profile->pprof_len = job->pprof.len;
	profile->pprof = buf_take(&job->pprof);
	profile->pprof_delta_len = job->pprof_delta.len;
	profile->pprof_delta = buf_take(&job->pprof_delta);
	*ret = profile;
	return 0;
}

static void heap_job_done(struct work *work)
{
	_cleanup_(heap_job_freep) struct heap_job *job = container_of(work, struct heap_job, work);
	struct heap_profiler *p = job->profiler;
	struct profile *profile;

	if (work->cancelled)
		return;
	if (job->ends_round) {
		goalloc_end_round(p->allocs, HEAP_PROFILER_KEEP_ROUNDS);
		p->caches = job->caches;
		return;
	}
	heap_job_account(job);
	if (!job->result && !job->pprof.len)
		return; /* no Go process, or nothing recorded yet */
	if (job->result || heap_job_profile(job, &profile)) {
		p->outcomes[HEAP_PROFILES_FAILED]++;
		return;
	}
	p->outcomes[HEAP_PROFILES_MADE]++;
	p->opts.out(p->opts.ctx, profile);
}

static int heap_job_new(struct heap_profiler *p, struct heap_job **ret)
{
	struct heap_job *job = calloc(1, sizeof(*job));

	if (!job)
		return -ENOMEM;
	job->work = (struct work){.run = heap_job_run, .done = heap_job_done};
	job->profiler = p;
	job->start_ns = p->start_ns;
	job->duration_ns = p->duration_ns;
	buf_init(&job->pprof, HEAP_PROFILER_PPROF_MAX);
	buf_init(&job->pprof_delta, HEAP_PROFILER_PPROF_MAX);
	*ret = job;
	return 0;
}

/* A round while it is gathered. */
struct heap_round {
	struct heap_profiler *profiler;
	struct heap_job *jobs;
};

static int round_job(struct heap_round *round, const struct owner *owner, struct heap_job **ret)
{
	_cleanup_(heap_job_freep) struct heap_job *fresh = NULL;
	struct heap_job *job;
	bool hash_oom = false;
	int r;

	HASH_FIND_STR(round->jobs, owner->key, job);
	if (job) {
		*ret = job;
		return 0;
	}
	if (HASH_COUNT(round->jobs) >= HEAP_PROFILER_CONTAINERS_MAX)
		return 1;
	r = heap_job_new(round->profiler, &fresh);
	if (!r)
		r = labels_copy(&owner->labels, &fresh->labels);
	if (r)
		return r;
	fresh->owner = strdup(owner->key);
	if (!fresh->owner)
		return -ENOMEM;
	HASH_ADD_KEYPTR(hh, round->jobs, fresh->owner, strlen(fresh->owner), fresh);
	if (hash_oom)
		return -ENOMEM;
	*ret = take_ptr(fresh);
	return 0;
}

static int on_process(void *ctx, const struct pid_id *pid, struct owner *owner)
{
	struct heap_round *round = ctx;
	struct heap_job *job;
	int r = round_job(round, owner, &job);

	if (!r)
		r = vec_grow(&job->targets, &job->cap_targets, job->n_targets + 1,
			     sizeof(*job->targets), HEAP_PROFILER_CONTAINER_MAX);
	if (r) {
		round->profiler->outcomes[HEAP_PROCESSES_FULL]++;
		return 0;
	}
	job->targets[job->n_targets++] = (struct heap_target){.pid = *pid};
	return 0;
}

static void round_submit(struct heap_round *round)
{
	struct heap_profiler *p = round->profiler;
	struct heap_job *job, *next;

	HASH_ITER(hh, round->jobs, job, next) {
		HASH_DEL(round->jobs, job);
		if (worker_submit(p->worker, &job->work)) {
			p->outcomes[HEAP_PROFILES_FAILED]++;
			heap_job_free(job);
		}
	}
	if (heap_job_new(p, &job))
		return;
	job->work.run = heap_job_sweep;
	job->ends_round = true;
	if (worker_submit(p->worker, &job->work))
		heap_job_free(job);
}

void heap_profiler_end_window(struct heap_profiler *p, uint64_t start_ns, uint64_t duration_ns)
{
	struct heap_round round = {.profiler = p};

	if (worker_pending(p->worker)) {
		p->outcomes[HEAP_ROUNDS_SKIPPED]++;
		return;
	}
	p->start_ns = start_ns;
	p->duration_ns = duration_ns;
	/* without memory for the list those that came first are read */
	(void)discovery_for_each_process(p->opts.discovery, on_process, &round);
	round_submit(&round);
}

int heap_profiler_new(const struct heap_profiler_opts *opts, struct heap_profiler **ret)
{
	struct heap_profiler *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->opts = *opts;
	p->own = (struct heap_worker){
		.proc = opts->proc,
		.force = opts->force,
		.max_bytes = opts->heap_bytes,
	};
	r = space_cache_new(opts->proc, &p->own.spaces);
	if (!r)
		r = symbolizer_new(&(struct symbolizer_opts){.proc = opts->proc,
							     .cache_bytes = opts->symbol_bytes},
				   &p->own.symbolizer);
	if (!r)
		r = goalloc_new(&p->allocs);
	if (!r)
		r = worker_new(opts->loop, "go-heap", HEAP_PROFILER_CONTAINERS_MAX + 1, &p->worker);
	if (r)
		heap_profiler_free(p);
	else
		*ret = p;
	return r;
}

void heap_profiler_free(struct heap_profiler *p)
{
	if (!p)
		return;
	worker_free(p->worker);
	heap_worker_deinit(&p->own);
	goalloc_free(p->allocs);
	free(p);
}

size_t heap_profiler_pending(const struct heap_profiler *p)
{
	return worker_pending(p->worker);
}

bool heap_profiler_view(const struct heap_profiler *p, const char *owner, struct goalloc_view *ret)
{
	return goalloc_view(p->allocs, owner, ret);
}

struct heap_profiler_caches heap_profiler_caches(const struct heap_profiler *p)
{
	return p->caches;
}

void heap_profiler_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc rounds = {
		"podprof_go_heap_reads", METRIC_COUNTER,
		"Heap profiles of containers, and what was left out of them.", NULL};
	static const char *const names[HEAP_OUTCOME_MAX] = {
		[HEAP_PROFILES_MADE] = "made",
		[HEAP_PROFILES_FAILED] = "failed",
		[HEAP_ROUNDS_SKIPPED] = "round_skipped",
		[HEAP_PROCESSES_FULL] = "processes_full",
		[HEAP_PROCESSES_FAILED] = "processes_failed",
		[HEAP_RECORDS_LEFT_OUT] = "records_left_out",
	};
	struct heap_profiler *p = ctx;

	goalloc_collect(p->allocs, sink);
	metric_by_name(sink, &rounds, "outcome", p->outcomes, names, HEAP_OUTCOME_MAX);
}
