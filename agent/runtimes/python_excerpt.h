/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_EXCERPT_H
#define PODPROF_RUNTIMES_PYTHON_EXCERPT_H

/*
 * Processes with CPython that end before the agent reads them: what the walker needs to copy their
 * frames with a stack dump (bpf/shared/python.h), and the process as such a copy shows it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/python_target.h"

/**
 * python_excerpt_exe() - what the walker needs for a program
 * @known: a process with this image, or NULL: where its threads have their states
 *
 * False: nothing is known of where a thread may have its state.
 */
bool python_excerpt_exe(const struct python_image *image, const struct python_target *known,
			struct python_exe *ret);

/* The process of an excerpt of @n bytes, with @image at @bias. False: it has no thread's state. */
bool python_excerpt_target(const struct python_image *image, uint64_t bias, const uint8_t *bytes,
			   size_t n, struct python_target *ret);

/* The next frame with a function: the words of its function's frame, with the place 0. *@at is 0 at
 * first. False: no more. */
bool python_excerpt_next(const struct python_target *target, const uint8_t *bytes, size_t n,
			 uint64_t *at, uint64_t ret_words[2]);

#endif
