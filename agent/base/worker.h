/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_WORKER_H
#define PODPROF_BASE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * One thread for work that would block the loop. A job goes in as a value and comes back as a
 * value. run() may touch the job and data owned by the worker alone, never the loop's state.
 */

struct loop;
struct worker;
struct worker_thread;

/**
 * struct work - one job, embedded in the caller's struct
 * @begin:     called on the worker's thread, before the job can be abandoned: takes what the owner
 *             gives to the next thread then. It must not wait. NULL: nothing
 * @run:       called on the worker's thread
 * @done:      called on the loop's thread after run(), or without run() if the worker is freed
 *             first (@cancelled is then set); done() frees the job
 * @cancelled: run() was not called
 */
struct work {
	void (*begin)(struct work *work);
	void (*run)(struct work *work);
	void (*done)(struct work *work);
	int cancelled;
	struct work *next;
	struct worker_thread *thread; /* set while run() executes */
};

enum worker_outcome {
	WORKER_OK = 0,
	WORKER_FULL, /* the queue is at its ceiling: the caller drops and counts the job */
	WORKER_IDLE, /* there is no job to abandon */
};

/* @name: at most 15 characters, shown by ps and as the loop's callback; a constant. @queue_max:
 * waiting jobs, without the running job. */
int worker_new(struct loop *loop, const char *name, size_t queue_max, struct worker **ret);
/* Waits for the running job and cancels the rest. Every done() has been called before the return.
 */
void worker_free(struct worker *worker);
/* Takes no more jobs from the queue, and waits for the running job. False if it still runs after
 * @timeout_ns: worker_free() waits for it, unless the caller abandons it. */
bool worker_stop(struct worker *worker, uint64_t timeout_ns);
/* 0 or WORKER_FULL. */
int worker_submit(struct worker *worker, struct work *work) __attribute__((warn_unused_result));
/* The same, ahead of the waiting jobs: somebody waits for this one. */
int worker_submit_first(struct worker *worker, struct work *work)
	__attribute__((warn_unused_result));
/* Wait at most @timeout_ns for a job to end, then call its done(). False if none has ended. For the
 * end of a program, after its loop. */
bool worker_wait(struct worker *worker, uint64_t timeout_ns);
/* Jobs waiting or running. */
size_t worker_pending(const struct worker *worker);
/* Calls @busy in worker_submit() for a job that finds no other pending, and @idle in the loop
 * before the done() of the last one. One listener at a time. */
void worker_listen(struct worker *worker, void (*busy)(void *ctx), void (*idle)(void *ctx),
		   void *ctx);

/*
 * A job that blocks in the kernel for an unknown time. The worker cannot stop the job, but lets the
 * jobs behind it run.
 */

/* A long run() calls this now and then to show progress. */
void work_alive(struct work *work);
/* Nanoseconds since the running job began, or last called work_alive(); 0 if none is running. */
uint64_t worker_busy_ns(const struct worker *worker);

/* The thread of a running job, and the time (monotonic) of its begin or last work_alive(). */
struct worker_running {
	pid_t tid;
	uint64_t alive_ns;
};
/* False if no job is running. */
bool worker_running(const struct worker *worker, struct worker_running *ret);

struct worker_left {
	void (*seen)(void *ctx, struct work *work); /* called at once; the job's inputs may be read.
						     * NULL: nothing */
	void (*orphan)(void *ctx, struct work *work); /* instead of done(), on the job's thread,
						       * when run() finally returns, possibly
						       * after the worker's end */
	void *ctx;
};

/* Abandon the running job and continue with a new thread; after worker_stop() without one. 0;
 * WORKER_IDLE if the job has just ended; -errno, with nothing changed: a thread could not start. */
int worker_abandon(struct worker *worker, const struct worker_left *left);

#endif
