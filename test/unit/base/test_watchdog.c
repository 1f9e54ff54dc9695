// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "base/watchdog.h"
#include "support/threads.h"
#include "support/timers.h"

#define BLOCKED_NS (200 * NSEC_PER_MSEC)

/* STARVES: computes with the lowest priority on CPU 0, until the end of the starvation. */
enum behaviour { QUICK, BLOCKS, COMPUTES, SIGNS, STARVES };

struct bench {
	struct loop *loop;
	struct worker *worker;
	struct watchdog *watchdog;
	sem_t gate;	      /* BLOCKS waits here */
	_Atomic bool is_over; /* the starvation */
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
	case STARVES:
		threads_pin();
		assert_int_equal(sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}), 0);
		while (!job->bench->is_over)
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

static void *spin(void *is_over)
{
	threads_pin();
	while (!*(_Atomic bool *)is_over)
		continue;
	return NULL;
}

/* What looks like blocked time by schedstat alone: neither on a CPU nor in an ended wait for one.
 */
static uint64_t unaccounted_ns(pid_t tid, uint64_t since_ns)
{
	uint64_t cpu_ns = 0, delay_ns = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%" SCNu64 " %" SCNu64, &cpu_ns, &delay_ns), 2);
	(void)fclose(f);
	since_ns += cpu_ns + delay_ns;
	return nsec_monotonic() > since_ns ? nsec_monotonic() - since_ns : 0;
}

/* A wait for a CPU is no block, and the kernel counts it only at its end. */
static void starved_is_kept(void **state)
{
	struct blocked_time time = {0};
	struct worker_running running;
	uint64_t begun_ns, blocked_ns, most_ns = 0;
	pthread_t spinners[4];
	struct bench bench;

	(void)state;
	bench_init(&bench);
	begun_ns = nsec_monotonic();
	submit(&bench, STARVES);
	for (size_t i = 0; i < array_size(spinners); i++)
		assert_int_equal(pthread_create(&spinners[i], NULL, spin, &bench.is_over), 0);
	while (!worker_running(bench.worker, &running))
		usleep(1000);
	do {
		blocked_ns = blocked_time_ns(&time, bench.worker);
		most_ns = blocked_ns > most_ns ? blocked_ns : most_ns;
	} while (unaccounted_ns(running.tid, begun_ns) < 3 * BLOCKED_NS);
	bench.is_over = true;
	for (size_t i = 0; i < array_size(spinners); i++)
		pthread_join(spinners[i], NULL);
	run_until(&bench, 1);
	assert_int_equal(bench.n_done, 1);
	bench_deinit(&bench);
	assert_in_range(most_ns, 0, BLOCKED_NS - 1);
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
		cmocka_unit_test_teardown(starved_is_kept, wait_for_threads),
		cmocka_unit_test_teardown(ceiling_and_end, wait_for_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
