/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_FRAMES_H
#define PODPROF_RUNTIMES_PYTHON_FRAMES_H

/* The Python frames of a thread, read from outside of the process. The walker in the kernel reads
 * the same list (bpf/lib). */

#include <stddef.h>
#include <stdint.h>

#include "runtimes/python_layout.h"

struct memory;

/* The words of a frame, as in a sample. */
struct python_frame {
	uint64_t code; /* address of the code object */
	int32_t place;
};

/**
 * python_frames_read() - the frames of a thread state, innermost first
 * @process:    of an attached process
 * @state:      address of the thread state
 * @max:        room in @ret; a longer or cyclic list ends there
 * @ret, @ret_n: also set on failure: the frames up to there
 *
 * Return: 0; PYTHON_UNREADABLE; PYTHON_GONE; PYTHON_DENIED; -errno.
 */
int python_frames_read(struct memory *m, const struct python_process *process, uint64_t state,
		       size_t max, struct python_frame *ret, size_t *ret_n);

#endif
