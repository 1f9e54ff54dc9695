// SPDX-License-Identifier: Apache-2.0
/*
 * Reading a heap takes milliseconds, and a target can slow the read down, so a worker reads and
 * alone uses the reader. A round is one job for each container, with its present processes, and a
 * last job that forgets processes without a read in the round. If a process blocks the worker, the
 * container is left alone for an hour.
 *
 * In the first seconds after the start a container may still lack names. Such a container is
 * skipped in this round. The next round includes everything since the start. With the late names
 * the labels may equal the labels of other containers, and all processes with equal labels share
 * one profile a window.
 *
 * A first round, the baseline, makes no profiles. It reads the counters of processes older than the
 * agent, so that the first window has a difference. Without the baseline the first profiles after
 * each roll-out of the agent would say that nothing is allocated.
 */
#include "goprofile/profiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/vec.h"
#include "base/worker.h"
#include "discovery/discovery.h"
#include "discovery/entity.h"
#include "discovery/process_list.h"
#include "goprofile/heap.h"
#include "goprofile/worker.h"

/* Processes of a container in a round. Reached:
 * `podprof_go_heap_reads_total{outcome="processes_over_limit"}`. */
#define GO_PROFILER_CONTAINER_MAX  1024
/* Containers in a round. Reached: `podprof_go_heap_reads_total{outcome="processes_over_limit"}`. */
#define GO_PROFILER_CONTAINERS_MAX 4096
/* Rounds that a container's counters outlive the container, so that the last values are scraped. */
#define GO_PROFILER_KEEP_ROUNDS	   3
/* Log lines about processes in a round; the others are only counted. Reached: one line says how
 * many there were. */
#define GO_PROFILER_NEWS_MAX	   16
/* Longest time of a container without names: ENTITY_PENDING_NS from the discovery, soon after
 * the start of the first process. */
#define GO_PROFILER_UNNAMED_NS	   (ENTITY_PENDING_NS + 2 * NSEC_PER_SEC)
/* Interval of the checks for names at the end. */
#define GO_PROFILER_NAMES_NS	   (250 * NSEC_PER_MSEC)

/* Containers left alone because a process of theirs blocked a reader. Reached: the oldest entry
 * is removed, and the container is tried again. */
#define GO_PROFILER_GIVEN_UP_MAX 64
#define GO_PROFILER_GIVEN_UP_NS	 (3600 * NSEC_PER_SEC)

enum go_profiler_outcome {
	GO_PROFILER_MADE,
	GO_PROFILER_FAILED,
	GO_PROFILER_ROUNDS_SKIPPED,    /* the round before was not finished */
	GO_PROFILER_PROCESSES_FULL,    /* over a ceiling: not read */
	GO_PROFILER_PROCESSES_FAILED,  /* podprof's own failure, for lack of memory */
	GO_PROFILER_PROCESSES_REFUSED, /* by their pods' annotations: not read */
	GO_PROFILER_PROCESSES_STUCK, /* of containers with a process that blocked a reader: not read
				      */
	GO_PROFILER_PROCESSES_UNNAMED, /* of containers still without names: read in the next round
					*/
	GO_PROFILER_RECORDS_LEFT_OUT,  /* by a ceiling of the profile */
	GO_PROFILER_OUTCOME_MAX,
};

/* A container that is left alone, and the process that caused this. */
struct given_up {
	char *key;
	struct pid_id pid;
	uint64_t until_ns;
	UT_hash_handle hh;
};

struct go_profiler {
	struct go_profiler_opts opts;
	struct go_profile_worker *worker;
	struct given_up *given_up;
	struct goalloc *allocs;
	struct loop_source *timer;  /* for names, at the end */
	uint64_t names_deadline_ns; /* monotonic; 0: not the end, nor the baseline */
	bool waiting;		    /* for that timer */
	bool baseline;		    /* the next round is the baseline, or the round under way */
	struct go_profiler_round *round; /* being collected, in slices */
	struct loop_source *list;
	uint64_t first_boot_ns; /* the first window's start, boot clock; 0 before */
	uint64_t start_ns;	/* of the window, wall clock */
	/* the same, boot clock: stays true if the wall clock is set. After skipped rounds the start
	 * of the first window without a round */
	uint64_t start_boot_ns;
	uint64_t skipped_boot_ns; /* of the first skipped window; 0: none */
	uint64_t duration_ns;
	uint64_t outcomes[GO_PROFILER_OUTCOME_MAX];
	uint64_t forced[FORCE_OUTCOME_MAX];   /* attempts to turn sampling on */
	uint64_t states[GORUNTIME_STATE_MAX]; /* of the last round */
	uint64_t round_states[GORUNTIME_STATE_MAX];
	uint64_t round_news;
	struct go_profile_memory caches;
};

