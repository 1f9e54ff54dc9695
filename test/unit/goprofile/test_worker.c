// SPDX-License-Identifier: Apache-2.0
/* A process blocks its reader; the reader still reads the others. */
#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/loop.h"
#include "base/watchdog.h"
#include "goprofile/worker.h"
#include "goprofile/heapsnap.h"
#include "support/gofixture.h"
#include "support/goprocess.h"
#include "support/until.h"

#define HEAP   "test/fixtures/go/heap"
#define BLOCKS "test/fixtures/go/blocks"

/* Far above the duration of a read; a blocked read never ends. */
#define STUCK_NS (500 * 1000000ull)

struct bench {
	struct goprocess good;
	struct goprocess bad;
	struct loop *loop;
	struct go_profile_worker *worker;
	int n_done;
	int n_cancelled;
	int n_ok; /* with a profile */
	int n_stuck;
	_Atomic int n_started;
	_Atomic int n_dropped;
	uint64_t stuck_pid;
};

struct job {
	struct go_profile_task task;
	struct bench *bench;
	struct go_profile_target target;
};

static void job_run(struct go_profile_task *task)
{
	struct job *job = container_of(task, struct job, task);

	job->bench->n_started++;
	(void)!go_profile_reader_read(task->reader, 0, &job->target);
}

static void job_free(struct job *job)
{
	go_profile_target_deinit(&job->target);
	free(job);
}

static void job_drop(struct go_profile_task *task)
{
	struct job *job = container_of(task, struct job, task);

	job->bench->n_dropped++;
	job_free(job);
}

static void job_done(struct work *work)
{
	struct job *job = container_of(work, struct job, task.work);
	struct bench *bench = job->bench;

	bench->n_done++;
	bench->n_cancelled += work->cancelled;
	if (job->target.n_found && job->target.found[0].snaps[GO_PROFILE_HEAP])
		bench->n_ok++;
	job_free(job);
}

static void on_stuck(void *ctx, struct go_profile_task *task)
{
	struct bench *bench = ctx;

	bench->n_stuck++;
	bench->stuck_pid = container_of(task, struct job, task)->target.pid.pid;
}

static void submit(struct bench *bench, const struct goprocess *p)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	job->task =
		(struct go_profile_task){.work.done = job_done, .run = job_run, .drop = job_drop};
	job->bench = bench;
	job->target.pid = p->id;
	assert_int_equal(go_profile_worker_submit(bench->worker, &job->task), 0);
}

static void bench_init(struct bench *bench)
{
	static const char *const heap_args[] = {"/dev/null", "inline", NULL};
	static const char *const no_args[] = {NULL};
	const char *gos[GOFIXTURE_GOS_MAX];
	const char *go = gos[gofixture_gos(gos) - 1];
	_cleanup_(freep) char *heap = gofixture_build(HEAP, go, "default");
	_cleanup_(freep) char *blocks = gofixture_build(BLOCKS, go, "default");
	struct go_profile_worker_opts opts = {
		.queue_max = 10,
		.stuck_ns = STUCK_NS,
		.on_stuck = on_stuck,
		.ctx = bench,
	};

	*bench = (struct bench){.n_done = 0};
	goprocess_start(&bench->good, heap, heap_args, NULL);
	goprocess_start(&bench->bad, blocks, no_args, NULL);
	assert_int_equal(loop_new(&bench->loop), 0);
	opts.loop = bench->loop;
	opts.reader = (struct go_profile_reader_opts){
		.proc = &bench->good.proc,
		.kinds = GO_PROFILE_CUMULATIVE,
		.rounds = true,
		.record_bytes = 64u << 20,
		.symbol_bytes = 16u << 20,
	};
	assert_int_equal(go_profile_worker_new(&opts, &bench->worker), 0);
}

static bool all_done(void *ctx)
{
	return go_profile_worker_pending(((struct bench *)ctx)->worker) == 0;
}

static bool nobody_waits(void *ctx)
{
	return go_profile_worker_n_stuck(((struct bench *)ctx)->worker) == 0;
}

static void others_are_read(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench);
	submit(&bench, &bench.good);
	loop_until(bench.loop, all_done, &bench);
	assert_int_equal(bench.n_ok, 1);
	/* the blocked read is abandoned, and the ones behind continue */
	submit(&bench, &bench.bad);
	submit(&bench, &bench.good);
	submit(&bench, &bench.good);
	loop_until(bench.loop, all_done, &bench);
	assert_int_equal(bench.n_ok, 3);
	assert_int_equal(bench.n_stuck, 1);
	assert_int_equal(bench.stuck_pid, bench.bad.id.pid);
	assert_int_equal(go_profile_worker_n_stuck(bench.worker), 1);
	assert_int_equal(bench.n_dropped, 0);
	/* the process's end releases the thread */
	goprocess_stop(&bench.bad);
	loop_until(bench.loop, nobody_waits, &bench);
	assert_int_equal(bench.n_dropped, 1);
	go_profile_worker_free(bench.worker);
	loop_free(bench.loop);
	goprocess_stop(&bench.good);
}

/* With as many as there may be, nothing more is given up; and the agent can end all the same. */
static void ceiling_and_end(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench);
	for (int i = 0; i < WATCHDOG_THREADS_MAX; i++) {
		submit(&bench, &bench.bad);
		loop_until(bench.loop, all_done, &bench);
	}
	assert_int_equal(bench.n_stuck, WATCHDOG_THREADS_MAX);
	assert_int_equal(go_profile_worker_n_stuck(bench.worker), WATCHDOG_THREADS_MAX);
	submit(&bench, &bench.bad);
	submit(&bench, &bench.good);
	while (bench.n_started < WATCHDOG_THREADS_MAX + 1)
		usleep(1000);
	go_profile_worker_free(bench.worker);
	assert_int_equal(bench.n_done, 1);
	assert_int_equal(bench.n_cancelled, 1);
	loop_free(bench.loop);
	goprocess_stop(&bench.bad);
	/* wait for the threads, so the leak check finds nothing */
	while (bench.n_dropped < WATCHDOG_THREADS_MAX + 1)
		usleep(1000);
	goprocess_stop(&bench.good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_are_read),
		cmocka_unit_test(ceiling_and_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
