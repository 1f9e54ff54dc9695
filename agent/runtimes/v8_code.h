/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_CODE_H
#define PODPROF_RUNTIMES_V8_CODE_H

/* Code that V8 made at run time: the code at an address, and the functions inlined there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/runtimes.h"
#include "runtimes/v8_object.h"

/* Bytes before an address that are searched for the beginning of its code. Reached: the frame's own
 * function without inlined ones. */
#define V8_CODE_BYTES_MAX (512u << 10)

/**
 * struct v8_code - code in memory
 * @object:    the Code object
 * @start:     of @n_bytes instructions
 * @data:      of optimised code: what it was made of; of baseline code: its bytecode
 * @positions: of optimised code: the table of source positions; of baseline code: of bytecodes
 */
struct v8_code {
	uint64_t object;
	uint64_t start;
	uint32_t n_bytes;
	uint32_t kind; /* enum v8_code_kind */
	uint64_t data;
	uint64_t positions;
};

/* The last two are optimised. */
enum v8_code_kind {
	V8_CODE_OTHER,
	V8_CODE_BASELINE,
	V8_CODE_FAST, /* by the compiler that takes less time */
	V8_CODE_OPTIMISED,
};

static inline bool v8_code_is_optimised(const struct v8_code *code)
{
	return code->kind == V8_CODE_FAST || code->kind == V8_CODE_OPTIMISED;
}

/* The code with the instruction at @pc. 0; V8_ODD if there is none; an outcome of memory, -errno.
 */
int v8_code_find(const struct v8_heap *heap, uint64_t pc, struct v8_code *ret);

/**
 * struct v8_scope - a function, and the part of it that is executed, or calls the function before
 * @shared:    the SharedFunctionInfo
 * @character: of its script; V8_NO_POSITION: not known
 * @place:     of its bytecode, counted as in a frame's place, if the character is not known; 0: not
 *             known
 */
struct v8_scope {
	uint64_t shared;
	uint32_t character;
	uint32_t place;
};

/* Innermost first; the last is the compiled function. */
struct v8_scopes {
	struct v8_scope items[RUNTIMES_PLACES_MAX];
	size_t n;
};

/**
 * v8_scopes_read() - the functions at an address of optimised code
 * @shared: the compiled function
 * @ret:    the only one without a position, if the tables have none or contradict themselves. With
 *          more than RUNTIMES_PLACES_MAX functions, the outermost but @shared are left out
 *
 * Without source positions of all inlined calls, the functions of a call are those of the data for
 * deoptimisation.
 *
 * Return: 0; V8_ODD if the code is not of @shared; an outcome of memory, -errno.
 */
int v8_scopes_read(const struct v8_heap *heap, const struct v8_code *code, uint64_t shared,
		   uint64_t pc, struct v8_scopes *ret);

#endif
