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
 * check and the read. So one mechanism (base/watchdog.h) handles all cases: the blocked thread is
 * abandoned together with its reader, because the thread may still use the reader when the block
 * ends. The new reader starts from nothing. Counters are cumulative, so only one window's
 * difference is lost.
 *
 * Each abandoned thread keeps the memory of the reader. The new reader gets half the ceiling of the
 * previous one, and the number of threads has a ceiling.
 */
#include "goprofile/worker.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/watchdog.h"

struct go_profile_worker {
	struct go_profile_worker_opts opts;
	struct worker *worker;
	struct watchdog *watchdog;
	struct go_profile_reader *reader;
	struct go_profile_reader *next; /* for the next thread */
};

static void task_begin(struct work *work)
{
	struct go_profile_task *task = container_of(work, struct go_profile_task, work);

	task->reader = task->worker->reader;
	/* without a reader at the end */
	task->is_void = !task->reader && task->worker->opts.reader.proc;
}

/* If it is abandoned, the worker may be no more. */
static void task_run(struct work *work)
{
	struct go_profile_task *task = container_of(work, struct go_profile_task, work);

	if (!task->is_void)
		task->run(task);
}

/* ---------------------------------------------------------------- a task that does not end */

static int make_next(void *ctx, unsigned int n_blocked)
{
	struct go_profile_worker *hw = ctx;
	struct go_profile_reader_opts reader = hw->opts.reader;

	reader.record_bytes >>= n_blocked + 1;
	return reader.proc ? go_profile_reader_new(&reader, &hw->next) : 0;
}

static void drop_next(void *ctx)
{
	struct go_profile_worker *hw = ctx;

	go_profile_reader_free(hw->next);
	hw->next = NULL;
}

static void on_abandoned(void *ctx, struct work *work)
{
	struct go_profile_worker *hw = ctx;

	hw->reader = take_ptr(hw->next);
	if (hw->opts.on_stuck)
		hw->opts.on_stuck(hw->opts.ctx, container_of(work, struct go_profile_task, work));
}

static void task_drop(struct work *work)
{
	struct go_profile_task *task = container_of(work, struct go_profile_task, work);

	go_profile_reader_free(task->reader);
	task->drop(task);
}

/* ---------------------------------------------------------------- the worker */

int go_profile_worker_new(const struct go_profile_worker_opts *opts, struct go_profile_worker **ret)
{
	struct go_profile_worker *hw = calloc(1, sizeof(*hw));
	struct watchdog_opts watchdog = {
		.loop = opts->loop,
		.blocked_ns = opts->stuck_ns,
		.prepare = make_next,
		.abandoned = on_abandoned,
		.kept = drop_next,
		.drop = task_drop,
		.ctx = hw,
	};
	int r = 0;

	if (!hw)
		return -ENOMEM;
	hw->opts = *opts;
	if (opts->reader.proc)
		r = go_profile_reader_new(&opts->reader, &hw->reader);
	if (!r)
		r = worker_new(opts->loop, opts->name ? opts->name : "go-heap", opts->queue_max,
			       &hw->worker);
	watchdog.worker = hw->worker;
	if (!r)
		r = watchdog_new(&watchdog, &hw->watchdog);
	if (r)
		go_profile_worker_free(hw);
	else
		*ret = hw;
	return r;
}

void go_profile_worker_free(struct go_profile_worker *hw)
{
	if (!hw)
		return;
	watchdog_free(hw->watchdog);
	worker_free(hw->worker);
	go_profile_reader_free(hw->reader);
	free(hw);
}

int go_profile_worker_submit(struct go_profile_worker *hw, struct go_profile_task *task)
{
	task->worker = hw;
	task->work.begin = task_begin;
	task->work.run = task_run;
	return worker_submit(hw->worker, &task->work);
}

size_t go_profile_worker_pending(const struct go_profile_worker *hw)
{
	return worker_pending(hw->worker);
}

unsigned int go_profile_worker_n_stuck(const struct go_profile_worker *hw)
{
	return watchdog_n_blocked(hw->watchdog);
}