static const enum profile_kind exported[] = {
	[GO_PROFILE_HEAP] = PROFILE_GO_HEAP,
	[GO_PROFILE_MUTEX] = PROFILE_GO_MUTEX,
	[GO_PROFILE_BLOCK] = PROFILE_GO_BLOCK,
};

struct go_profiler_part {
	struct buf pprof;
	struct buf pprof_delta;
};

struct go_profiler_job {
	struct go_profile_task task;
	struct go_profiler *profiler; /* not for the worker */
	char *key; /* of the series: one job for all entities with equal labels */
	struct labels labels;
	struct go_profile_target *targets;
	size_t n_targets;
	size_t cap_targets;
	_Atomic size_t at; /* the current target */
	uint64_t since_ns; /* boot clock: processes that began later are read for the first time */
	uint64_t start_ns;
	uint64_t duration_ns;
	struct profile_limits limits;
	char *doc_url;					     /* NULL: none */
	struct go_profiler_part parts[array_size(exported)]; /* by kind */
	int result;
	uint64_t n_full;
	uint64_t n_failed;
	uint64_t n_left_out;
	struct go_profile_memory caches; /* at the round's end */
	bool baseline;			 /* nothing is encoded */
	bool ends_round;
	UT_hash_handle hh; /* while a round is gathered, by entity */
};

static void job_free(struct go_profiler_job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < array_size(exported); i++) {
		buf_deinit(&job->parts[i].pprof);
		buf_deinit(&job->parts[i].pprof_delta);
	}
	for (size_t i = 0; i < job->n_targets; i++)
		go_profile_target_deinit(&job->targets[i]);
	labels_deinit(&job->labels);
	free(job->targets);
	free(job->key);
	free(job->doc_url);
	free(job);
}

DEFINE_CLEANUP(struct go_profiler_job *, job_freep, job_free);

/* ---------------------------------------------------------------- on the worker */

static int job_encode(struct go_profiler_job *job, enum go_profile_kind kind, bool delta,
		      struct buf *ret)
{
	const struct go_profile_report_opts opts = {
		.delta = delta,
		.time_ns = job->start_ns,
		.duration_ns = job->duration_ns,
		.max_samples = job->limits.samples,
		.max_bytes = job->limits.bytes,
		.doc_url = job->doc_url,
	};
	struct go_profile_report_stats stats;
	int r;

	work_alive(&job->task.work);
	r = go_profile_reader_encode(job->task.reader, kind, job->targets, job->n_targets, &opts,
				     ret, &stats);
	if (!r)
		job->n_left_out += stats.n_left_out;
	return r;
}

static void job_read(struct go_profiler_job *job, struct go_profile_target *target)
{
	/* an unreadable process costs the container only that process */
	if (go_profile_reader_read(job->task.reader, job->since_ns, target))
		job->n_failed++;
	if (target->full)
		job->n_full++;
}

static void job_run(struct go_profile_task *task)
{
	struct go_profiler_job *job = container_of(task, struct go_profiler_job, task);

	go_profile_reader_begin(task->reader);
	for (size_t i = 0; i < job->n_targets; i++) {
		work_alive(&task->work);
		job->at = i;
		job_read(job, &job->targets[i]);
	}
	/* both forms of each kind */
	for (size_t i = 0; !job->baseline && !job->result && i < array_size(exported); i++) {
		job->result = job_encode(job, (enum go_profile_kind)i, false, &job->parts[i].pprof);
		if (!job->result)
			job->result = job_encode(job, (enum go_profile_kind)i, true,
						 &job->parts[i].pprof_delta);
	}
}

