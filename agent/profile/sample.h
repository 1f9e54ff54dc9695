/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_SAMPLE_H
#define PODPROF_PROFILE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "shared/frame.h"
#include "shared/sample.h"

/* The name of all threads, or tasks, above a limit of names. */
#define SAMPLE_OTHER_THREAD "(other)"
/* The names of tasks that the program has not named, and whose name is not readable or not in
 * ASCII, from bpf/lib/python_task.bpf.h. */
#define SAMPLE_TASK_UNNAMED "Task"
#define SAMPLE_TASK_UNKNOWN "(unknown)"
/* Bytes of a task's name, with its NUL. */
#define SAMPLE_TASK_BYTES   (SAMPLE_TASK_WORDS * 8)

/**
 * struct sample - one distinct stack of one process, with its count since the last drain; or its
 * samples without a stack, see sample_is_lost()
 * @pid:          identity of the process (thread group)
 * @cgroup_id:    the task's cgroup in the unified hierarchy
 * @cgroup_v1_id: the task's cgroup in the version 1 hierarchy of discovery; 0: none
 * @comm:         name of the group leader at the first sample of this stack; any bytes but NUL
 * @thread:       name of the thread, as @comm; "": threads have no names; SAMPLE_OTHER_THREAD above
 *                a limit of names
 * @task:         name of the asyncio task that the thread runs, likewise; "": none
 * @count:        samples; task switches for an off-CPU stack
 * @total:        off-CPU: waiting time of the threads, ns; on-CPU: samples, in units of
 *                sample_value()
 * @exec_id:      exec number of the process (bpf/shared/process.h)
 * @start_boottime_ns: start time of @pid as seen by BPF
 * @dump_id:      stack dump of the user half (profile/stack_dump.h); 0: none
 * @end:          enum sample_end (bpf/shared/sample.h): the end of the user walk
 * @flags:        SAMPLE_FLAG_*
 * @n_rows:       native user frames found by unwind table rows
 * @n_native:     native user frames
 * @n_walked:     native user frames without an innermost one, at which the walk began
 * @n_runtime:    frames of language runtimes, broken ones included
 * @kernel:       pcs, innermost first; [0] is the task's pc, the others are return addresses
 * @user:         well-formed words of frames (bpf/shared/frame.h), for sample_user_next(); pcs as
 *                in @kernel. Without runtime frames each word is a pc
 *
 * The callee borrows a sample for the length of the call.
 */
struct sample {
	struct pid_id pid;
	uint64_t cgroup_id;
	uint64_t cgroup_v1_id;
	char comm[PID_COMM_MAX];
	char thread[PID_COMM_MAX];
	char task[SAMPLE_TASK_BYTES];
	uint64_t exec_id;
	uint64_t start_boottime_ns;
	uint64_t dump_id;
	uint64_t count;
	uint64_t total;
	uint32_t end;
	uint32_t flags;
	size_t n_user;
	size_t n_kernel;
	size_t n_rows;
	size_t n_native;
	size_t n_walked;
	size_t n_runtime;
	const uint64_t *user;
	const uint64_t *kernel;
};

typedef void (*sample_fn)(void *ctx, const struct sample *sample);

enum sample_outcome {
	SAMPLE_OK = 0,
	SAMPLE_ODD, /* lengths, numbers or words not written by podprof's programs */
	SAMPLE_OUTCOME_MAX,
};

/* Read a map entry of the on-CPU program: @key is a struct sample_key, @value a struct
 * sample_small, sample_large, sample_deep or sample_head of @value_size bytes, both aligned to 8.
 * @ret borrows from @value. */
int sample_decode(const void *key, const void *value, size_t value_size, struct sample *ret);
/* Set the user half of @sample: @n_words words, borrowed, with @n_rows frames found by rows. 0 or
 * SAMPLE_ODD. */
int sample_set_user(struct sample *sample, const uint64_t *words, size_t n_words, size_t n_rows);
/* Set the names of the thread and the task, of a key with @flags: @names has SAMPLE_THREAD_WORDS
 * and SAMPLE_TASK_WORDS words if the flags say so. */
void sample_set_names(struct sample *sample, uint32_t flags, const uint64_t *names);
/* The frame at word *@at of the user half. Moves *@at behind the frame; start with 0. False at the
 * end. */
static inline bool sample_user_next(const struct sample *sample, size_t *at,
				    struct frame_record *ret)
{
	const uint32_t n =
		frame_decode((const __u64 *)sample->user + *at, sample->n_user - *at, ret);

	*at += n;
	return n > 0;
}

/* Whether the walk ended at a caller in no mapping, or may have. If the frame pointer leads there,
 * the caller's pc is not in the sample. */
static inline bool sample_lost_caller(const struct sample *sample)
{
	return sample->end == SAMPLE_END_NO_ROW || sample->end == SAMPLE_END_NO_MAPPING ||
	       sample->end == SAMPLE_END_REGISTER;
}

/* The sample has no stack, because the kernel had no room for it. */
static inline bool sample_is_lost(const struct sample *sample)
{
	return sample->flags & SAMPLE_FLAG_LOST;
}

/* The value of an on-CPU stack, if one sample has the value @period. */
uint64_t sample_value(const struct sample *sample, uint64_t period);

/* enum sample_end and enum sample_stat as label values: "ok", "truncated_no_fp", "lost_full". */
const char *sample_stat_name(unsigned int stat);
/* Whether samples counted under @stat reach user space. */
bool sample_stat_delivered(unsigned int stat);

#endif
