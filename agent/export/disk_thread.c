// SPDX-License-Identifier: Apache-2.0
#include "export/disk_thread.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/watchdog.h"

struct disk_thread {
	struct disk_thread_opts opts;
	struct worker *worker;
	struct watchdog *watchdog;
	bool abandoned; /* the disk is the blocked job's */
};

static void job_run(struct work *work)
{
	struct disk_job *job = container_of(work, struct disk_job, work);

	job->kind->run(job);
}

static void job_done(struct work *work)
{
	struct disk_job *job = container_of(work, struct disk_job, work);

	job->kind->done(job);
}

/* The watchdog's "prepare": during the run a blocked job keeps thread and disk. */
static int on_blocked(void *ctx, unsigned int n_blocked)
{
	struct disk_thread *t = ctx;

	(void)n_blocked;
	t->opts.blocked(t->opts.ctx);
	return -EAGAIN;
}

/* Only at the end of the run. */
static void on_abandoned(void *ctx, struct work *work)
{
	struct disk_job *job = container_of(work, struct disk_job, work);
	struct disk_thread *t = ctx;

	t->abandoned = true;
	if (job->kind->abandoned)
		job->kind->abandoned(job);
}

static void on_drop(struct work *work)
{
	struct disk_job *job = container_of(work, struct disk_job, work);

	job->free_disk(job->disk);
	job->kind->drop(job);
}

int disk_thread_new(const struct disk_thread_opts *opts, struct disk_thread **ret)
{
	_cleanup_(freep) struct disk_thread *t = calloc(1, sizeof(*t));
	struct watchdog_opts watchdog = {
		.loop = opts->loop,
		.blocked_ns = opts->blocked_ns,
		.prepare = on_blocked,
		.abandoned = on_abandoned,
		.drop = on_drop,
		.ctx = t,
	};
	int r;

	if (!t)
		return -ENOMEM;
	t->opts = *opts;
	r = worker_new(opts->loop, opts->name, opts->queue_max, &t->worker);
	if (r)
		return r;
	watchdog.worker = t->worker;
	r = watchdog_new(&watchdog, &t->watchdog);
	if (r) {
		worker_free(t->worker);
		return r;
	}
	*ret = take_ptr(t);
	return 0;
}

void disk_thread_free(struct disk_thread *t)
{
	if (!t)
		return;
	watchdog_free(t->watchdog);
	worker_free(t->worker);
	if (!t->abandoned)
		t->opts.free_disk(t->opts.disk);
	free(t);
}

int disk_thread_submit(struct disk_thread *t, struct disk_job *job,
		       const struct disk_job_kind *kind)
{
	job->work = (struct work){.run = job_run, .done = job_done};
	job->kind = kind;
	job->disk = t->opts.disk;
	job->free_disk = t->opts.free_disk;
	return worker_submit(t->worker, &job->work);
}

bool disk_thread_wait(struct disk_thread *t, uint64_t timeout_ns)
{
	return worker_wait(t->worker, timeout_ns ? timeout_ns : DISK_THREAD_WAIT_NS);
}
