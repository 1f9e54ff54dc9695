// SPDX-License-Identifier: Apache-2.0
/* Jobs between clients and the worker: too many, abandoned, failed, too old, and at the end. */
#include "support/test.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cpu_share.h"
#include "base/nsec.h"
#include "server/job.h"
#include "support/allocfail.h"
#include "support/metrics.h"
#include "support/served.h"

#define END	 "\r\nHost: localhost\r\nConnection: close\r\n\r\n"
#define FAMILY	 "podprof_http_jobs"
#define ALL_JOBS (HTTP_JOBS_QUEUE_MAX + 1)

struct fixture {
	struct served served;
	struct httpd *httpd;
	struct http_jobs *jobs;
	struct cpu_share share;
	sem_t gate;
	uint64_t blocked_ns;
	_Atomic int n_submitted, n_steps, n_started, n_freed;
};

struct test_job {
	struct http_job job;
	struct fixture *f;
	char path[32];
	int n_steps;
};

/* "/steps/endless" has no last step. */
static int prepare(struct http_job *job)
{
	struct test_job *t = container_of(job, struct test_job, job);

	t->f->n_steps++;
	if (strcmp(t->path, "/steps/endless") == 0 || ++t->n_steps < 5)
		return HTTP_JOB_MORE;
	return strcmp(t->path, "/steps/gone") == 0 ? HTTP_JOB_GONE : 0;
}

/* "/gate" and "/disk" wait for the test, "/wait" until abandoned. */
static int run(struct http_job *job, struct buf *ret)
{
	const struct test_job *t = container_of(job, struct test_job, job);
	struct fixture *f = t->f;

	f->n_started++;
	if (strcmp(t->path, "/gate") == 0 || job->reads_disk)
		sem_wait(&f->gate);
	while (strcmp(t->path, "/wait") == 0 && http_job_go_on(job))
		usleep(1000);
	if (strcmp(t->path, "/wait") == 0)
		return HTTP_JOB_STOPPED;
	if (strcmp(t->path, "/old") == 0) {
		job->begun_ns -= HTTP_JOB_AGE_MAX_NS + 1;
		return http_job_go_on(job) ? 0 : HTTP_JOB_STOPPED;
	}
	if (strcmp(t->path, "/gone") == 0)
		return HTTP_JOB_GONE;
	if (strcmp(t->path, "/broken") == 0)
		return -EIO;
	if (strcmp(t->path, "/large") == 0)
		return BUF_FULL;
	return buf_printf(ret, "made for %s", t->path);
}

static void job_free(struct http_job *job)
{
	struct test_job *t = container_of(job, struct test_job, job);

	t->f->n_freed++;
	free(t);
}

static void on_request(void *ctx, const struct httpd_request *request, struct httpd_response *ret)
{
	struct fixture *f = ctx;
	struct test_job *t;

	if (strcmp(httpd_path(request), "/loop") == 0) {
		assert_int_equal(buf_puts(&ret->body, "from the loop"), 0);
		return;
	}
	t = calloc(1, sizeof(*t));
	assert_non_null(t);
	t->job.run = run;
	t->job.prepare = strncmp(httpd_path(request), "/steps", 6) == 0 ? prepare : NULL;
	t->job.free = job_free;
	t->job.reads_disk = strcmp(httpd_path(request), "/disk") == 0;
	t->f = f;
	snprintf(t->path, sizeof(t->path), "%s", httpd_path(request));
	ret->content_type = "text/plain; charset=utf-8";
	ret->compress = true;
	http_jobs_submit(f->jobs, request, &t->job, ret);
	f->n_submitted++;
}

static void start_with(struct fixture *f, uint64_t blocked_ns)
{
	struct listen_address address;

	*f = (struct fixture){.share = {.parts = 4, .burst_ns = 3600 * NSEC_PER_SEC},
			      .blocked_ns = blocked_ns};
	sem_init(&f->gate, 0, 0);
	assert_true(listen_parse("127.0.0.1:0", &address));
	served_init(&f->served);
	assert_int_equal(httpd_new(&(struct httpd_opts){.loop = f->served.loop,
							.address = &address,
							.handler = on_request,
							.ctx = f,
							.share = &f->share},
				   &f->httpd),
			 0);
	assert_int_equal(http_jobs_new(f->served.loop, &f->share, f->blocked_ns, &f->jobs), 0);
	served_start(&f->served);
}

/* No job is ever blocked. */
static void start(struct fixture *f)
{
	start_with(f, 3600 * NSEC_PER_SEC);
}

static uint64_t count(struct fixture *f, const char *outcome)
{
	return metrics_get(http_jobs_collect, f->jobs, FAMILY, outcome);
}

static void stop(struct fixture *f)
{
	http_jobs_free(f->jobs);
	httpd_free(f->httpd);
	served_deinit(&f->served);
	sem_destroy(&f->gate);
}

