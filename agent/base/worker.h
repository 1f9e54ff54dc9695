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
struct worker_thread;

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
	struct worker_thread *thread; /* while it runs */
};

enum worker_outcome {
	WORKER_OK = 0,
	WORKER_FULL, /* the queue's ceiling: the caller sheds the job and counts it */
	WORKER_IDLE, /* there is no job to abandon */
};

/* @name: at most 15 characters, shown by ps; borrowed. @queue_max: jobs waiting, the running one
 * not counted.
 */
int worker_new(struct loop *loop, const char *name, size_t queue_max, struct worker **ret);
/* Waits for the running job, cancels the rest; every done() has been called when it returns. */
void worker_free(struct worker *worker);
/* Take no more jobs from the queue. */
void worker_stop(struct worker *worker);
/* 0 or WORKER_FULL. */
int worker_submit(struct worker *worker, struct work *work) __attribute__((warn_unused_result));
/* Wait until a job has ended, at most so long, and call its done(). False if none has. For the end
 * of a program, when its loop does not run any more. */
bool worker_wait(struct worker *worker, uint64_t timeout_ns);
/* Jobs waiting or running. */
size_t worker_pending(const struct worker *worker);

/*
 * A job that does not come back, since the kernel makes it wait for somebody: it cannot be stopped,
 * but the jobs behind it need not wait too.
 */

/* Called by run() of a long job, now and then: it is not stuck. */
void work_alive(struct work *work);
/* Nanoseconds since the running job began, or last called work_alive(); 0 if none is running. */
uint64_t worker_busy_ns(const struct worker *worker);

struct worker_left {
	void (*seen)(void *ctx,
		     struct work *work); /* called at once; the job's inputs may be read */
	void (*orphan)(void *ctx, struct work *work); /* instead of done(), on the job's thread,
						       * when run() returns after all, which may be
						       * after the worker's end */
	void *ctx;
};

/* Leave the running job to itself and go on with a new thread. 0; WORKER_IDLE when it has just
 * ended; -errno, and everything is as before. */
int worker_abandon(struct worker *worker, const struct worker_left *left);

#endif
