// SPDX-License-Identifier: Apache-2.0
/*
 * The loop finds the processes, in slices, a worker reads and encodes, the loop answers. The worker
 * is not that of the windows, so neither waits for the other, and the readers of windows keep their
 * state of the window before. A process that blocks its reader costs only that request.
 */
#include "goprofile/http.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cpu_share.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "discovery/discovery.h"
#include "discovery/process_list.h"
#include "discovery/selection.h"
#include "goprofile/heap.h"
#include "goprofile/oneshot.h"
#include "goprofile/worker.h"
#include "server/httpd.h"
#include "server/pull_answer.h"

struct go_profile_http {
	struct go_profile_http_opts opts;
	struct go_profile_worker *worker;
	struct search *searches; /* the first is under way */
	struct loop_source *search;
	struct pull_job *deltas; /* between their two reads */
	size_t n_deltas;	 /* requests for differences, in any state */
	bool is_ending;		 /* a first read has no second */
	struct pull_source source;
	struct pull_counts counts;
};

/**
 * struct pull_job - a request: its processes, then its result
 * @later:  the loop's
 * @oneshot: of the thread that runs the job, and kept between two reads
 * @seconds: between two reads; 0: one read
 * @is_second: the first read is done
 * @timer:  the loop's, of the wait between the reads
 * @begun_ns: monotonic; of the first read
 * @cpu_ns: of the last read
 * @result: of reading and encoding: 0, BUF_FULL, -errno
 */
struct pull_job {
	struct go_profile_task task;
	struct go_profile_http *pull;
	struct httpd_later *later;
	struct pull_job *prev, *next; /* of deltas */
	_Atomic bool is_abandoned;    /* nobody waits for the answer */
	struct go_profile_oneshot oneshot;
	unsigned int seconds;
	bool is_second;
	struct loop_source *timer;
	uint64_t begun_ns;
	uint64_t cpu_ns;
	enum go_profile_kind kind;
	bool allocs;
	struct pid_id ids[GO_PROFILE_HTTP_PROCESSES_MAX];
	size_t n_ids;
	uint64_t n_left_out;
	size_t n_snaps;
	enum goruntime_state state;
	struct buf pprof;
	int result;
};

static void pull_job_free(struct pull_job *job)
{
	if (!job)
		return;
	go_profile_oneshot_deinit(&job->oneshot);
	buf_deinit(&job->pprof);
	free(job);
}

/* On the loop, when the request has its answer. */
static void pull_job_end(struct pull_job *job)
{
	loop_remove(job->timer);
	job->timer = NULL;
	job->pull->n_deltas -= job->seconds ? 1 : 0;
}

static void pull_job_finish(struct pull_job *job)
{
	if (job)
		pull_job_end(job);
	pull_job_free(job);
}

DEFINE_CLEANUP(struct pull_job *, pull_job_finishp, pull_job_finish);

/* ---------------------------------------------------------------- on the worker */

static int job_encode(struct pull_job *job, struct go_profile_oneshot *s)
{
	const struct go_profile_report_opts opts = {
		.time_ns = nsec_wall(),
		.duration_ns = job->is_second ? nsec_monotonic() - job->begun_ns : 0,
		.default_type = job->allocs ? "alloc_space" : NULL,
		.max_samples = GO_PROFILE_HTTP_SAMPLES_MAX,
		.max_bytes = GO_PROFILE_HTTP_PPROF_MAX,
		.doc_url = job->pull->opts.doc_url,
	};
	uint64_t n_left_out = 0;
	int r = go_profile_oneshot_encode(s, &opts, &job->pprof, &n_left_out);

	job->n_left_out += n_left_out + s->n_more;
	return r;
}

/* The first read of two. */
static bool is_first(const struct pull_job *job)
{
	return job->seconds && !job->is_second;
}

static int job_open(struct pull_job *job)
{
	const struct go_profile_http_opts *opts = &job->pull->opts;
	const size_t part = job->seconds ? 2 : 1;

	if (job->is_second) {
		go_profile_oneshot_again(&job->oneshot);
		return 0;
	}
	job->begun_ns = nsec_monotonic();
	job->oneshot = (struct go_profile_oneshot){
		.proc = opts->proc,
		.kind = job->kind,
		.max_bytes = opts->max_bytes / part,
		.symbol_bytes = opts->symbol_bytes / part,
		.is_twice = job->seconds > 0,
	};
	return go_profile_oneshot_init(&job->oneshot);
}