/* End a round: forget processes without a read. */
static void job_sweep(struct go_profile_task *task)
{
	struct go_profiler_job *job = container_of(task, struct go_profiler_job, task);

	job->caches = go_profile_reader_end_round(job->task.reader);
}

static void job_drop(struct go_profile_task *task)
{
	job_free(container_of(task, struct go_profiler_job, task));
}

/* ---------------------------------------------------------------- on the loop */

/* Log a process once, and after each change of the state. */
static void job_log(struct go_profiler_job *job, const struct go_profile_target *target,
		    const struct go_profile_found *found)
{
	const char *service = labels_get(&job->labels, "service_name");

	if (!found->news || job->profiler->round_news++ >= GO_PROFILER_NEWS_MAX)
		return;
	log_info("the state of a Go program's heap profile",
		 log_str("state", goruntime_state_name(found->state)),
		 log_uint("pid", target->pid.pid), log_str("service", service ? service : ""),
		 log_str("go", found->go_version));
}

static void job_account_one(struct go_profiler_job *job, const struct go_profile_target *target,
			    struct go_profile_found *found)
{
	const struct goalloc_who who = {.pid = target->pid, .number = found->number};
	struct go_profiler *p = job->profiler;

	p->round_states[found->state]++;
	if (found->forced < FORCE_OUTCOME_MAX)
		p->forced[found->forced]++;
	job_log(job, target, found);
	found->reading.go_version = found->go_version;
	/* goalloc_update() counts refused readings */
	(void)goalloc_update(p->allocs, job->key, &job->labels, &who, &found->reading);
}

static void job_account(struct go_profiler_job *job)
{
	struct go_profiler *p = job->profiler;

	p->outcomes[GO_PROFILER_PROCESSES_FULL] += job->n_full;
	p->outcomes[GO_PROFILER_PROCESSES_FAILED] += job->n_failed;
	p->outcomes[GO_PROFILER_RECORDS_LEFT_OUT] += job->n_left_out;
	goalloc_keep(p->allocs, job->key);
	for (size_t i = 0; i < job->n_targets; i++) {
		struct go_profile_target *target = &job->targets[i];

		for (size_t k = 0; k < target->n_found; k++)
			job_account_one(job, target, &target->found[k]);
		if (!target->n_found && !target->full)
			p->round_states[target->state]++;
	}
}

static int job_profile(struct go_profiler_job *job, enum go_profile_kind kind, struct profile **ret)
{
	struct profile *profile = calloc(1, sizeof(*profile));
	struct go_profiler_part *p = &job->parts[kind];

	if (!profile)
		return -ENOMEM;
	if (labels_copy(&job->labels, &profile->labels)) {
		free(profile);
		return -ENOMEM;
	}
	profile->kind = exported[kind];
	profile->start_ns = job->start_ns;
	profile->duration_ns = job->duration_ns;
	profile->pprof_len = p->pprof.len;
	profile->pprof = buf_take(&p->pprof);
	profile->pprof_delta_len = p->pprof_delta.len;
	profile->pprof_delta = buf_take(&p->pprof_delta);
	*ret = profile;
	return 0;
}

/* No profile without a Go process or without records. */
static void job_out(struct go_profiler_job *job, enum go_profile_kind kind)
{
	struct go_profiler *p = job->profiler;
	struct profile *profile;

	if (!job->parts[kind].pprof.len)
		return;
	if (job_profile(job, kind, &profile)) {
		p->outcomes[GO_PROFILER_FAILED]++;
		return;
	}
	p->outcomes[GO_PROFILER_MADE]++;
	p->opts.out(p->opts.ctx, profile);
}

static void round_done(struct go_profiler *p, const struct go_profiler_job *job)
{
	goalloc_end_round(p->allocs, GO_PROFILER_KEEP_ROUNDS);
	p->caches = job->caches;
	memcpy(p->states, p->round_states, sizeof(p->states));
	memset(p->round_states, 0, sizeof(p->round_states));
	if (p->round_news > GO_PROFILER_NEWS_MAX)
		log_info("more Go heaps, not logged one by one",
			 log_uint("n", p->round_news - GO_PROFILER_NEWS_MAX));
	p->round_news = 0;
}

