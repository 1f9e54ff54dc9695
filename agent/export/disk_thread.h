/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_DISK_THREAD_H
#define PODPROF_EXPORT_DISK_THREAD_H

/*
 * The thread of a directory's files. The loop decides, and the thread executes the decisions in
 * order, as jobs with values. A disk without an answer holds the thread only. No second thread
 * starts for the same files: two writers would work against each other. At the end of the run a
 * blocked thread is left behind, with its job and the disk.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "base/worker.h"

/* Time for the disk at the start, before the agent goes on without the earlier files. */
#define DISK_THREAD_WAIT_NS (2 * NSEC_PER_SEC)

struct disk_job;
struct disk_thread;
struct loop;

/**
 * struct disk_job_kind - the functions of a job
 * @run:       on the thread: may touch the job and its disk
 * @done:      on the loop, after @run or without it (work.cancelled): frees the job
 * @abandoned: on the loop, instead of @done, while @run is blocked: takes back what the job
 *             holds of the loop's accounts. May read only the inputs of the job. May be NULL
 * @drop:      on the thread, after @abandoned, when @run returns, possibly after the end of the
 *             disk_thread: frees the job
 */
struct disk_job_kind {
	void (*run)(struct disk_job *job);
	void (*done)(struct disk_job *job);
	void (*abandoned)(struct disk_job *job);
	void (*drop)(struct disk_job *job);
};

/* A job, embedded in the caller's struct. The caller sets @owner, for done(). */
struct disk_job {
	struct work work;
	const struct disk_job_kind *kind;
	void *owner;
	void *disk;
	void (*free_disk)(void *disk);
	int r;
};

/**
 * struct disk_thread_opts - everything is borrowed but the disk
 * @name:       of the thread; a constant
 * @queue_max:  waiting jobs
 * @blocked_ns: time without an answer of the disk; 0: WATCHDOG_BLOCKED_NS
 * @disk:       what the jobs use; taken on success
 * @free_disk:  closes and frees @disk, on either thread
 * @blocked:    on the loop, again and again while the running job is blocked
 */
struct disk_thread_opts {
	struct loop *loop;
	const char *name;
	size_t queue_max;
	uint64_t blocked_ns;
	void *disk;
	void (*free_disk)(void *disk);
	void (*blocked)(void *ctx);
	void *ctx;
};

/* 0 or -errno. */
int disk_thread_new(const struct disk_thread_opts *opts, struct disk_thread **ret);
/* Waits a moment for the running job, or leaves the job behind. The waiting jobs are cancelled.
 * NULL is fine. */
void disk_thread_free(struct disk_thread *t);
/* 0 or WORKER_FULL. */
int disk_thread_submit(struct disk_thread *t, struct disk_job *job,
		       const struct disk_job_kind *kind) __attribute__((warn_unused_result));
/* Wait at most @timeout_ns, 0: DISK_THREAD_WAIT_NS, for a job to end, then call its done(). False
 * if none has ended. */
bool disk_thread_wait(struct disk_thread *t, uint64_t timeout_ns);

#endif
