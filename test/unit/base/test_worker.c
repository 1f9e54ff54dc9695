// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <pthread.h>
#include <semaphore.h>

#include "base/loop.h"
#include "base/worker.h"
#include "support/allocfail.h"

/* Shared by the jobs of one test. */
struct bench {
	struct loop *loop;
	struct worker *worker;
	sem_t gate;    /* a job waits here when @gated */
	sem_t started; /* posted when a job begins */
	int ran, done, cancelled;
	int stop_after; /* jobs done */
	pthread_t loop_thread;
};

struct job {
	struct work work;
	struct bench *bench;
	bool gated;
	int order;
};

static void job_run(struct work *work)
{
	struct job *job = container_of(work, struct job, work);

	assert_false(pthread_equal(pthread_self(), job->bench->loop_thread));
	sem_post(&job->bench->started);
	if (job->gated)
		sem_wait(&job->bench->gate);
	job->bench->ran++; /* one worker: the only writer */
}

static void job_done(struct work *work)
{
	_cleanup_(freep) struct job *job = container_of(work, struct job, work);
	struct bench *bench = job->bench;

	assert_true(pthread_equal(pthread_self(), bench->loop_thread));
	if (work->cancelled)
		bench->cancelled++;
	else
		assert_int_equal(job->order, bench->done); /* first in, first out */
	bench->done++;
	if (bench->done == bench->stop_after)
		loop_stop(bench->loop);
}

static int submit(struct bench *bench, int order, bool gated)
{
	_cleanup_(freep) struct job *job = calloc(1, sizeof(*job));
	int r;

	job->work = (struct work){.run = job_run, .done = job_done};
	job->bench = bench;
	job->order = order;
	job->gated = gated;
	r = worker_submit(bench->worker, &job->work);
	if (r == 0)
		(void)take_ptr(job);
	return r;
}

static void bench_init(struct bench *bench, size_t queue_max)
{
	*bench = (struct bench){.loop_thread = pthread_self()};
	sem_init(&bench->gate, 0, 0);
	sem_init(&bench->started, 0, 0);
	assert_int_equal(loop_new(&bench->loop), 0);
	assert_int_equal(worker_new(bench->loop, "test", queue_max, &bench->worker), 0);
}

static void bench_deinit(struct bench *bench)
{
	worker_free(bench->worker);
	loop_free(bench->loop);
	sem_destroy(&bench->gate);
	sem_destroy(&bench->started);
}

static void test_order(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, 100);
	bench.stop_after = 100;
	for (int i = 0; i < 100; i++)
		assert_int_equal(submit(&bench, i, false), 0);
	assert_int_equal(loop_run(bench.loop), 0);
	assert_int_equal(bench.ran, 100);
	assert_int_equal(worker_pending(bench.worker), 0);
	bench_deinit(&bench);
	assert_int_equal(bench.cancelled, 0);
}

/* One job runs and two wait: the ceiling counts waiting jobs. */
static void test_full(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, 2);
	bench.stop_after = 3;
	assert_int_equal(submit(&bench, 0, true), 0);
	sem_wait(&bench.started);
	assert_int_equal(submit(&bench, 1, false), 0);
	assert_int_equal(submit(&bench, 2, false), 0);
	assert_int_equal(submit(&bench, 3, false), WORKER_FULL);
	assert_int_equal(worker_pending(bench.worker), 3);
	sem_post(&bench.gate);
	assert_int_equal(loop_run(bench.loop), 0);
	assert_int_equal(bench.ran, 3);
	bench.stop_after = 0;
	assert_int_equal(submit(&bench, 3, false), 0);
	bench_deinit(&bench);
	assert_int_equal(bench.done, 4);
}

