/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_WORKER_H
#define PODPROF_BASE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One thread for work that would hold up the loop. A job goes in as a value and comes back as a
 * value: run() may touch the job and what the worker alone owns, never the loop's state.
 */

struct loop;
struct worker;

/**
 * struct work - one job, embedded in the caller's struct
 * @run:       called on the worker's thread
 * @done:      called on the loop's thread after run(), or instead of it when the worker is freed
 *             first (@cancelled is then set); the job is the callee's to free
 * @cancelled: run() was not called
 */
struct work {
	void (*run)(struct work *work);
	void (*done)(struct work *work);
	int cancelled;
	struct work *next;
};

enum worker_outcome {
	WORKER_OK = 0,
	WORKER_FULL, /* the queue's ceiling: the caller sheds the job and counts it */
};

/* @name: at most 15 characters, shown by ps. @queue_max: jobs waiting, the running one not counted.
 */
int worker_new(struct loop *loop, const char *name, size_t queue_max, struct worker **ret);
/* Waits for the running job, cancels the rest; every done() has been called when it returns. */
void worker_free(struct worker *worker);
/* 0 or WORKER_FULL. */
int worker_submit(struct worker *worker, struct work *work) __attribute__((warn_unused_result));
/* Wait until a job has ended, at most so long, and call its done(). False if none has. For the end
 * of a program, when its loop does not run any more. */
bool worker_wait(struct worker *worker, uint64_t timeout_ns);
/* Jobs waiting or running. */
size_t worker_pending(const struct worker *worker);

#endif