static int ask(struct fixture *f, const char *path)
{
	char request[256];
	int fd = served_connect(httpd_address(f->httpd));
	int n = snprintf(request, sizeof(request), "GET %s HTTP/1.1" END, path);

	assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
	return fd;
}

/* The reply, up to the close of the connection. */
static void hear(int fd, struct buf *ret)
{
	char piece[4096];
	ssize_t n;

	buf_reset(ret);
	while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
		assert_int_equal(buf_append(ret, piece, (size_t)n), 0);
	assert_int_equal(buf_puts(ret, ""), 0);
	close(fd);
}

static void until(const _Atomic int *n, int value)
{
	while (atomic_load(n) < value)
		usleep(1000);
}

static void test_answers(void **state)
{
	static const struct {
		const char *path, *status, *has, *outcome;
	} rows[] = {
		{"/loop", "200", "from the loop", NULL},
		{"/a", "200", "made for /a", "ok"},
		{"/steps", "200", "made for /steps", "ok"},
		{"/steps/gone", "404", "not there", "not_found"},
		{"/gone", "404", "not there", "not_found"},
		{"/broken", "500", "Input/output error", "failed"},
		{"/large", "500", "too large", "failed"},
		{"/old", "503", "Retry-After: 5\r\n", "expired"},
	};
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].path);
		start(&f);
		hear(ask(&f, rows[i].path), &reply);
		assert_memory_equal(reply.data + strlen("HTTP/1.1 "), rows[i].status, 3);
		assert_non_null(strstr(reply.data, rows[i].has));
		served_stop(&f.served);
		if (rows[i].outcome)
			assert_int_equal(count(&f, rows[i].outcome), 1);
		assert_int_equal(f.n_freed, f.n_submitted);
		stop(&f);
	}
}

/* The queue takes as many jobs as it has room for; the next is refused, and the loop keeps
 * answering. */
static void test_busy(void **state)
{
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
	struct fixture f;
	int fds[ALL_JOBS];

	(void)state;
	start(&f);
	for (int i = 0; i < ALL_JOBS; i++) {
		fds[i] = ask(&f, "/gate");
		until(&f.n_submitted, i + 1);
	}
	for (int i = 0; i < 3; i++) {
		hear(ask(&f, "/gate"), &reply);
		assert_memory_equal(reply.data, "HTTP/1.1 503", 12);
		assert_non_null(strstr(reply.data, "Retry-After: 5\r\n"));
		hear(ask(&f, "/loop"), &reply);
		assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
	}
	for (int i = 0; i < ALL_JOBS; i++)
		sem_post(&f.gate);
	for (int i = 0; i < ALL_JOBS; i++) {
		hear(fds[i], &reply);
		assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
		assert_non_null(strstr(reply.data, "made for /gate"));
	}
	hear(ask(&f, "/again"), &reply);
	assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
	served_stop(&f.served);
	assert_int_equal(count(&f, "busy"), 3);
	assert_int_equal(count(&f, "ok"), ALL_JOBS + 1);
	stop(&f);
}

/* The job of a disconnected client ends at the next checkpoint, and the later jobs run. */
static void test_abandoned(void **state)
{
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
	struct fixture f;
	int running, waiting;

	(void)state;
	start(&f);
	running = ask(&f, "/wait");
	until(&f.n_started, 1);
	waiting = ask(&f, "/wait");
	until(&f.n_submitted, 2);
	close(waiting);
	close(running);
	hear(ask(&f, "/a"), &reply);
	assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
	served_stop(&f.served);
	assert_int_equal(count(&f, "abandoned"), 2);
	assert_int_equal(count(&f, "ok"), 1);
	/* the waiting job was not begun, or ended at once */
	assert_int_equal(f.n_freed, 3);
	stop(&f);
}

/* The loop answers others between two steps of a job. Jobs with steps to come count as the waiting
 * ones, are abandoned with their clients, and end with the server. */
static void test_steps(void **state)
{
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
	struct fixture f;
	int fds[ALL_JOBS];

	(void)state;
	start(&f);
	for (int i = 0; i < ALL_JOBS; i++) {
		fds[i] = ask(&f, i ? "/steps" : "/steps/endless");
		until(&f.n_submitted, i + 1);
	}
	hear(ask(&f, "/a"), &reply);
	assert_memory_equal(reply.data, "HTTP/1.1 503", 12);
	hear(ask(&f, "/loop"), &reply);
	assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
	assert_int_equal(f.n_started, 0);
	close(fds[0]);
	for (int i = 1; i < ALL_JOBS; i++) {
		hear(fds[i], &reply);
		assert_non_null(strstr(reply.data, "made for /steps"));
	}
	fds[0] = ask(&f, "/steps/endless");
	until(&f.n_submitted, ALL_JOBS + 2);
	served_stop(&f.served);
	assert_int_equal(count(&f, "abandoned"), 1);
	assert_int_equal(count(&f, "busy"), 1);
	stop(&f);
	assert_int_equal(f.n_freed, ALL_JOBS + 2);
	close(fds[0]);
}