/* Cancel during a job: this job is finished, the others come back untouched. */
static void test_cancel(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, 10);
	assert_int_equal(submit(&bench, 0, true), 0);
	sem_wait(&bench.started);
	for (int i = 1; i < 5; i++)
		assert_int_equal(submit(&bench, i, true), 0);
	sem_post(&bench.gate);
	for (int i = 1; i < 5; i++)
		sem_post(&bench.gate); /* some jobs may have begun by now */
	bench_deinit(&bench);
	assert_int_equal(bench.done, 5);
	assert_int_equal(bench.ran + bench.cancelled, 5);
	assert_true(bench.ran >= 1);
}

/* Without the loop: the waiting thread calls each done(). */
static void test_wait(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, 10);
	assert_false(worker_wait(bench.worker, 0)); /* for nothing */
	assert_int_equal(submit(&bench, 0, true), 0);
	sem_wait(&bench.started);
	assert_false(worker_wait(bench.worker, 0)); /* it cannot end */
	assert_int_equal(bench.done, 0);
	sem_post(&bench.gate);
	while (worker_pending(bench.worker))
		assert_true(worker_wait(bench.worker, 60000000000ull));
	assert_int_equal(bench.done, 1);
	bench_deinit(&bench);
	assert_int_equal(bench.done, 1);
}

struct left {
	struct job *seen;
	sem_t orphaned;
	bool on_loop;
	pthread_t loop_thread;
};

static void on_seen(void *ctx, struct work *work)
{
	((struct left *)ctx)->seen = container_of(work, struct job, work);
}

static void on_orphan(void *ctx, struct work *work)
{
	struct left *left = ctx;

	left->on_loop = pthread_equal(pthread_self(), left->loop_thread);
	free(container_of(work, struct job, work));
	sem_post(&left->orphaned);
}

/* One job hangs: the others run all the same, also after the worker is freed, and the hanging job
 * is reported at its end. */
static void test_abandon(void **state)
{
	struct left left = {.loop_thread = pthread_self()};
	const struct worker_left how = {on_seen, on_orphan, &left};
	struct bench bench;

	(void)state;
	sem_init(&left.orphaned, 0, 0);
	bench_init(&bench, 10);
	assert_int_equal(worker_busy_ns(bench.worker), 0);
	assert_int_equal(worker_abandon(bench.worker, &how), WORKER_IDLE);
	assert_int_equal(submit(&bench, 7, true), 0);
	sem_wait(&bench.started);
	assert_true(worker_busy_ns(bench.worker) > 0);
	assert_int_equal(submit(&bench, 0, false), 0);
	assert_int_equal(submit(&bench, 1, false), 0);
	assert_int_equal(worker_pending(bench.worker), 3);
	assert_int_equal(worker_abandon(bench.worker, &how), 0);
	assert_int_equal(left.seen->order, 7);
	assert_int_equal(worker_pending(bench.worker), 2);
	bench.stop_after = 2;
	assert_int_equal(loop_run(bench.loop), 0);
	assert_int_equal(bench.ran, 2);
	assert_int_equal(worker_pending(bench.worker), 0);
	worker_free(bench.worker);
	loop_free(bench.loop);
	assert_int_equal(sem_trywait(&left.orphaned), -1);
	sem_post(&bench.gate);
	sem_wait(&left.orphaned);
	assert_false(left.on_loop);
	assert_int_equal(bench.done, 2);
	sem_destroy(&left.orphaned);
	sem_destroy(&bench.gate);
	sem_destroy(&bench.started);
}

static int build(void *ctx)
{
	struct worker *worker;
	struct loop *loop;
	int r = loop_new(&loop);

	(void)ctx;
	if (r)
		return r;
	r = worker_new(loop, "test", 1, &worker);
	if (!r)
		worker_free(worker);
	loop_free(loop);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	/* the loop, the worker, its source, its thread */
	assert_int_equal(allocfail_each(build, NULL), 4);
	worker_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	cmocka_unit_test(test_full),
		cmocka_unit_test(test_cancel),	cmocka_unit_test(test_wait),
		cmocka_unit_test(test_abandon), cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