static void job_run(struct go_profile_task *task)
{
	struct pull_job *job = container_of(task, struct pull_job, task);
	struct go_profile_oneshot *s = &job->oneshot;
	uint64_t begun_ns = cpu_share_thread_ns();
	int r = job_open(job);

	for (size_t i = 0; !r && i < job->n_ids && !atomic_load(&job->is_abandoned); i++) {
		work_alive(&task->work);
		r = go_profile_oneshot_process(s, &job->ids[i]);
	}
	work_alive(&task->work);
	job->n_snaps = s->n_snaps;
	job->state = s->state;
	if (!r && !is_first(job) && s->n_snaps && !atomic_load(&job->is_abandoned))
		r = job_encode(job, s);
	job->result = r;
	job->cpu_ns = cpu_share_thread_ns() - begun_ns;
	if (!is_first(job)) {
		go_profile_oneshot_deinit(s);
		*s = (struct go_profile_oneshot){.n_snaps = 0};
	}
}

static void job_drop(struct go_profile_task *task)
{
	pull_job_free(container_of(task, struct pull_job, task));
}

/* ---------------------------------------------------------------- answers */

/* An answer must not come from here: a wait between two reads ends with the next turn. */
static void on_gone(void *ctx)
{
	struct pull_job *job = ctx;

	atomic_store(&job->is_abandoned, true);
	if (job->timer)
		(void)loop_arm(job->timer, 1, 0);
}

static void refuse(struct pull_job *job, enum pull_outcome outcome, unsigned int status,
		   const char *why)
{
	pull_refuse(&job->pull->counts, job->later, outcome, status, why);
}

/* The reason for a missing profile. @ret_is_failure: podprof's, and not the program's. */
static const char *why_nothing(enum goruntime_state state, bool *ret_is_failure)
{
	static const char *const texts[GORUNTIME_STATE_MAX] = {
		[GORUNTIME_NO_RUNTIME] = "not a Go program",
		[GORUNTIME_NO_SAMPLES_YET] = "nothing recorded yet",
		[GORUNTIME_DISABLED_BY_LINKER] =
			"its memory profiler is off: nothing in the program asks for heap profiles",
		[GORUNTIME_DISABLED_BY_PROGRAM] = "the program has not turned this profile on",
		[GORUNTIME_GONE] = "the process has ended, or runs another program now",
	};
	static const char *const failures[GORUNTIME_STATE_MAX] = {
		[GORUNTIME_DENIED] = "the kernel denies reading it: see 'podprof doctor'",
		[GORUNTIME_UNKNOWN_LAYOUT] =
			"a Go program of an unknown layout: see 'podprof inspect goruntime'",
		[GORUNTIME_TOO_LARGE] = "too many records: raise --memory-budget",
		[GORUNTIME_UNRESPONSIVE] = "reads of the process block",
	};
	const char *why = texts[state] ? texts[state] : failures[state];

	*ret_is_failure = !texts[state];
	return why ? why : "cannot be read";
}

static void answer_nothing(struct pull_job *job)
{
	bool is_failure;
	const char *why = why_nothing(job->state, &is_failure);
	char text[256];

	if (job->n_ids > 1 && job->state == GORUNTIME_NO_RUNTIME)
		snprintf(text, sizeof(text), "none of %zu processes is a Go program", job->n_ids);
	else if (job->n_ids > 1)
		snprintf(text, sizeof(text), "none of %zu processes; the first Go program: %s",
			 job->n_ids, why);
	else
		snprintf(text, sizeof(text), "%s", why);
	refuse(job, is_failure ? PULL_FAILED : PULL_NOTHING, is_failure ? 500 : 404, text);
}

static void answer_profile(struct pull_job *job)
{
	pull_send(&job->pull->counts, job->later,
		  job->allocs ? "allocs" : go_profile_kind_name(job->kind), &job->pprof,
		  job->n_left_out);
}

/* Between the two reads. */
static void on_timer(void *ctx)
{
	struct pull_job *job = ctx;
	struct go_profile_http *p = job->pull;

	DL_DELETE(p->deltas, job);
	loop_remove(job->timer);
	job->timer = NULL;
	job->is_second = true;
	if (atomic_load(&job->is_abandoned))
		refuse(job, PULL_GONE, 503, "the client has gone");
	else if (go_profile_worker_submit(p->worker, &job->task) == 0)
		return;
	else
		refuse(job, PULL_BUSY, 429, "other requests are waiting; retry later");
	pull_job_finish(job);
}

/* False: the request ends now, with what the first read has found. */
static bool may_wait(const struct pull_job *job)
{
	return is_first(job) && !job->pull->is_ending && !job->result &&
	       !atomic_load(&job->is_abandoned) &&
	       (job->n_snaps || job->state == GORUNTIME_NO_SAMPLES_YET);
}

