// SPDX-License-Identifier: Apache-2.0
#include "server/job.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <utlist.h>

#include "base/cleanup.h"
#include "base/cpu_share.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/watchdog.h"

/* Longest sleep of a checkpoint before it looks again: the agent's end waits for it. */
#define HTTP_JOB_NAP_NS	 (20 * NSEC_PER_MSEC)
#define HTTP_JOB_RETRY_S 5

enum job_count {
	JOB_MADE,
	JOB_GONE,
	JOB_BUSY,
	JOB_ABANDONED,
	JOB_EXPIRED,
	JOB_BLOCKED,
	JOB_FAILED,
	JOB_COUNT_MAX,
};

/**
 * struct http_jobs_common - what a job uses, also after the end of the server
 * @refs:      of the server and of each job
 * @n_blocked: threads that wait for a disk
 * @lock:      guards @share, which is NULL at the end of the server
 */
struct http_jobs_common {
	_Atomic unsigned int refs;
	_Atomic unsigned int n_blocked;
	_Atomic bool is_ending;
	pthread_mutex_t lock;
	struct cpu_share *share;
};

/* @preparing: by @steps, one after the other; @blocked: of abandoned jobs, to be answered by @timer
 * at once */
struct http_jobs {
	struct worker *worker;
	struct loop_source *steps;
	struct http_job *preparing;
	size_t n_preparing;
	struct watchdog *watchdog;
	struct loop_source *timer;
	struct httpd_later *blocked[WATCHDOG_THREADS_MAX + 1];
	size_t n_blocked;
	struct http_jobs_common *common;
	uint64_t counts[JOB_COUNT_MAX];
};

/* ---------------------------------------------------------------- on the worker */

static void common_unref(struct http_jobs_common *common)
{
	if (!common || atomic_fetch_sub(&common->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&common->lock);
	free(common);
}

static void charge(struct http_job *job)
{
	struct http_jobs_common *common = job->common;
	uint64_t cpu_ns = cpu_share_thread_ns();

	pthread_mutex_lock(&common->lock);
	if (common->share)
		cpu_share_charge(common->share, nsec_monotonic(), cpu_ns - job->charged_ns);
	pthread_mutex_unlock(&common->lock);
	job->charged_ns = cpu_ns;
}

static uint64_t debt_ns(struct http_jobs_common *common)
{
	uint64_t wait_ns = 0;

	pthread_mutex_lock(&common->lock);
	if (common->share)
		wait_ns = cpu_share_wait_ns(common->share, nsec_monotonic());
	pthread_mutex_unlock(&common->lock);
	return wait_ns;
}

bool http_job_go_on(struct http_job *job)
{
	uint64_t wait_ns;

	charge(job);
	for (;;) {
		work_alive(&job->work);
		if (atomic_load(&job->is_abandoned) || atomic_load(&job->common->is_ending) ||
		    nsec_monotonic() - job->begun_ns > HTTP_JOB_AGE_MAX_NS)
			return false;
		wait_ns = debt_ns(job->common);
		if (!wait_ns)
			return true;
		wait_ns = wait_ns < HTTP_JOB_NAP_NS ? wait_ns : HTTP_JOB_NAP_NS;
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)wait_ns}, NULL);
	}
}

static int job_make(struct http_job *job)
{
	int r;

	if (job->reads_disk && atomic_load(&job->common->n_blocked))
		return HTTP_JOB_BLOCKED;
	r = job->run(job, &job->response.body);
	if (!r && job->gzip && job->response.body.len)
		r = httpd_compress(&job->response);
	return r;
}

static void job_run(struct work *work)
{
	struct http_job *job = container_of(work, struct http_job, work);

	job->begun_ns = nsec_monotonic();
	job->charged_ns = cpu_share_thread_ns();
	job->result = http_job_go_on(job) ? job_make(job) : HTTP_JOB_STOPPED;
	charge(job);
}

/* ---------------------------------------------------------------- on the loop */

static void refuse(struct httpd_response *ret, const char *why)
{
	httpd_fail(ret, 503, why);
	ret->retry_after_s = HTTP_JOB_RETRY_S;
}

static void refuse_blocked(struct httpd_response *ret)
{
	refuse(ret, "the disk does not answer, come again later");
}