static void job_done(struct work *work)
{
	_cleanup_(job_freep) struct go_profiler_job *job =
		container_of(work, struct go_profiler_job, task.work);
	struct go_profiler *p = job->profiler;

	if (work->cancelled)
		return;
	if (job->ends_round) {
		round_done(p, job);
		return;
	}
	job_account(job);
	if (job->result) {
		p->outcomes[GO_PROFILER_FAILED]++;
		return;
	}
	for (size_t i = 0; i < array_size(exported); i++)
		job_out(job, (enum go_profile_kind)i);
}

/* Earliest start of a container without names at the end of the last window, boot clock. */
static uint64_t since_ns(const struct go_profiler *p)
{
	uint64_t since = p->start_boot_ns > GO_PROFILER_UNNAMED_NS
				 ? p->start_boot_ns - GO_PROFILER_UNNAMED_NS
				 : 0;

	return since > p->first_boot_ns ? since : p->first_boot_ns;
}

static int job_new(struct go_profiler *p, struct go_profiler_job **ret)
{
	struct go_profiler_job *job = calloc(1, sizeof(*job));

	if (!job)
		return -ENOMEM;
	job->task = (struct go_profile_task){
		.work.done = job_done,
		.run = job_run,
		.drop = job_drop,
	};
	job->profiler = p;
	job->baseline = p->baseline;
	job->since_ns = since_ns(p);
	job->start_ns = p->start_ns;
	job->duration_ns = p->duration_ns;
	job->limits = p->opts.limits;
	for (size_t i = 0; i < array_size(exported); i++) {
		buf_init(&job->parts[i].pprof, job->limits.bytes);
		buf_init(&job->parts[i].pprof_delta, job->limits.bytes);
	}
	*ret = job;
	return 0;
}

/* ---------------------------------------------------------------- processes that let us wait */

static void given_up_free(struct go_profiler *p, struct given_up *g)
{
	HASH_DEL(p->given_up, g);
	free(g->key);
	free(g);
}

static void give_up(struct go_profiler *p, const char *key, const struct pid_id *pid)
{
	struct given_up *g = calloc(1, sizeof(*g));
	bool hash_oom = false;

	if (HASH_COUNT(p->given_up) >= GO_PROFILER_GIVEN_UP_MAX)
		given_up_free(p, p->given_up); /* the oldest */
	if (g)
		g->key = strdup(key);
	if (!g || !g->key) {
		free(g);
		return; /* the process will block a reader again */
	}
	g->pid = *pid;
	g->until_ns = nsec_boot() + GO_PROFILER_GIVEN_UP_NS;
	HASH_ADD_KEYPTR(hh, p->given_up, g->key, strlen(g->key), g);
	if (hash_oom) {
		free(g->key);
		free(g);
	}
}

/* Report the process with the reason for the missing values. */
static void tell_stuck(struct go_profiler *p, const char *key, const struct labels *labels,
		       const struct pid_id *pid)
{
	const struct goalloc_who who = {
		.pid = *pid,
		.number = goalloc_first_number(p->allocs, key, pid),
	};
	const struct goalloc_reading reading = {
		.go_version = "",
		.source = "profile",
		.state = goruntime_state_name(GORUNTIME_UNRESPONSIVE),
	};

	p->round_states[GORUNTIME_UNRESPONSIVE]++;
	(void)goalloc_update(p->allocs, key, labels, &who, &reading);
}

static void on_stuck(void *ctx, struct go_profile_task *task)
{
	struct go_profiler_job *job = container_of(task, struct go_profiler_job, task);
	const char *service = labels_get(&job->labels, "service_name");
	struct go_profiler *p = ctx;
	const struct pid_id *pid;

	if (job->ends_round || !job->n_targets)
		return;
	pid = &job->targets[job->at].pid;
	p->outcomes[GO_PROFILER_PROCESSES_STUCK] += job->n_targets;
	give_up(p, job->key, pid);
	tell_stuck(p, job->key, &job->labels, pid);
	log_warn("reading a process for Go profiles blocks, skipping its container for an hour",
		 log_uint("pid", pid->pid), log_str("service", service ? service : ""));
}

static bool is_given_up(struct go_profiler *p, const char *key, const struct entity *entity,
			const struct pid_id *pid)
{
	struct given_up *g;

	HASH_FIND_STR(p->given_up, key, g);
	if (!g)
		return false;
	if (nsec_boot() >= g->until_ns) {
		given_up_free(p, g);
		return false;
	}
	if (pid_id_equal(pid, &g->pid))
		tell_stuck(p, key, &entity->labels, pid);
	return true;
}

