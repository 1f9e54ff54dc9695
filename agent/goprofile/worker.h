/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_WORKER_H
#define PODPROF_GOPROFILE_WORKER_H

/*
 * A thread that reads Go profiles, with a reader of its own. A process can block the thread
 * forever. Then thread and reader are abandoned, and a new thread continues with a new reader.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/worker.h"
#include "goprofile/reader.h"

struct go_profile_worker;
struct loop;

/**
 * struct go_profile_task - one job, embedded in the caller's struct
 * @work:   done() is the caller's; called when run() has returned in time, or was cancelled
 * @run:    on the worker's thread; calls work_alive() between processes, and uses only @reader
 * @drop:   frees the job, on any thread, when run() has returned too late
 * @reader: set for run(); NULL in a worker without a reader
 * @is_void: not run: the worker ends
 */
struct go_profile_task {
	struct work work;
	void (*run)(struct go_profile_task *task);
	void (*drop)(struct go_profile_task *task);
	struct go_profile_reader *reader;
	struct go_profile_worker *worker;
	bool is_void;
};

struct go_profile_worker_opts {
	struct loop *loop;
	const char *name;		      /* of the thread; NULL: "go-heap" */
	struct go_profile_reader_opts reader; /* without a proc: tasks have no reader */
	size_t queue_max;
	uint64_t stuck_ns; /* blocked time; 0: WATCHDOG_BLOCKED_NS */
	/* A task is abandoned: called on the loop. Only its inputs may be read. */
	void (*on_stuck)(void *ctx, struct go_profile_task *task);
	void *ctx;
};

int go_profile_worker_new(const struct go_profile_worker_opts *opts,
			  struct go_profile_worker **ret);
/* Waits for the end of the current read, but not long. */
void go_profile_worker_free(struct go_profile_worker *hw);
/* 0 or WORKER_FULL. */
int go_profile_worker_submit(struct go_profile_worker *hw, struct go_profile_task *task)
	__attribute__((warn_unused_result));
/* Tasks waiting or running, without abandoned ones. */
size_t go_profile_worker_pending(const struct go_profile_worker *hw);
/* Threads still blocked by a process. */
unsigned int go_profile_worker_n_stuck(const struct go_profile_worker *hw);

#endif
