// SPDX-License-Identifier: Apache-2.0
#include "server/job.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/cpu_share.h"
#include "base/metric.h"
#include "base/nsec.h"

/* Longest sleep of a checkpoint before it looks again: the agent's end waits for it. */
#define HTTP_JOB_NAP_NS	 (20 * NSEC_PER_MSEC)
#define HTTP_JOB_RETRY_S 5

enum job_count {
	JOB_MADE,
	JOB_GONE,
	JOB_BUSY,
	JOB_ABANDONED,
	JOB_EXPIRED,
	JOB_FAILED,
	JOB_COUNT_MAX,
};

struct http_jobs {
	struct worker *worker;
	struct cpu_share *share;
	_Atomic bool is_ending;
	uint64_t counts[JOB_COUNT_MAX];
};

/* ---------------------------------------------------------------- on the worker */

static void charge(struct http_job *job)
{
	uint64_t cpu_ns = cpu_share_thread_ns();

	if (job->jobs->share)
		cpu_share_charge(job->jobs->share, nsec_monotonic(), cpu_ns - job->charged_ns);
	job->charged_ns = cpu_ns;
}

bool http_job_go_on(struct http_job *job)
{
	struct http_jobs *jobs = job->jobs;
	uint64_t now_ns, wait_ns;

	charge(job);
	for (;;) {
		now_ns = nsec_monotonic();
		if (atomic_load(&job->is_abandoned) || atomic_load(&jobs->is_ending) ||
		    now_ns - job->begun_ns > HTTP_JOB_AGE_MAX_NS)
			return false;
		wait_ns = jobs->share ? cpu_share_wait_ns(jobs->share, now_ns) : 0;
		if (!wait_ns)
			return true;
		wait_ns = wait_ns < HTTP_JOB_NAP_NS ? wait_ns : HTTP_JOB_NAP_NS;
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)wait_ns}, NULL);
	}
}

static void job_run(struct work *work)
{
	struct http_job *job = container_of(work, struct http_job, work);
	int r = HTTP_JOB_STOPPED;

	job->begun_ns = nsec_monotonic();
	job->charged_ns = cpu_share_thread_ns();
	if (http_job_go_on(job))
		r = job->run(job, &job->response.body);
	if (!r && job->gzip && job->response.body.len)
		r = httpd_compress(&job->response);
	charge(job);
	job->result = r;
}

/* ---------------------------------------------------------------- on the loop */

static void refuse(struct httpd_response *ret, const char *why)
{
	httpd_fail(ret, 503, why);
	ret->retry_after_s = HTTP_JOB_RETRY_S;
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
	case HTTP_JOB_STOPPED:
		refuse(response, atomic_load(&job->jobs->is_ending)
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
	buf_deinit(&job->response.body);
	job->free(job);
}

static void job_done(struct work *work)
{
	struct http_job *job = container_of(work, struct http_job, work);

	if (work->cancelled)
		job->result = HTTP_JOB_STOPPED;
	job->jobs->counts[job_answer(job)]++;
	httpd_later_answer(job->later, &job->response);
	job_free(job);
}

static void on_gone(void *ctx)
{
	struct http_job *job = ctx;

	atomic_store(&job->is_abandoned, true);
}

bool http_jobs_admit(struct http_jobs *jobs, struct httpd_response *ret)
{
	if (worker_pending(jobs->worker) <= HTTP_JOBS_QUEUE_MAX)
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
	httpd_later_on_gone(job->later, on_gone, job);
	job->response = *ret;
	ret->body = (struct buf)BUF_INIT(HTTPD_BODY_MAX);
	if (worker_submit(jobs->worker, &job->work)) { /* as many as admitted always fit */
		job->result = -EBUSY;
		job_done(&job->work);
	}
}

/* ---------------------------------------------------------------- all of it */

int http_jobs_new(struct loop *loop, struct cpu_share *share, struct http_jobs **ret)
{
	_cleanup_(freep) struct http_jobs *jobs = calloc(1, sizeof(*jobs));
	int r;

	if (!jobs)
		return -ENOMEM;
	jobs->share = share;
	r = worker_new(loop, "http", HTTP_JOBS_QUEUE_MAX + 1, &jobs->worker);
	if (r)
		return r;
	*ret = take_ptr(jobs);
	return 0;
}

void http_jobs_free(struct http_jobs *jobs)
{
	if (!jobs)
		return;
	atomic_store(&jobs->is_ending, true);
	worker_free(jobs->worker);
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
		[JOB_EXPIRED] = "expired", [JOB_FAILED] = "failed",
	};
	const struct http_jobs *jobs = ctx;

	metric_by_name(sink, &family, "outcome", jobs->counts, names, JOB_COUNT_MAX);
}