/* False without memory. */
static bool wait_for_second(struct pull_job *job)
{
	struct go_profile_http *p = job->pull;
	const uint64_t until_ns = job->begun_ns + job->seconds * NSEC_PER_SEC;
	const uint64_t now_ns = nsec_monotonic();

	if (loop_add_timer(p->opts.loop, on_timer, job, &job->timer))
		return false;
	(void)loop_arm(job->timer, until_ns > now_ns ? until_ns - now_ns : 1, 0);
	DL_APPEND(p->deltas, job);
	return true;
}

static void job_done(struct work *work)
{
	_cleanup_(pull_job_finishp) struct pull_job *job =
		container_of(work, struct pull_job, task.work);
	struct cpu_share *share = job->pull->opts.share;

	if (share)
		cpu_share_charge(share, nsec_monotonic(), job->cpu_ns);
	job->cpu_ns = 0;
	if (!work->cancelled && may_wait(job) && wait_for_second(job)) {
		(void)take_ptr(job);
		return;
	}
	if (work->cancelled || (is_first(job) && job->pull->is_ending))
		refuse(job, PULL_FAILED, 503, "the agent ends");
	else if (atomic_load(&job->is_abandoned))
		refuse(job, PULL_GONE, 503, "the client has gone");
	else if (job->result)
		refuse(job, PULL_FAILED, 500,
		       job->result < 0 ? strerror(-job->result) : "the profile is too large");
	else if (!job->n_snaps)
		answer_nothing(job);
	else if (is_first(job))
		refuse(job, PULL_FAILED, 500, "out of memory");
	else
		answer_profile(job);
}

/* The job belongs to the thread from now on; the request does not. */
static void on_stuck(void *ctx, struct go_profile_task *task)
{
	struct pull_job *job = container_of(task, struct pull_job, task);

	(void)ctx;
	atomic_store(&job->is_abandoned, true);
	refuse(job, PULL_STUCK, 503, "a read of the process blocks");
	pull_job_end(job);
}

/* ---------------------------------------------------------------- who is asked for */

/**
 * struct search - for the processes of a request
 * @pid, @selection: the request's; @pid 0: none
 * @job:     gets the processes
 * @listing: NULL before the first step
 */
struct search {
	struct search *prev, *next;
	struct go_profile_http *pull;
	struct pull_job *job;
	struct process_listing *listing;
	uint64_t pid;
	struct selection selection;
	bool is_refused;
};

static void search_free(struct search *search)
{
	process_listing_free(search->listing);
	pull_job_finish(search->job);
	selection_deinit(&search->selection);
	free(search);
}

static int on_process(void *ctx, const struct pid_id *pid, struct entity *entity)
{
	struct search *search = ctx;
	struct pull_job *job = search->job;
	const struct go_profile_http_opts *opts = &search->pull->opts;

	if (search->pid ? pid->pid != search->pid
			: !entity || !selection_has(&search->selection, entity))
		return 0;
	if (!go_profile_policy_of(opts->mode, opts->wish, opts->ctx, entity).read)
		search->is_refused = true;
	else if (job->n_ids == array_size(job->ids))
		job->n_left_out++;
	else
		job->ids[job->n_ids++] = *pid;
	return 0;
}

/* The search is over: the worker takes the job, or the request gets its answer. @r: of the listing.
 */
static void search_end(struct search *search, int r)
{
	struct go_profile_http *p = search->pull;
	struct pull_job *job = search->job;

	if (r)
		refuse(job, PULL_FAILED, 500, "out of memory");
	else if (atomic_load(&job->is_abandoned))
		refuse(job, PULL_GONE, 503, "the client has gone");
	else if (job->n_ids && go_profile_worker_submit(p->worker, &job->task) == 0)
		search->job = NULL;
	else if (job->n_ids)
		refuse(job, PULL_BUSY, 429, "other requests are waiting; retry later");
	else if (search->is_refused)
		refuse(job, PULL_REFUSED, 404,
		       "not to be profiled: its pod, or a setting of the agent, says so");
	else
		refuse(job, PULL_NOTHING, 404,
		       search->pid ? "no such process is profiled"
				   : "no such container, pod or service with a process here");
	search_free(search);
}

/* One process of the first search. */
static bool search_step(void *ctx)
{
	struct go_profile_http *p = ctx;
	struct search *search = p->searches;
	int r = 0;

	if (!search)
		return false;
	if (!search->listing)
		r = discovery_list_processes(p->opts.discovery, on_process, search,
					     &search->listing);
	if (!r && !atomic_load(&search->job->is_abandoned))
		r = process_listing_step(search->listing);
	if (r == PROCESS_LISTING_MORE)
		return true;
	DL_DELETE(p->searches, search);
	search_end(search, r);
	return p->searches;
}

