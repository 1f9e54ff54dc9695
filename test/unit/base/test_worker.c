// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/worker.h"
#include "support/allocfail.h"

/* While set, every other thread waits after it has unlocked a mutex. */
static _Atomic bool holds;
static pthread_t holder;
static sem_t held, release;

/* In place of the C library's. */
int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*_Atomic next)(pthread_mutex_t * mutex);
	int r;

	if (!next)
		next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	r = next(mutex);
	if (holds && !pthread_equal(pthread_self(), holder)) {
		sem_post(&held);
		sem_wait(&release);
	}
	return r;
}

/* While set, no thread starts. */
static _Atomic bool no_threads;

/* In place of the C library's. */
int pthread_create(pthread_t *newthread, const pthread_attr_t *attr, void *(*start_routine)(void *),
		   void *arg)
{
	static int (*_Atomic next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (!next)
		next = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
				void *))dlsym(RTLD_NEXT, "pthread_create");
	return no_threads ? EAGAIN : next(newthread, attr, start_routine, arg);
}

/* Shared by the jobs of a test. */
struct bench {
	struct loop *loop;
	struct worker *worker;
	sem_t gate;    /* a job waits here when @gated */
	sem_t started; /* posted when a job begins */
	int begun, ran, done, cancelled;
	int stop_after; /* jobs done */
	pthread_t loop_thread;
};

struct job {
	struct work work;
	struct bench *bench;
	bool gated;
	int order;
};

static void job_begin(struct work *work)
{
	struct job *job = container_of(work, struct job, work);

	assert_false(pthread_equal(pthread_self(), job->bench->loop_thread));
	job->bench->begun++;
}

static void job_run(struct work *work)
{
	struct job *job = container_of(work, struct job, work);

	assert_false(pthread_equal(pthread_self(), job->bench->loop_thread));
	sem_post(&job->bench->started);
	if (job->gated)
		sem_wait(&job->bench->gate);
	job->bench->ran++; /* the worker is the only writer */
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

static int submit_by(struct bench *bench, int order, bool gated,
		     int (*by)(struct worker *worker, struct work *work))
{
	_cleanup_(freep) struct job *job = calloc(1, sizeof(*job));
	int r;

	job->work = (struct work){.begin = job_begin, .run = job_run, .done = job_done};
	job->bench = bench;
	job->order = order;
	job->gated = gated;
	r = by(bench->worker, &job->work);
	if (r == 0)
		(void)take_ptr(job);
	return r;
}

static int submit(struct bench *bench, int order, bool gated)
{
	return submit_by(bench, order, gated, worker_submit);
}

/* A job that has begun and waits at the gate. */
static void submit_hanging(struct bench *bench, int order)
{
	assert_int_equal(submit(bench, order, true), 0);
	sem_wait(&bench->started);
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

/* A job runs and one waits: the job ahead of it is the second, and the first of an empty queue. */
static void test_first(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, 3);
	bench.stop_after = 4;
	assert_int_equal(submit_by(&bench, 0, true, worker_submit_first), 0);
	sem_wait(&bench.started);
	assert_int_equal(submit_by(&bench, 2, false, worker_submit_first), 0);
	assert_int_equal(submit_by(&bench, 1, false, worker_submit_first), 0);
	assert_int_equal(submit(&bench, 3, false), 0);
	assert_int_equal(submit_by(&bench, 4, false, worker_submit_first), WORKER_FULL);
	sem_post(&bench.gate);
	assert_int_equal(loop_run(bench.loop), 0);
	bench_deinit(&bench);
	assert_int_equal(bench.cancelled, 0);
}

/* A job runs and two wait: the ceiling counts waiting jobs. */
static void test_full(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, 2);
	bench.stop_after = 3;
	submit_hanging(&bench, 0);
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
	submit_hanging(&bench, 0);
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

struct turns {
	struct bench *bench;
	int n_last;
	int most; /* jobs done between two turns */
};

static void on_turn(void *ctx, int fd, uint32_t events)
{
	struct turns *t = ctx;

	(void)fd;
	(void)events;
	if (t->bench->done - t->n_last > t->most)
		t->most = t->bench->done - t->n_last;
	t->n_last = t->bench->done;
}

/* Jobs that finish together take one turn of the loop, or as many as the slice requires. */
static void finish_together(uint64_t slice_ns, int most)
{
	int fd = eventfd(1, EFD_CLOEXEC);
	struct loop_source *turn;
	struct bench bench;
	struct turns turns = {.bench = &bench};

	bench_init(&bench, 10);
	loop_set_slice(bench.loop, slice_ns);
	bench.stop_after = 5;
	for (int i = 0; i < 5; i++)
		assert_int_equal(submit(&bench, i, false), 0);
	assert_int_equal(submit(&bench, 5, true), 0);
	for (int i = 0; i < 6; i++)
		sem_wait(&bench.started); /* the sixth runs: the others wait for the loop */
	assert_int_equal(loop_add_fd(bench.loop, fd, EPOLLIN, on_turn, &turns, &turn), 0);
	assert_int_equal(loop_run(bench.loop), 0);
	on_turn(&turns, fd, EPOLLIN); /* the last one has stopped the loop */
	assert_int_equal(turns.most, most);
	sem_post(&bench.gate);
	bench_deinit(&bench);
	close(fd);
}

static void test_finish_together(void **state)
{
	(void)state;
	finish_together(0, 1);
	finish_together(60 * NSEC_PER_SEC, 5);
}

/* A finished job does not wait for the end of the next one. */
static void test_next_blocks(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, 10);
	assert_int_equal(submit(&bench, 0, true), 0);
	assert_int_equal(submit(&bench, 1, true), 0);
	sem_wait(&bench.started);
	sem_post(&bench.gate);
	sem_wait(&bench.started); /* the second one runs */
	bench.stop_after = 1;
	assert_int_equal(loop_run(bench.loop), 0);
	assert_int_equal(bench.done, 1);
	sem_post(&bench.gate);
	bench_deinit(&bench);
	assert_int_equal(bench.done, 2);
}

