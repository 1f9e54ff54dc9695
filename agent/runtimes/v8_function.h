/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_FUNCTION_H
#define PODPROF_RUNTIMES_V8_FUNCTION_H

/* The functions of a JavaScript frame, read from the memory of the process. */

#include <stddef.h>
#include <stdint.h>

#include "runtimes/runtime_reader.h"
#include "runtimes/runtimes.h"
#include "runtimes/v8_process.h"

struct memory;
struct v8_place;

/**
 * struct v8_function - {0} is empty
 * @functions: innermost first; the last is the frame's, the others are inlined there. Owned, with
 *             the strings, @n_bytes
 * @places:    @n_places lines of the bytecode, ascending; owned. None for compiled code, whose
 *             lines are in @functions
 * @proof:     of optimised code: the garbage collector frees it, and the same function may be
 *             compiled again, with other inlined functions, at the same address
 */
struct v8_function {
	struct runtime_place *functions;
	size_t n_functions;
	size_t n_bytes;
	struct v8_place *places;
	size_t n_places;
	struct runtime_proof proof;
};

void v8_function_deinit(struct v8_function *f);

/**
 * v8_function_read() - read a function
 * @words: of the frame; the place does not count, but for compiled code
 * @ret:   must be empty; stays empty on failure
 *
 * The types of the objects are checked. The words of the check are compared before and after the
 * reading, so a name belongs to the frame.
 *
 * Return: 0; V8_ODD if the memory is no such function, or not the frame's any more; V8_UNREADABLE;
 * V8_GONE; V8_DENIED; -errno.
 */
int v8_function_read(struct memory *m, const struct v8_target *target, const uint64_t words[2],
		     struct v8_function *ret);

/* The answer for the place @at of a frame's second word, borrowed from @f. */
struct runtime_place v8_function_place(const struct v8_function *f, uint32_t at);

#endif
