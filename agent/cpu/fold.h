/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CPU_FOLD_H
#define PODPROF_CPU_FOLD_H

/* A table of distinct stacks with counts, for a series and window. The table is bounded: a full
 * table refuses a new stack, and the caller counts the samples as lost. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procmap/image.h"

/* Distinct stacks of a series in a window: the sample limit of a profile (export/profile.h).
 * At 97 Hz a busy CPU gives 5,820 samples a minute. Reached: `podprof_fold_lost_samples_total`.
 */
#define FOLD_STACKS_MAX 16000
/* Frames of all stacks together: 17 bytes each, 9 MB. Measured stacks have 20 to 40 frames.
 * Reached: `podprof_fold_lost_samples_total`. */
#define FOLD_FRAMES_MAX (1u << 19)
/* Frames of a stack, more than CPU_STACK_FRAMES_MAX. Reached: as above. */
#define FOLD_DEPTH_MAX	UINT16_MAX

/* Names of threads of a series in a window, or pairs of a thread's and a task's name: as many
 * labels as a reader can choose from. 48 bytes each. Reached: further threads and tasks are
 * `(other)`, `podprof_fold_other_thread_samples_total`. */
#define FOLD_NAMES_MAX 1024

/* A distinct stack. @frames are innermost first, kernel frames before user frames; the fold owns
 * the references to their images. @return_address marks each vaddr that is a return address
 * (subtract 1 for a lookup). @thread, @task: the names of its threads and tasks; NULL: none.
 * @count: samples. @value: their sum in the profile's unit. */
struct fold_stack {
	const struct frame *frames;
	const uint8_t *return_address;
	size_t n_frames;
	const char *thread;
	const char *task;
	uint64_t count;
	uint64_t value;
};

/**
 * struct fold_sample - a stack to add; borrowed
 * @frames, @return_address: @n_frames each, as in struct fold_stack
 * @thread, @task: names of its thread and task; "" or NULL: none. Above the limit, a name becomes
 *                 SAMPLE_OTHER_THREAD
 * @is_truncated:  outer frames are missing
 * @is_lost:       without a stack (sample_is_lost())
 */
struct fold_sample {
	const struct frame *frames;
	const uint8_t *return_address;
	size_t n_frames;
	const char *thread;
	const char *task;
	bool is_truncated;
	bool is_lost;
};

/* The address to look up: of a return address, the call in front of it. */
static inline uint64_t instruction_of(uint64_t vaddr, bool is_return)
{
	return vaddr - (is_return && vaddr);
}

/**
 * struct fold_totals - of all samples of a fold
 * @n_truncated:   with a truncated stack
 * @n_refused:     without room for their stack; @refused_value: their value
 * @n_other:       above the limit of names
 */
struct fold_totals {
	uint64_t n_truncated;
	uint64_t n_refused;
	uint64_t refused_value;
	uint64_t n_other;
};

enum fold_outcome {
	FOLD_OK = 0,
	FOLD_FULL,
};

struct fold;

int fold_new(struct fold **ret);
void fold_free(struct fold *fold);
/* Adds @count samples of a stack with the total @value. Copies the frames and takes references; of
 * a lost sample, changes only the totals, as of one without room. 0, FOLD_FULL, -ENOMEM; the last
 * two change only the totals. Invalidates results of fold_get(). */
int fold_add(struct fold *fold, const struct fold_sample *sample, uint64_t count, uint64_t value);
struct fold_totals fold_totals(const struct fold *fold);
/* Settles the frames (frame_settle()), before they get names; nothing may be added later. */
void fold_settle(struct fold *fold);
size_t fold_n(const struct fold *fold);
/* In the order of first appearance; borrowed. */
struct fold_stack fold_get(const struct fold *fold, size_t i);
/* Memory of the fold. */
size_t fold_bytes(const struct fold *fold);

#endif
