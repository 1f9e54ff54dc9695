/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_WATCHDOG_H
#define PODPROF_BASE_WATCHDOG_H

/*
 * Watches a worker whose jobs read files or memory of a container. Such a read can block forever in
 * the kernel: on a FUSE or network file system without an answer, on memory under userfaultfd, on
 * the lock of an address space. A job cannot be interrupted there. The watchdog abandons the job
 * and its thread, and a new thread runs the next jobs.
 *
 * Only blocked time counts. Time on the CPU and in the run queue, from the thread's schedstat, is
 * progress: a starved node does not look like a silent file system. The kernel adds a wait in the
 * run queue to schedstat at its end, so a thread is not judged during such a wait.
 *
 * Without jobs the watchdog never wakes the loop.
 */

#include <stdint.h>

#include "base/nsec.h"
#include "base/worker.h"

struct loop;
struct watchdog;

/* Blocked nanoseconds of a job, without a call of work_alive(), until the watchdog abandons the
 * job. A disk with errors answers within seconds, and so does a network file system after a lost
 * packet. */
#define WATCHDOG_BLOCKED_NS  (10 * NSEC_PER_SEC)
/* Blocked threads of one worker. Each blocked thread keeps its stack and the memory of its job.
 * Reached: the worker waits until a thread returns; in the metrics
 * `podprof_go_heap_reads_total{outcome="round_skipped"}` for Go profiles,
 * `podprof_unwind_compiled_total{outcome="slow"}` for unwind tables. */
#define WATCHDOG_THREADS_MAX 4

/**
 * struct watchdog_opts - borrowed pointers must outlive the watchdog
 * @blocked_ns:  0: WATCHDOG_BLOCKED_NS
 * @threads_max: 0: WATCHDOG_THREADS_MAX
 * @prepare:     called on the loop before the watchdog abandons a job, with the number of blocked
 *               threads: makes the next thread's data. If the result is not 0, the watchdog tries
 *               again later. May be NULL
 * @abandoned:   called on the loop, before the next thread starts: the job is abandoned. May read
 *               only the inputs of the job. Gives the data made by @prepare to the next thread
 * @kept:        called instead of @abandoned if the job has just ended: drops the data made by
 *               @prepare. May be NULL
 * @drop:        called on the job's thread when the run() of an abandoned job returns at last,
 *               perhaps after the watchdog's and the worker's end: frees the job
 */
struct watchdog_opts {
	struct loop *loop;
	struct worker *worker;
	uint64_t blocked_ns;
	unsigned int threads_max;
	int (*prepare)(void *ctx, unsigned int n_blocked);
	void (*abandoned)(void *ctx, struct work *work);
	void (*kept)(void *ctx);
	void (*drop)(struct work *work);
	void *ctx;
};

/* Measures the blocked time of a worker's running job. {0} is the initial state. */
struct blocked_time {
	uint64_t alive_ns; /* of the job; 0: none */
	uint64_t seen_ns;  /* when the job was seen first */
	uint64_t ran_ns;   /* run time and delay of its thread then */
};
/* Blocked nanoseconds since the job's last work_alive(), or since the first call of
 * blocked_time_ns() after it; 0 if no job is running, and while its thread is on a CPU or in the
 * run queue. Time there is not blocked time. */
uint64_t blocked_time_ns(struct blocked_time *t, const struct worker *worker);

/* Call before the worker's first job; the watchdog is the worker's listener. */
int watchdog_new(const struct watchdog_opts *opts, struct watchdog **ret);
/* Stops the worker: waits a moment for the running job, unless the job is blocked for longer than
 * @blocked_ns, then abandons the job, even above the largest number of blocked threads.
 * worker_free() then does not wait. Call before worker_free(). NULL is fine. */
void watchdog_free(struct watchdog *wd);
/* Threads that are still blocked. */
unsigned int watchdog_n_blocked(const struct watchdog *wd);

#endif