/* Without the loop: the waiting thread calls each done(). */
static void test_wait(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, 10);
	assert_false(worker_wait(bench.worker, 0)); /* for nothing */
	submit_hanging(&bench, 0);
	assert_false(worker_wait(bench.worker, 0)); /* the job cannot end */
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

/* A job hangs: the others still run, also after the worker is freed, and the end of the hanging job
 * is reported. */
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
	submit_hanging(&bench, 7);
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

static void test_stop(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, 10);
	submit_hanging(&bench, 0);
	assert_int_equal(submit(&bench, 1, false), 0);
	assert_false(worker_stop(bench.worker, NSEC_PER_MSEC));
	sem_post(&bench.gate);
	assert_true(worker_stop(bench.worker, 600 * NSEC_PER_SEC));
	bench_deinit(&bench);
	assert_int_equal(bench.ran, 1);
	assert_int_equal(bench.cancelled, 1);
}

/* A job hangs at the end, and no thread may be started: it is abandoned all the same. */
static void test_abandon_at_end(void **state)
{
	struct left left = {.loop_thread = pthread_self()};
	const struct worker_left how = {on_seen, on_orphan, &left};
	struct bench bench;

	(void)state;
	sem_init(&left.orphaned, 0, 0);
	bench_init(&bench, 10);
	submit_hanging(&bench, 0);
	assert_int_equal(submit(&bench, 1, false), 0);
	no_threads = true;
	assert_int_equal(worker_abandon(bench.worker, &how), -EAGAIN);
	assert_false(worker_stop(bench.worker, 0));
	assert_int_equal(worker_abandon(bench.worker, &how), 0);
	no_threads = false;
	assert_true(worker_stop(bench.worker, 0));
	worker_free(bench.worker);
	assert_int_equal(bench.cancelled, 1);
	loop_free(bench.loop);
	sem_post(&bench.gate);
	sem_wait(&left.orphaned);
	sem_destroy(&left.orphaned);
	sem_destroy(&bench.gate);
	sem_destroy(&bench.started);
}

/* The thread has taken a job out of the queue, and has not called it yet. */
static void test_stop_before_run(void **state)
{
	struct bench bench;

	(void)state;
	sem_init(&held, 0, 0);
	sem_init(&release, 0, 0);
	bench_init(&bench, 10);
	holder = pthread_self();
	holds = true;
	assert_int_equal(submit(&bench, 0, false), 0);
	sem_wait(&held);
	holds = false;
	assert_false(worker_stop(bench.worker, 0));
	assert_true(worker_busy_ns(bench.worker) > 0);
	sem_post(&release);
	assert_true(worker_stop(bench.worker, 600 * NSEC_PER_SEC));
	assert_int_equal(bench.ran, 1);
	bench_deinit(&bench);
	assert_int_equal(bench.done, 1);
	assert_int_equal(bench.cancelled, 0);
	sem_destroy(&held);
	sem_destroy(&release);
}

/* The same, and the job is abandoned: what it takes at its begin, it has. */
static void test_abandon_before_run(void **state)
{
	struct left left = {.loop_thread = pthread_self()};
	const struct worker_left how = {on_seen, on_orphan, &left};
	struct bench bench;

	(void)state;
	sem_init(&left.orphaned, 0, 0);
	sem_init(&held, 0, 0);
	sem_init(&release, 0, 0);
	bench_init(&bench, 10);
	holder = pthread_self();
	holds = true;
	assert_int_equal(submit(&bench, 0, false), 0);
	sem_wait(&held);
	holds = false;
	assert_int_equal(worker_abandon(bench.worker, &how), 0);
	assert_int_equal(bench.begun, 1);
	assert_int_equal(bench.ran, 0);
	sem_post(&release);
	sem_wait(&left.orphaned);
	assert_int_equal(bench.ran, 1);
	bench_deinit(&bench);
	assert_int_equal(bench.done, 0);
	sem_destroy(&left.orphaned);
	sem_destroy(&held);
	sem_destroy(&release);
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
	/* the loop, the worker, source and thread of the worker */
	assert_int_equal(allocfail_each(build, NULL), 4);
	worker_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_finish_together),
		cmocka_unit_test(test_next_blocks),
		cmocka_unit_test(test_abandon),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_abandon_at_end),
		cmocka_unit_test(test_stop_before_run),
		cmocka_unit_test(test_abandon_before_run),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
