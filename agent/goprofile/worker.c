// SPDX-License-Identifier: Apache-2.0
/*
 * A reader can block forever in three ways:
 * - Memory registered with userfaultfd by the process: process_vm_readv(2) sleeps until the
 *   process's own monitor has filled the page, and only a fatal signal ends the sleep. (Reading
 *   /proc/PID/mem fails at once instead, because that path of the kernel may not sleep there.)
 * - A file on a FUSE or network file system with a silent server, as the program or as mapped
 *   memory. There, a read of /proc/PID/mem cannot even be killed.
 * - A lock of an address space, held by a thread that waits for such a file.
 *
 * Stopped, frozen and traced processes are no problem: their memory is readable as usual.
 *
 * None of this can be detected in advance, because a process may change its mappings between the
 * check and the read. So one mechanism handles all cases: the blocked thread is abandoned together
 * with its reader, because the thread may still use the reader when the block ends. The new reader
 * starts from nothing. Counters are cumulative, so only one window's difference is lost.
 *
 * Each abandoned thread keeps the memory of the reader. The new reader gets half the ceiling of the
 * previous one, and the number of threads has a ceiling.
 */
#include "goprofile/worker.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"

/* Time to wait for the running task at the end of the agent. */
#define END_WAIT_NS  (2 * NSEC_PER_SEC)
#define END_PAUSE_NS (5 * NSEC_PER_MSEC)

/* The number of blocked threads, shared by the worker and the threads. */
struct go_profile_stuck {
	_Atomic unsigned int n;
	_Atomic unsigned int n_refs;
};

struct go_profile_worker {
	struct go_profile_worker_opts opts;
	struct worker *worker;
	struct go_profile_reader *reader;
	struct go_profile_reader *next; /* for the next thread */
	struct go_profile_stuck *stuck;
	struct loop_source *timer;
};

static void stuck_unref(struct go_profile_stuck *stuck)
{
	if (stuck && atomic_fetch_sub(&stuck->n_refs, 1) == 1)
		free(stuck);
}

static void task_run(struct work *work)
{
	struct go_profile_task *task = container_of(work, struct go_profile_task, work);

	task->reader = task->worker->reader;
	if (task->reader || !task->worker->opts.reader.proc) /* NULL at the end */
		task->run(task);
}

/* ---------------------------------------------------------------- a task that does not end */

static void on_seen(void *ctx, struct work *work)
{
	struct go_profile_task *task = container_of(work, struct go_profile_task, work);
	struct go_profile_worker *hw = ctx;

	atomic_fetch_add(&hw->stuck->n, 1);
	atomic_fetch_add(&hw->stuck->n_refs, 1);
	task->stuck = hw->stuck;
	hw->reader = take_ptr(hw->next);
	if (hw->opts.on_stuck)
		hw->opts.on_stuck(hw->opts.ctx, task);
}

/* An abandoned task has ended after all; the worker may no longer exist. */
static void on_orphan(void *ctx, struct work *work)
{
	struct go_profile_task *task = container_of(work, struct go_profile_task, work);
	struct go_profile_stuck *stuck = task->stuck;

	(void)ctx;
	go_profile_reader_free(task->reader);
	task->drop(task);
	atomic_fetch_sub(&stuck->n, 1);
	stuck_unref(stuck);
}

static void give_up(struct go_profile_worker *hw)
{
	const struct worker_left left = {on_seen, on_orphan, hw};
	struct go_profile_reader_opts reader = hw->opts.reader;

	if (go_profile_worker_n_stuck(hw) >= GO_PROFILE_STUCK_MAX)
		return;
	reader.record_bytes >>= go_profile_worker_n_stuck(hw) + 1;
	if (reader.proc && go_profile_reader_new(&reader, &hw->next))
		return; /* try again at the next timer */
	if (worker_abandon(hw->worker, &left)) {
		go_profile_reader_free(hw->next);
		hw->next = NULL;
	}
}

static void on_timer(void *ctx)
{
	struct go_profile_worker *hw = ctx;

	if (worker_busy_ns(hw->worker) > hw->opts.stuck_ns)
		give_up(hw);
}

/* ---------------------------------------------------------------- the worker */

int go_profile_worker_new(const struct go_profile_worker_opts *opts, struct go_profile_worker **ret)
{
	struct go_profile_worker *hw = calloc(1, sizeof(*hw));
	uint64_t period_ns;
	int r;

	if (!hw)
		return -ENOMEM;
	hw->opts = *opts;
	if (!hw->opts.stuck_ns)
		hw->opts.stuck_ns = GO_PROFILE_STUCK_NS;
	period_ns = hw->opts.stuck_ns / 4;
	hw->stuck = calloc(1, sizeof(*hw->stuck));
	r = hw->stuck ? 0 : -ENOMEM;
	if (!r && opts->reader.proc)
		r = go_profile_reader_new(&opts->reader, &hw->reader);
	if (hw->stuck)
		hw->stuck->n_refs = 1;
	if (!r)
		r = worker_new(opts->loop, opts->name ? opts->name : "go-heap", opts->queue_max,
			       &hw->worker);
	if (!r)
		r = loop_add_timer(opts->loop, on_timer, hw, &hw->timer);
	if (!r)
		r = loop_arm(hw->timer, period_ns, period_ns);
	if (r)
		go_profile_worker_free(hw);
	else
		*ret = hw;
	return r;
}

/* Wait for the end of the running task for a while; then abandon the task, regardless of the
 * ceiling. */
static void wait_for_end(struct go_profile_worker *hw)
{
	const struct timespec pause = {.tv_nsec = END_PAUSE_NS};
	const struct worker_left left = {on_seen, on_orphan, hw};
	uint64_t end_ns = nsec_monotonic() + END_WAIT_NS;

	worker_stop(hw->worker);
	while (worker_busy_ns(hw->worker) && nsec_monotonic() < end_ns)
		nanosleep(&pause, NULL);
	if (worker_busy_ns(hw->worker))
		(void)!worker_abandon(hw->worker, &left);
}

void go_profile_worker_free(struct go_profile_worker *hw)
{
	if (!hw)
		return;
	loop_remove(hw->timer);
	if (hw->worker)
		wait_for_end(hw);
	worker_free(hw->worker);
	go_profile_reader_free(hw->reader);
	stuck_unref(hw->stuck);
	free(hw);
}

int go_profile_worker_submit(struct go_profile_worker *hw, struct go_profile_task *task)
{
	task->worker = hw;
	task->work.run = task_run;
	return worker_submit(hw->worker, &task->work);
}

size_t go_profile_worker_pending(const struct go_profile_worker *hw)
{
	return worker_pending(hw->worker);
}

unsigned int go_profile_worker_n_stuck(const struct go_profile_worker *hw)
{
	return atomic_load(&hw->stuck->n);
}