/* ---------------------------------------------------------------- a round */

/* A round during collection. @key: of the process that is listed. */
struct go_profiler_round {
	struct go_profiler *profiler;
	struct process_listing *listing;
	struct go_profiler_job *jobs;
	char *key;
};

/* The key of the job: entities with equal labels are one series. */
static int round_key(struct go_profiler_round *round, const struct entity *entity)
{
	free(round->key);
	round->key = labels_key(&entity->labels);
	return round->key ? 0 : -ENOMEM;
}

static int round_job(struct go_profiler_round *round, const struct entity *entity,
		     struct go_profiler_job **ret)
{
	_cleanup_(job_freep) struct go_profiler_job *fresh = NULL;
	struct go_profiler_job *job;
	bool hash_oom = false;
	int r;

	HASH_FIND_STR(round->jobs, round->key, job);
	if (job) {
		*ret = job;
		return 0;
	}
	if (HASH_COUNT(round->jobs) >= GO_PROFILER_CONTAINERS_MAX)
		return 1;
	r = job_new(round->profiler, &fresh);
	if (!r)
		r = labels_copy(&entity->labels, &fresh->labels);
	if (r)
		return r;
	fresh->key = strdup(round->key);
	if (!fresh->key)
		return -ENOMEM;
	if (round->profiler->opts.doc_url) {
		fresh->doc_url = strdup(round->profiler->opts.doc_url);
		if (!fresh->doc_url)
			return -ENOMEM;
	}
	HASH_ADD_KEYPTR(hh, round->jobs, fresh->key, strlen(fresh->key), fresh);
	if (hash_oom)
		return -ENOMEM;
	*ret = take_ptr(fresh);
	return 0;
}

static int on_process(void *ctx, const struct pid_id *pid, struct entity *entity)
{
	struct go_profiler_round *round = ctx;
	const struct go_profiler_opts *opts = &round->profiler->opts;
	struct go_profile_want want =
		go_profile_policy_of(opts->mode, opts->wish, opts->ctx, entity);
	struct go_profiler_job *job;
	int r;

	/* All counts of such a process belong to its first window. */
	if (round->profiler->baseline && pid_began_since(pid, round->profiler->first_boot_ns))
		return 0;
	if (!want.read) {
		round->profiler->outcomes[GO_PROFILER_PROCESSES_REFUSED]++;
		return 0;
	}
	if (entity->pending && (round->profiler->baseline || !round->profiler->names_deadline_ns)) {
		round->profiler->outcomes[GO_PROFILER_PROCESSES_UNNAMED]++;
		return 0;
	}
	r = round_key(round, entity);
	if (!r && is_given_up(round->profiler, round->key, entity, pid)) {
		round->profiler->outcomes[GO_PROFILER_PROCESSES_STUCK]++;
		return 0;
	}
	if (!r)
		r = round_job(round, entity, &job);
	if (!r)
		r = vec_grow(&job->targets, &job->cap_targets, job->n_targets + 1,
			     sizeof(*job->targets), GO_PROFILER_CONTAINER_MAX);
	if (r) {
		round->profiler->outcomes[GO_PROFILER_PROCESSES_FULL]++;
		return 0;
	}
	job->targets[job->n_targets++] = (struct go_profile_target){
		.pid = *pid,
		.first_number = goalloc_first_number(round->profiler->allocs, round->key, pid),
		.force = want.force,
	};
	return 0;
}

static void round_submit(struct go_profiler_round *round)
{
	struct go_profiler *p = round->profiler;
	struct go_profiler_job *job, *next;

	HASH_ITER(hh, round->jobs, job, next) {
		HASH_DEL(round->jobs, job);
		if (go_profile_worker_submit(p->worker, &job->task)) {
			p->outcomes[GO_PROFILER_FAILED]++;
			job_free(job);
		}
	}
	if (job_new(p, &job))
		return;
	job->task.run = job_sweep;
	job->ends_round = true;
	if (go_profile_worker_submit(p->worker, &job->task))
		job_free(job);
}