static enum job_count job_answer(struct http_job *job)
{
	struct httpd_response *response = &job->response;

	if (atomic_load(&job->is_abandoned))
		return JOB_ABANDONED;
	switch (job->result) {
	case HTTP_JOB_OK:
		return JOB_MADE;
	case HTTP_JOB_GONE:
		httpd_fail(response, 404, "it is not there any more");
		return JOB_GONE;
	case HTTP_JOB_TOO_LARGE:
		httpd_fail(response, 500, "the answer is too large");
		return JOB_FAILED;
	case HTTP_JOB_BLOCKED:
		refuse_blocked(response);
		return JOB_BLOCKED;
	case HTTP_JOB_STOPPED:
		refuse(response, atomic_load(&job->common->is_ending)
					 ? "the agent ends"
					 : "this takes too long, ask for a shorter time");
		return JOB_EXPIRED;
	default:
		httpd_fail(response, 500, strerror(-job->result));
		return JOB_FAILED;
	}
}

static void job_free(struct http_job *job)
{
	common_unref(job->common);
	buf_deinit(&job->response.body);
	job->free(job);
}

static void job_done(struct work *work)
{
	struct http_job *job = container_of(work, struct http_job, work);

	if (work->cancelled)
		job->result = HTTP_JOB_STOPPED;
	job->jobs->counts[job_answer(job)]++;
	if (job->failed && job->response.status >= 400)
		job->failed(job, &job->response);
	httpd_later_answer(job->later, &job->response);
	job_free(job);
}

static void job_end(struct http_job *job, int result)
{
	job->result = result;
	job_done(&job->work);
}

static void job_enqueue(struct http_job *job)
{
	if (worker_submit(job->jobs->worker, &job->work)) /* as many as admitted always fit */
		job_end(job, -EBUSY);
}

static void stop_preparing(struct http_job *job)
{
	DL_DELETE(job->jobs->preparing, job);
	job->jobs->n_preparing--;
}

/* A part of the values of the oldest job. */
static bool on_step(void *ctx)
{
	struct http_jobs *jobs = ctx;
	struct http_job *job = jobs->preparing;
	int r;

	if (!job)
		return false;
	job->charged_ns = cpu_share_thread_ns();
	r = atomic_load(&job->is_abandoned) ? HTTP_JOB_STOPPED : job->prepare(job);
	charge(job);
	if (r == HTTP_JOB_MORE)
		return true;
	stop_preparing(job);
	if (r)
		job_end(job, r);
	else
		job_enqueue(job);
	return jobs->preparing;
}

static void on_gone(void *ctx)
{
	struct http_job *job = ctx;

	atomic_store(&job->is_abandoned, true);
}

static void on_gone_blocked(void *ctx)
{
	(void)ctx;
}

/* Called inside of the worker, which takes no job now: the answer goes by the timer. */
static void on_blocked(void *ctx, struct work *work)
{
	struct http_job *job = container_of(work, struct http_job, work);
	struct http_jobs *jobs = ctx;

	atomic_fetch_add(&job->common->n_blocked, 1);
	atomic_store(&job->is_abandoned, true);
	httpd_later_on_gone(job->later, on_gone_blocked, NULL);
	jobs->blocked[jobs->n_blocked++] = job->later;
	(void)loop_arm(jobs->timer, 0, 0); /* cannot fail: the timer is there */
}

static void answer_blocked(void *ctx)
{
	struct http_jobs *jobs = ctx;

	while (jobs->n_blocked) {
		struct httpd_response response = {.body = BUF_INIT(HTTPD_BODY_MAX)};

		refuse_blocked(&response);
		jobs->counts[JOB_BLOCKED]++;
		httpd_later_answer(jobs->blocked[--jobs->n_blocked], &response);
	}
}

static void on_unblocked(struct work *work)
{
	struct http_job *job = container_of(work, struct http_job, work);

	atomic_fetch_sub(&job->common->n_blocked, 1);
	job_free(job);
}

bool http_jobs_admit(struct http_jobs *jobs, struct httpd_response *ret)
{
	if (worker_pending(jobs->worker) + jobs->n_preparing <= HTTP_JOBS_QUEUE_MAX)
		return true;
	jobs->counts[JOB_BUSY]++;
	refuse(ret, "other requests are waiting, come again later");
	return false;
}