/* The end does not wait for the running job, and every job is freed. */
static void test_end(void **state)
{
	struct fixture f;
	int fds[3];

	(void)state;
	start(&f);
	for (int i = 0; i < 3; i++) {
		fds[i] = ask(&f, "/wait");
		until(&f.n_submitted, i + 1);
	}
	until(&f.n_started, 1);
	served_stop(&f.served);
	stop(&f);
	assert_int_equal(f.n_freed, 3);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

/* In debt, a job waits, even at its start, and is still abandoned when the client disconnects. */
static void test_debt(void **state)
{
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
	uint64_t now_ns, debt_ns = 200 * NSEC_PER_MSEC;
	struct fixture f;
	int fd;

	(void)state;
	start(&f);
	f.share.burst_ns = 0;
	now_ns = nsec_monotonic();
	cpu_share_charge(&f.share, now_ns, debt_ns / f.share.parts);
	hear(ask(&f, "/a"), &reply);
	assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
	assert_true(nsec_monotonic() - now_ns >= debt_ns);
	/* a debt of an hour: health is answered, the job does not begin */
	cpu_share_charge(&f.share, nsec_monotonic(), 900 * NSEC_PER_SEC);
	fd = ask(&f, "/b");
	until(&f.n_submitted, 2);
	close(fd);
	hear(ask(&f, "/loop"), &reply);
	assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
	until(&f.n_freed, 2);
	served_stop(&f.served);
	assert_int_equal(f.n_started, 1);
	assert_int_equal(count(&f, "abandoned"), 1);
	stop(&f);
}

/* A job that gets no answer from its disk is answered without it. The others run, but no second one
 * waits for the disk, until the disk is back. */
static void test_blocked(void **state)
{
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
	struct fixture f;

	(void)state;
	start_with(&f, 200 * NSEC_PER_MSEC);
	for (int i = 0; i < 3; i++) {
		hear(ask(&f, "/disk"), &reply);
		assert_memory_equal(reply.data, "HTTP/1.1 503", 12);
		assert_non_null(strstr(reply.data, "Retry-After: 5\r\n"));
		assert_non_null(strstr(reply.data, "the disk does not answer"));
		assert_int_equal(f.n_started, 1 + i); /* with those of "/a" */
		hear(ask(&f, "/a"), &reply);
		assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
	}
	sem_post(&f.gate);
	until(&f.n_freed, 6);
	sem_post(&f.gate);
	hear(ask(&f, "/disk"), &reply);
	assert_memory_equal(reply.data, "HTTP/1.1 200", 12);
	served_stop(&f.served);
	assert_int_equal(count(&f, "blocked"), 3);
	assert_int_equal(count(&f, "ok"), 4);
	stop(&f);
}

/* The end leaves a blocked job behind, with the jobs behind it answered. */
static void test_blocked_end(void **state)
{
	_cleanup_(buf_deinit) struct buf reply = BUF_INIT(100000);
	struct fixture f;
	int fds[2];

	(void)state;
	start(&f);
	for (int i = 0; i < 2; i++) {
		fds[i] = ask(&f, "/disk");
		until(&f.n_submitted, i + 1);
	}
	until(&f.n_started, 1);
	served_stop(&f.served);
	http_jobs_free(f.jobs);
	assert_int_equal(f.n_freed, 1);
	httpd_free(f.httpd);
	served_deinit(&f.served);
	sem_post(&f.gate);
	until(&f.n_freed, 2);
	sem_destroy(&f.gate);
	for (int i = 0; i < 2; i++)
		close(fds[i]);
}

static int build(void *ctx)
{
	struct http_jobs *jobs;
	struct loop *loop;
	int r = loop_new(&loop);

	(void)ctx;
	if (r)
		return r;
	r = http_jobs_new(loop, NULL, 0, &jobs);
	if (!r)
		http_jobs_free(jobs);
	loop_free(loop);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	/* the loop, the jobs with what they share, the worker with source and thread, the timer,
	 * the steps, the watchdog with its source */
	assert_int_equal(allocfail_each(build, NULL), 11);
	http_jobs_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),	  cmocka_unit_test(test_steps),
		cmocka_unit_test(test_busy),	  cmocka_unit_test(test_abandoned),
		cmocka_unit_test(test_end),	  cmocka_unit_test(test_debt),
		cmocka_unit_test(test_blocked),	  cmocka_unit_test(test_blocked_end),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
