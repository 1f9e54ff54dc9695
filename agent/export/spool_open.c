// SPDX-License-Identifier: Apache-2.0
/* The directory of the spool: its lock, and the profiles of earlier runs. */
#include "export/spool_state.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/loop.h"

/* Until the next attempt the profiles stay in memory. */
static void open_failed(struct spool *s, int r, pid_t holder)
{
	s->open_r = r;
	s->busy = r == SPOOL_BUSY;
	s->blocked = true;
	if (s->starting && !s->busy)
		return; /* the outcome of spool_new() */
	spool_changes(s, r, holder);
	spool_refuse_all(s, s->busy ? SPOOL_BLOCKED : r);
	(void)loop_arm(s->open_timer, s->opts.blocked_ns, 0);
	if (s->opts.idle)
		s->opts.idle(s->opts.ctx);
}

/* The profiles of earlier runs. */
struct open_job {
	struct disk_job job;
	uint64_t ids[SPOOL_DESTINATIONS_MAX];
	unsigned int n_ids;
	uint8_t deltas;
	struct spool_contents contents;
};

static void open_run(struct disk_job *base)
{
	struct open_job *job = container_of(base, struct open_job, job);

	job->job.r = spool_disk_read_all(job->job.disk, job->ids, job->n_ids, job->deltas,
					 &job->contents);
}

static void open_drop(struct disk_job *base)
{
	struct open_job *job = container_of(base, struct open_job, job);

	spool_index_deinit(&job->contents.index);
	free(job);
}

static void open_done(struct disk_job *base)
{
	struct open_job *job = container_of(base, struct open_job, job);
	struct spool *s = job->job.owner;

	if (s->closing) {
		spool_index_deinit(&job->contents.index);
		free(job);
		return;
	}
	if (job->job.r) {
		open_failed(s, job->job.r, 0);
		free(job);
		return;
	}
	s->opened = true;
	s->index = job->contents.index;
	s->next_number = job->contents.next_number;
	s->damaged += job->contents.n_damaged;
	for (size_t i = 0; i < s->index.n; i++)
		for (size_t k = 0; k < s->index.segments[i]->n; k++)
			s->recovered += s->index.segments[i]->places[k].live != 0;
	free(job);
	spool_changes(s, SPOOL_OK, 0);
	spool_answered(s);
}

static const struct disk_job_kind open_kind = {
	.run = open_run, .done = open_done, .drop = open_drop};

static int spool_read_all(struct spool *s)
{
	struct open_job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	job->deltas = s->index.deltas;
	for (; job->n_ids < s->opts.n_destinations; job->n_ids++)
		job->ids[job->n_ids] = s->feeds[job->n_ids].id;
	r = spool_submit(s, &job->job, &open_kind);
	if (r)
		free(job);
	return r;
}

/* Before the profiles: the start waits for the lock, but not for the reading. */
struct lock_job {
	struct disk_job job;
	pid_t holder;
};

static void lock_run(struct disk_job *base)
{
	struct lock_job *job = container_of(base, struct lock_job, job);

	base->r = spool_disk_open(base->disk, &job->holder);
}

static void lock_drop(struct disk_job *base)
{
	free(container_of(base, struct lock_job, job));
}

static void lock_done(struct disk_job *base)
{
	struct lock_job *job = container_of(base, struct lock_job, job);
	struct spool *s = base->owner;
	int r = base->r;

	if (!s->closing) {
		s->busy = false;
		s->locked = !r;
		if (s->locked)
			r = spool_read_all(s);
		if (r)
			open_failed(s, r, job->holder);
	}
	free(job);
}

static const struct disk_job_kind lock_kind = {
	.run = lock_run, .done = lock_done, .drop = lock_drop};

int spool_lock(struct spool *s)
{
	struct lock_job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	r = spool_submit(s, &job->job, &lock_kind);
	if (r)
		free(job);
	return r;
}

void spool_open_again(void *spool)
{
	struct spool *s = spool;

	if (s->locked ? spool_read_all(s) : spool_lock(s))
		(void)loop_arm(s->open_timer, s->opts.blocked_ns, 0);
}