void http_jobs_submit(struct http_jobs *jobs, const struct httpd_request *request,
		      struct http_job *job, struct httpd_response *ret)
{
	job->work = (struct work){.run = job_run, .done = job_done};
	job->jobs = jobs;
	job->common = jobs->common;
	job->gzip = ret->compress && httpd_accepts_gzip(request);
	if (!http_jobs_admit(jobs, ret)) {
		job->free(job);
		return;
	}
	job->later = httpd_later(request);
	if (!job->later) {
		httpd_fail(ret, 500, "out of memory");
		job->free(job);
		return;
	}
	atomic_fetch_add(&job->common->refs, 1);
	httpd_later_on_gone(job->later, on_gone, job);
	job->response = *ret;
	ret->body = (struct buf)BUF_INIT(HTTPD_BODY_MAX);
	if (!job->prepare) {
		job_enqueue(job);
		return;
	}
	DL_APPEND(jobs->preparing, job);
	jobs->n_preparing++;
	(void)loop_arm(jobs->steps, 0, 0); /* fails only for an invalid delay */
}

/* ---------------------------------------------------------------- all of it */

static int common_new(struct cpu_share *share, struct http_jobs_common **ret)
{
	struct http_jobs_common *common = calloc(1, sizeof(*common));

	if (!common)
		return -ENOMEM;
	common->refs = 1;
	common->share = share;
	pthread_mutex_init(&common->lock, NULL);
	*ret = common;
	return 0;
}

int http_jobs_new(struct loop *loop, struct cpu_share *share, uint64_t blocked_ns,
		  struct http_jobs **ret)
{
	struct http_jobs *jobs = calloc(1, sizeof(*jobs));
	struct watchdog_opts watchdog = {
		.loop = loop,
		.blocked_ns = blocked_ns,
		.abandoned = on_blocked,
		.drop = on_unblocked,
		.ctx = jobs,
	};
	int r;

	if (!jobs)
		return -ENOMEM;
	r = common_new(share, &jobs->common);
	if (!r)
		r = worker_new(loop, "http", HTTP_JOBS_QUEUE_MAX + 1, &jobs->worker);
	watchdog.worker = jobs->worker;
	if (!r)
		r = loop_add_timer(loop, answer_blocked, jobs, &jobs->timer);
	if (!r)
		r = loop_add_steps(loop, on_step, jobs, &jobs->steps);
	if (!r)
		r = watchdog_new(&watchdog, &jobs->watchdog);
	if (r) {
		http_jobs_free(jobs);
		return r;
	}
	*ret = jobs;
	return 0;
}

void http_jobs_free(struct http_jobs *jobs)
{
	if (!jobs)
		return;
	if (jobs->common)
		atomic_store(&jobs->common->is_ending, true);
	loop_remove(jobs->steps);
	while (jobs->preparing) {
		struct http_job *job = jobs->preparing;

		stop_preparing(job);
		job_end(job, HTTP_JOB_STOPPED);
	}
	watchdog_free(jobs->watchdog);
	answer_blocked(jobs);
	worker_free(jobs->worker);
	loop_remove(jobs->timer);
	if (jobs->common) {
		pthread_mutex_lock(&jobs->common->lock);
		jobs->common->share = NULL;
		pthread_mutex_unlock(&jobs->common->lock);
	}
	common_unref(jobs->common);
	free(jobs);
}

void http_jobs_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc family = {
		"podprof_http_jobs", METRIC_COUNTER,
		"Answers made by the HTTP worker, by what became of them.", NULL};
	static const char *const names[JOB_COUNT_MAX] = {
		[JOB_MADE] = "ok",	   [JOB_GONE] = "not_found",
		[JOB_BUSY] = "busy",	   [JOB_ABANDONED] = "abandoned",
		[JOB_EXPIRED] = "expired", [JOB_BLOCKED] = "blocked",
		[JOB_FAILED] = "failed",
	};
	const struct http_jobs *jobs = ctx;

	metric_by_name(sink, &family, "outcome", jobs->counts, names, JOB_COUNT_MAX);
}
