// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/watchdog.h"
#include "support/threads.h"
#include "support/timers.h"

#define BLOCKED_NS (200 * NSEC_PER_MSEC)

enum behaviour { QUICK, BLOCKS, COMPUTES, SIGNS };

struct bench {
	struct loop *loop;
	struct worker *worker;
	struct watchdog *watchdog;
	sem_t gate; /* BLOCKS waits here */
	_Atomic int n_dropped;
	int n_done;
	int n_prepared;
	int n_kept;
	int n_abandoned;
	int wanted; /* jobs done or abandoned, to stop the loop */
	int prepare_result;
};

struct job {
	struct work work;
	struct bench *bench;
	enum behaviour behaviour;
};

static void job_run(struct work *work)
{
	struct job *job = container_of(work, struct job, work);
	uint64_t end_ns = nsec_monotonic() + 5 * BLOCKED_NS;

	switch (job->behaviour) {
	case QUICK:
		return;
	case BLOCKS:
		while (sem_wait(&job->bench->gate) && errno == EINTR)
			continue;
		return;
	case COMPUTES:
		while (nsec_monotonic() < end_ns)
			continue;
		return;
	case SIGNS:
		while (nsec_monotonic() < end_ns) {
			usleep(5000);
			work_alive(work);
		}
		return;
	}
}

static void count(struct bench *bench)
{
	if (bench->n_done + bench->n_abandoned == bench->wanted)
		loop_stop(bench->loop);
}

static void job_done(struct work *work)
{
	_cleanup_(freep) struct job *job = container_of(work, struct job, work);

	job->bench->n_done++;
	count(job->bench);
}

static void job_drop(struct work *work)
{
	_cleanup_(freep) struct job *job = container_of(work, struct job, work);

	atomic_fetch_add(&job->bench->n_dropped, 1);
}

static int prepare(void *ctx, unsigned int n_blocked)
{
	struct bench *bench = ctx;

	assert_true(n_blocked < WATCHDOG_THREADS_MAX);
	bench->n_prepared++;
	return bench->prepare_result;
}

static void on_abandoned(void *ctx, struct work *work)
{
	struct bench *bench = ctx;

	assert_int_equal(container_of(work, struct job, work)->behaviour, BLOCKS);
	bench->n_abandoned++;
	count(bench);
}

static void on_kept(void *ctx)
{
	struct bench *bench = ctx;

	bench->n_kept++;
}

static void submit(struct bench *bench, enum behaviour behaviour)
{
	struct job *job = calloc(1, sizeof(*job));

	*job = (struct job){{.run = job_run, .done = job_done}, bench, behaviour};
	assert_int_equal(worker_submit(bench->worker, &job->work), 0);
}

static void run_until(struct bench *bench, int wanted)
{
	bench->wanted = wanted;
	assert_int_equal(loop_run(bench->loop), 0);
}

static void bench_init(struct bench *bench)
{
	struct watchdog_opts opts = {
		.blocked_ns = BLOCKED_NS,
		.prepare = prepare,
		.abandoned = on_abandoned,
		.kept = on_kept,
		.drop = job_drop,
		.ctx = bench,
	};

	*bench = (struct bench){0};
	sem_init(&bench->gate, 0, 0);
	assert_int_equal(loop_new(&bench->loop), 0);
	assert_int_equal(worker_new(bench->loop, "test", 20, &bench->worker), 0);
	opts.loop = bench->loop;
	opts.worker = bench->worker;
	assert_int_equal(watchdog_new(&opts, &bench->watchdog), 0);
}

static void wait_for_drops(struct bench *bench, int n)
{
	for (int i = 0; i < n; i++)
		sem_post(&bench->gate);
	while (atomic_load(&bench->n_dropped) < n)
		usleep(1000);
}

static void bench_deinit(struct bench *bench)
{
	watchdog_free(bench->watchdog);
	worker_free(bench->worker);
	loop_free(bench->loop);
}

/* An abandoned thread frees its data after the drop. */
static int wait_for_threads(void **state)
{
	(void)state;
	threads_wait();
	return 0;
}

static void blocked_is_abandoned(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench);
	submit(&bench, BLOCKS);
	submit(&bench, QUICK);
	run_until(&bench, 2);
	assert_int_equal(bench.n_abandoned, 1);
	assert_int_equal(bench.n_done, 1);
	assert_int_equal(bench.n_prepared - bench.n_kept, 1);
	assert_int_equal(watchdog_n_blocked(bench.watchdog), 1);
	wait_for_drops(&bench, 1);
	while (watchdog_n_blocked(bench.watchdog))
		usleep(1000);
	bench_deinit(&bench);
	assert_int_equal(bench.n_done, 1);
}

/* The timer runs only while there are jobs, and again for later ones. */
static void idle_has_no_timer(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench);
	assert_int_equal(loop_n_within(bench.loop), 0);
	for (int i = 0; i < 2; i++) {
		submit(&bench, QUICK);
		assert_int_equal(loop_n_within(bench.loop), 1);
		run_until(&bench, 2 * i + 1);
		assert_int_equal(loop_n_within(bench.loop), 0);
		submit(&bench, BLOCKS);
		assert_int_equal(loop_n_within(bench.loop), 1);
		run_until(&bench, 2 * i + 2);
		assert_int_equal(bench.n_abandoned, i + 1);
		assert_int_equal(loop_n_within(bench.loop), 0);
	}
	assert_int_equal(timers_armed(), 0);
	wait_for_drops(&bench, 2);
	bench_deinit(&bench);
}

/* Neither work nor signs of life are a block, however long a job takes. */
static void progress_is_kept(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench);
	submit(&bench, COMPUTES);
	submit(&bench, SIGNS);
	run_until(&bench, 2);
	assert_int_equal(bench.n_done, 2);
	assert_int_equal(bench.n_abandoned, 0);
	bench_deinit(&bench);
}

/* At the ceiling the job is waited for, and so it is if the next thread has no data. The end
 * abandons it all the same. */
static void ceiling_and_end(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench);
	for (int i = 1; i <= WATCHDOG_THREADS_MAX; i++) {
		submit(&bench, BLOCKS);
		run_until(&bench, i);
	}
	assert_int_equal(bench.n_abandoned, WATCHDOG_THREADS_MAX);
	submit(&bench, BLOCKS);
	submit(&bench, QUICK);
	while (!worker_busy_ns(bench.worker))
		usleep(1000);
	bench_deinit(&bench);
	assert_int_equal(bench.n_done, 1); /* cancelled */
	assert_int_equal(bench.n_abandoned, WATCHDOG_THREADS_MAX + 1);
	wait_for_drops(&bench, WATCHDOG_THREADS_MAX + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(blocked_is_abandoned, wait_for_threads),
		cmocka_unit_test_teardown(idle_has_no_timer, wait_for_threads),
		cmocka_unit_test_teardown(progress_is_kept, wait_for_threads),
		cmocka_unit_test_teardown(ceiling_and_end, wait_for_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