static void round_free(struct go_profiler_round *round)
{
	struct go_profiler_job *job, *next;

	if (!round)
		return;
	HASH_ITER(hh, round->jobs, job, next) {
		HASH_DEL(round->jobs, job);
		job_free(job);
	}
	process_listing_free(round->listing);
	free(round->key);
	free(round);
}

/* Without memory for the whole list, the first processes are read. */
static bool list_step(void *ctx)
{
	struct go_profiler *p = ctx;
	struct go_profiler_round *round = p->round;

	if (process_listing_step(round->listing) == PROCESS_LISTING_MORE)
		return true;
	p->round = NULL;
	round_submit(round);
	round_free(round);
	if (p->baseline)
		p->names_deadline_ns = 0;
	p->baseline = false;
	return false;
}

static void read_round(struct go_profiler *p)
{
	p->round = calloc(1, sizeof(*p->round));
	if (!p->round ||
	    discovery_list_processes(p->opts.discovery, on_process, p->round, &p->round->listing)) {
		round_free(take_ptr(p->round));
		p->outcomes[GO_PROFILER_FAILED]++;
		return;
	}
	p->round->profiler = p;
	(void)loop_arm(p->list, 0, 0); /* fails only for an invalid delay */
}

/* Whether all entities have their names, or the time is over. */
static bool has_names(const struct go_profiler *p)
{
	struct entity *entity = NULL;

	while ((entity = discovery_next_entity(p->opts.discovery, entity)))
		if (entity->pending)
			return nsec_monotonic() >= p->names_deadline_ns;
	return true;
}

/* Start the baseline or the last round. */
static void on_names(void *ctx)
{
	struct go_profiler *p = ctx;

	if (!has_names(p))
		return;
	(void)loop_disarm(p->timer);
	p->waiting = false;
	read_round(p);
}

static void wait_for_names(struct go_profiler *p)
{
	p->waiting = !has_names(p) &&
		     loop_arm(p->timer, GO_PROFILER_NAMES_NS, GO_PROFILER_NAMES_NS) == 0;
	if (!p->waiting)
		read_round(p);
}

/* @start_ns, wall clock, by the boot clock. */
static uint64_t boot_of(uint64_t start_ns)
{
	const int64_t boot_ns = (int64_t)(nsec_boot() - (nsec_wall() - start_ns));

	return boot_ns > 0 ? (uint64_t)boot_ns : 1;
}

static void set_start(struct go_profiler *p, uint64_t start_ns)
{
	p->start_ns = start_ns;
	p->start_boot_ns = p->skipped_boot_ns ? p->skipped_boot_ns : boot_of(start_ns);
	p->skipped_boot_ns = 0;
	if (!p->first_boot_ns)
		p->first_boot_ns = p->start_boot_ns;
}

void go_profiler_begin(struct go_profiler *p, uint64_t start_ns, uint64_t wait_ns)
{
	set_start(p, start_ns);
	p->names_deadline_ns = nsec_monotonic() + wait_ns;
	p->baseline = true;
	wait_for_names(p);
}

/* Too late for the baseline: the first window has ended. */
static void end_baseline(struct go_profiler *p)
{
	if (!p->baseline || p->round)
		return;
	(void)loop_disarm(p->timer);
	p->waiting = p->baseline = false;
	p->names_deadline_ns = 0;
}

void go_profiler_end_window(struct go_profiler *p, uint64_t start_ns, uint64_t duration_ns)
{
	end_baseline(p);
	if (p->waiting || p->round || go_profile_worker_pending(p->worker)) {
		p->outcomes[GO_PROFILER_ROUNDS_SKIPPED]++;
		if (!p->skipped_boot_ns)
			p->skipped_boot_ns = boot_of(start_ns);
		return;
	}
	set_start(p, start_ns);
	p->duration_ns = duration_ns;
	if (p->names_deadline_ns)
		wait_for_names(p);
	else
		read_round(p);
}

