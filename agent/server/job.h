/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_JOB_H
#define PODPROF_SERVER_JOB_H

/*
 * Answers that take long, made off the loop. The loop makes a job: values only, no pointer into the
 * loop's state. One worker thread appends the body and compresses it. The loop sends the answer.
 *
 *	handler -> http_jobs_submit() -> queue -> run() on the worker -> httpd_later_answer()
 *
 * A job with many values collects them in steps of the loop before it enters the queue.
 *
 * A full queue is answered with 503 and Retry-After. The worker keeps to the server's share of CPU
 * time, and abandons the job of a client that has gone.
 *
 * A job that reads files may block as long as the disk does. A watchdog then answers 503, abandons
 * the thread, and a new thread runs the next jobs. Until the thread returns, jobs that read files
 * are answered with 503 at once, and all other jobs run.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/nsec.h"
#include "base/worker.h"
#include "server/httpd.h"

struct http_jobs;

/* Jobs waiting for the worker, some 40 KiB each. Reached: 503 with Retry-After;
 * `podprof_http_jobs_total{outcome="busy"}`. */
#define HTTP_JOBS_QUEUE_MAX 8
/* Nanoseconds from the start of a job until it is abandoned at its next checkpoint. Reached: 503
 * with Retry-After; `podprof_http_jobs_total{outcome="expired"}`. */
#define HTTP_JOB_AGE_MAX_NS (60 * NSEC_PER_SEC)

enum http_job_outcome {
	HTTP_JOB_OK = 0,
	HTTP_JOB_TOO_LARGE = BUF_FULL, /* the body: 500 */
	HTTP_JOB_GONE,		       /* the requested thing: 404 */
	HTTP_JOB_STOPPED,	       /* http_job_go_on() was false */
	HTTP_JOB_BLOCKED,	       /* not run: an earlier job waits for the disk */
	HTTP_JOB_MORE = INT_MAX,       /* of prepare(): call again */
};

/**
 * struct http_job - one answer, embedded in the maker's struct
 * @prepare: NULL, or a step on the loop, before @run: collects a part of the values.
 *        HTTP_JOB_MORE, an http_job_outcome, -errno
 * @run:  on the worker: append the body. An http_job_outcome, -errno. A long run() calls
 *        http_job_go_on() every few milliseconds
 * @free: on the loop, after the answer, or if there is none; on the worker for a job that was
 *        blocked, perhaps after the server's end
 * @failed: NULL, or rewrites the answer of a failure, on the loop. Not of a job that was blocked
 * @reads_disk: @run waits for a file system
 *
 * The other members belong to http_jobs.
 */
struct http_job {
	int (*prepare)(struct http_job *job);
	int (*run)(struct http_job *job, struct buf *ret);
	void (*free)(struct http_job *job);
	void (*failed)(struct http_job *job, struct httpd_response *response);
	bool reads_disk;
	struct work work;
	struct http_job *prev, *next; /* being prepared */
	struct http_jobs *jobs;
	struct http_jobs_common *common;
	struct httpd_later *later;
	struct httpd_response response;
	bool gzip;
	int result;
	uint64_t begun_ns;
	uint64_t charged_ns; /* of the worker's CPU time */
	_Atomic bool is_abandoned;
};

/* Both borrowed. @share: NULL for no limit. @blocked_ns: time without an answer of a disk; 0:
 * WATCHDOG_BLOCKED_NS. 0 or -errno. */
int http_jobs_new(struct loop *loop, struct cpu_share *share, uint64_t blocked_ns,
		  struct http_jobs **ret);
/* Before the httpd. Waits for the running job's next checkpoint, and leaves a blocked job behind;
 * the waiting requests are answered. */
void http_jobs_free(struct http_jobs *jobs);

/* Whether a job would find room: a handler asks before it collects the values. False: @ret is the
 * refusal, counted. */
bool http_jobs_admit(struct http_jobs *jobs, struct httpd_response *ret);
/* Takes @job and the contents of @ret, where the handler has set everything but the body. Without
 * room or memory @ret becomes the refusal. */
void http_jobs_submit(struct http_jobs *jobs, const struct httpd_request *request,
		      struct http_job *job, struct httpd_response *ret);

/* On the worker: a checkpoint. Waits as long as the share of CPU time is in debt. False: return
 * HTTP_JOB_STOPPED, for the client has gone, the agent ends, or the job is too old. */
bool http_job_go_on(struct http_job *job);

/* A metric_collect_fn: podprof_http_jobs. */
void http_jobs_collect(void *ctx, struct metric_sink *sink);

#endif
