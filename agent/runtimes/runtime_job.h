/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_RUNTIME_JOB_H
#define PODPROF_RUNTIMES_RUNTIME_JOB_H

/*
 * The tasks of a runtime reader's thread: probing a process, or reading its functions. A task owns
 * its data, because the thread can hang for ever; then the task, and the files that it searches,
 * are the thread's (base/watchdog.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_id.h"
#include "base/worker.h"
#include "discovery/pid.h"
#include "runtimes/runtime_process.h"
#include "runtimes/runtime_reader.h"

struct image;
struct runtime_files;
struct runtime_hung;
struct runtime_reader;
struct runtime_reader_kind;

/* Reads of one function, a microsecond each: a chain in the process's memory may be long or without
 * an end. A function of the tests' programs takes 251 at most, in optimised JavaScript; 32 inlined
 * functions may take some thousand. Reached: as unreadable memory, the function has no name. */
#define RUNTIME_FUNCTION_READS_MAX 16384

/* A function of a job: read, proved, or with the reason. */
struct runtime_named {
	struct runtime_function_key key;
	struct runtime_proof proof; /* of a function that is known */
	bool is_proved;		    /* and so not read */
	int outcome;
	void *value; /* owned, or NULL */
};

struct runtime_job {
	struct work work;
	struct runtime_reader *reader; /* for the loop */
	const struct runtime_reader_kind *kind;
	struct runtime_files *const *files_now; /* the files of the reader's thread */
	struct runtime_files
		*searched; /* the thread's while the job runs; the job's if abandoned */
	struct runtime_process_key key;
	struct pid_id pid;
	uint64_t owner;
	struct runtime_hung *hung; /* a reference */
	size_t hung_slot;	   /* of an abandoned job */
	int outcome;
	bool is_refused; /* not run: the owner has too many abandoned threads */
	void *target;	 /* owned: the probe's result, or a copy of the process's */

	/* of a probe */
	uint64_t version;
	struct image **files; /* @n_files references; the first @n_lacking lack the runtime */
	size_t n_files;
	size_t n_lacking;
	bool is_all;	      /* no file but these can have the runtime */
	struct file_id found; /* the file with the runtime */
	void *probed;	      /* owned: the probe's result for @found; NULL: none */

	/* of reading functions */
	struct runtime_named *functions; /* @n */
	size_t n;
	size_t n_read; /* of these, from the first on */
};

/* A job about @p, without members of its task. @hung: takes a reference. NULL without memory. */
struct runtime_job *runtime_job_new(const struct runtime_reader_kind *kind,
				    struct runtime_hung *hung, const struct runtime_process *p);
void runtime_job_free(struct runtime_job *job);

/* Begins both tasks: takes the thread's files. */
void runtime_job_begin(struct work *work);
/* Task of the thread: looks for the runtime in the process, first in @files. The result is
 * @outcome, with @target (its bytes are zeros before), @n_lacking, @found and @probed. */
void runtime_job_probe(struct work *work);
/* Task of the thread: reads @functions, the first at least, for a second at most. */
void runtime_job_read(struct work *work);
/* The thread of an abandoned job has returned (watchdog_opts.drop). */
void runtime_job_drop(struct work *work);

#endif