static size_t n_waiting(const struct go_profile_http *p)
{
	const struct search *search;
	size_t n = 0;

	DL_COUNT(p->searches, search, n);
	return n + go_profile_worker_pending(p->worker);
}

/* Takes @job and answers @later, now or after the search. */
static void search_begin(struct go_profile_http *p, const struct pull_ask *ask,
			 struct pull_job *job)
{
	const struct selection_words words = {ask->container, ask->pod, ask->service};
	struct search *search = calloc(1, sizeof(*search));
	int r;

	if (!search) {
		refuse(job, PULL_FAILED, 500, "out of memory");
		pull_job_finish(job);
		return;
	}
	search->pull = p;
	search->job = job;
	search->pid = ask->pid;
	r = selection_init(&search->selection, p->opts.discovery, &words);
	if (!r) {
		httpd_later_on_gone(job->later, on_gone, job);
		DL_APPEND(p->searches, search);
		(void)loop_arm(p->search, 0, 0); /* fails only for an invalid delay */
		return;
	}
	if (r > 0)
		refuse(job, PULL_NOTHING, 400, "more than one container's id begins like that");
	else
		refuse(job, PULL_FAILED, 500, "out of memory");
	search_free(search);
}

/* Checks the ceiling of waiting requests first, because the search of all processes has a cost. */
static void on_pull(void *ctx, const struct pull_ask *ask, struct httpd_later *later)
{
	struct pull_job *job = calloc(1, sizeof(*job));
	struct go_profile_http *p = ctx;

	if (!job) {
		pull_refuse(&p->counts, later, PULL_FAILED, 500, "out of memory");
		return;
	}
	if (n_waiting(p) > GO_PROFILE_HTTP_QUEUE_MAX ||
	    (ask->seconds && p->n_deltas == GO_PROFILE_HTTP_DELTAS_MAX) ||
	    (p->opts.share &&
	     cpu_share_wait_ns(p->opts.share, nsec_monotonic()) > GO_PROFILE_HTTP_DEBT_MAX_NS)) {
		pull_refuse(&p->counts, later, PULL_BUSY, 429,
			    "other requests are waiting; retry later");
		free(job);
		return;
	}
	job->task =
		(struct go_profile_task){.work.done = job_done, .run = job_run, .drop = job_drop};
	job->pull = p;
	job->later = later;
	job->kind = ask->kind;
	job->allocs = ask->allocs;
	job->seconds = ask->seconds;
	p->n_deltas += job->seconds ? 1 : 0;
	buf_init(&job->pprof, GO_PROFILE_HTTP_PPROF_MAX);
	search_begin(p, ask, job);
}

/* ---------------------------------------------------------------- all of it */

int go_profile_http_new(const struct go_profile_http_opts *opts, struct go_profile_http **ret)
{
	struct go_profile_http *p = calloc(1, sizeof(*p));
	const struct go_profile_worker_opts worker = {
		.loop = opts->loop,
		.name = "go-pull",
		/* second reads always find a place */
		.queue_max = GO_PROFILE_HTTP_QUEUE_MAX + GO_PROFILE_HTTP_DELTAS_MAX,
		.on_stuck = on_stuck,
		.ctx = p,
	};
	int r;

	if (!p)
		return -ENOMEM;
	p->opts = *opts;
	p->source = (struct pull_source){p, on_pull};
	r = loop_add_steps(opts->loop, search_step, p, &p->search);
	if (!r)
		r = go_profile_worker_new(&worker, &p->worker);
	if (r)
		go_profile_http_free(p);
	else
		*ret = p;
	return r;
}

void go_profile_http_free(struct go_profile_http *p)
{
	struct search *search, *next;
	struct pull_job *job, *next_job;

	if (!p)
		return;
	p->is_ending = true;
	DL_FOREACH_SAFE(p->deltas, job, next_job) {
		DL_DELETE(p->deltas, job);
		refuse(job, PULL_FAILED, 503, "the agent ends");
		pull_job_finish(job);
	}
	DL_FOREACH_SAFE(p->searches, search, next) {
		refuse(search->job, PULL_FAILED, 503, "the agent ends");
		search_free(search);
	}
	loop_remove(p->search);
	go_profile_worker_free(p->worker);
	free(p);
}

const struct pull_source *go_profile_http_source(const struct go_profile_http *p)
{
	return p ? &p->source : NULL;
}

void go_profile_http_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc pulls = {
		"podprof_go_pulls", METRIC_COUNTER,
		"Requests for Go's own profiles, and the parts left out of the answers.", NULL};
	const struct go_profile_http *p = ctx;

	pull_collect(&p->counts, &pulls, PULL_OUTCOME_MAX, sink);
}