int go_profiler_new(const struct go_profiler_opts *opts, struct go_profiler **ret)
{
	struct go_profile_worker_opts worker = {
		.loop = opts->loop,
		.reader = {.proc = opts->proc,
			   .kinds = opts->no_contention ? 1u << GO_PROFILE_HEAP
							: GO_PROFILE_CUMULATIVE,
			   .rounds = true,
			   .record_bytes = opts->heap_bytes,
			   .symbol_bytes = opts->symbol_bytes},
		.queue_max = GO_PROFILER_CONTAINERS_MAX + 1,
		.stuck_ns = opts->stuck_ns,
		.on_stuck = on_stuck,
	};
	struct go_profiler *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->opts = *opts;
	p->opts.limits = profile_limits_within(opts->limits, profile_limits_max);
	worker.ctx = p;
	r = goalloc_new(&p->allocs);
	if (!r)
		r = loop_add_timer(opts->loop, on_names, p, &p->timer);
	if (!r)
		r = loop_add_steps(opts->loop, list_step, p, &p->list);
	if (!r)
		r = go_profile_worker_new(&worker, &p->worker);
	if (r)
		go_profiler_free(p);
	else
		*ret = p;
	return r;
}

void go_profiler_free(struct go_profiler *p)
{
	if (!p)
		return;
	go_profile_worker_free(p->worker);
	loop_remove(p->timer);
	loop_remove(p->list);
	round_free(p->round);
	while (p->given_up)
		given_up_free(p, p->given_up);
	goalloc_free(p->allocs);
	free(p);
}

size_t go_profiler_pending(const struct go_profiler *p)
{
	return go_profile_worker_pending(p->worker) + (p->waiting || p->round ? 1 : 0);
}

void go_profiler_finish(struct go_profiler *p, uint64_t wait_ns)
{
	end_baseline(p);
	p->names_deadline_ns = nsec_monotonic() + wait_ns;
}

bool go_profiler_view(const struct go_profiler *p, const struct entity *entity,
		      struct goalloc_view *ret)
{
	_cleanup_(freep) char *key = labels_key(&entity->labels);

	return key && goalloc_view(p->allocs, key, ret);
}

struct go_profile_memory go_profiler_memory(const struct go_profiler *p)
{
	return p->caches;
}

void go_profiler_collect(void *ctx, struct metric_sink *sink, size_t part)
{
	static const struct metric_family_desc rounds = {
		"podprof_go_heap_reads", METRIC_COUNTER,
		"Profiles of Go programs by container, and the parts left out.", NULL};
	static const char *const names[GO_PROFILER_OUTCOME_MAX] = {
		[GO_PROFILER_MADE] = "ok",
		[GO_PROFILER_FAILED] = "failed",
		[GO_PROFILER_ROUNDS_SKIPPED] = "round_skipped",
		[GO_PROFILER_PROCESSES_FULL] = "processes_over_limit",
		[GO_PROFILER_PROCESSES_FAILED] = "processes_failed",
		[GO_PROFILER_PROCESSES_REFUSED] = "processes_opted_out",
		[GO_PROFILER_PROCESSES_STUCK] = "processes_unresponsive",
		[GO_PROFILER_PROCESSES_UNNAMED] = "processes_pending_names",
		[GO_PROFILER_RECORDS_LEFT_OUT] = "records_dropped",
	};
	static const struct metric_family_desc states = {
		"podprof_go_processes", METRIC_GAUGE,
		"Processes by state of their Go heaps; each Go runtime of a process counts.", NULL};
	static const struct metric_family_desc forced = {"podprof_go_forced", METRIC_COUNTER,
							 "Attempts to turn Go's heap sampling on.",
							 NULL};
	const char *state_names[GORUNTIME_STATE_MAX], *force_names[FORCE_OUTCOME_MAX];
	struct go_profiler *p = ctx;

	if (part < GOALLOC_PARTS) {
		goalloc_collect(p->allocs, sink, part);
		return;
	}
	for (int i = 0; i < GORUNTIME_STATE_MAX; i++)
		state_names[i] = goruntime_state_name(i);
	for (int i = 0; i < FORCE_OUTCOME_MAX; i++)
		force_names[i] = force_outcome_name(i);
	metric_by_name(sink, &states, "state", p->states, state_names, GORUNTIME_STATE_MAX);
	metric_by_name(sink, &forced, "outcome", p->forced, force_names, FORCE_OUTCOME_MAX);
	metric_by_name(sink, &rounds, "outcome", p->outcomes, names, GO_PROFILER_OUTCOME_MAX);
}
