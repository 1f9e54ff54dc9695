/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_DEOPT_H
#define PODPROF_RUNTIMES_V8_DEOPT_H

/*
 * Data for deoptimisation: V8 can replace a frame of optimised code by frames of the interpreter,
 * one for each function that is inlined there. For each call that may have to do so, the code has
 * these frames, also if it has no source positions.
 */

#include <stddef.h>
#include <stdint.h>

#include "runtimes/runtimes.h"
#include "runtimes/v8_object.h"

struct v8_code;

/* Bytes of the translations of one code. Reached: calls whose translations are behind have the
 * compiled function alone. */
#define V8_DEOPT_BYTES_MAX (256u << 10)
/* Places of one code that are searched. Reached: the same, at calls behind. */
#define V8_DEOPT_CALLS_MAX 16384

#define V8_DEOPT_NO_BYTECODE UINT32_MAX

/**
 * struct v8_deopt_frame - a frame of the interpreter
 * @literal:  number of its function in the literals of the code
 * @bytecode: its offset; V8_DEOPT_NO_BYTECODE: the function's entry
 */
struct v8_deopt_frame {
	uint32_t literal;
	uint32_t bytecode;
};

/* Outermost first. A builtin whose loop is inlined, such as forEach(), has no frame here, as it has
 * no source position. */
struct v8_deopt_frames {
	struct v8_deopt_frame items[RUNTIMES_PLACES_MAX];
	size_t n;
};

/**
 * v8_deopt_parse() - the frames of a translation
 * @form:  V8_DEOPT_FORM
 * @bytes: all translations of a code, @n bytes
 * @index: of the translation
 *
 * A translation is a list of operations, each a number and operands of seven bits a byte, lowest
 * first. The first has the number of frames, all others are a frame or a value of a frame. Two
 * operations stand for operations of an earlier translation.
 *
 * Return: 0; V8_ODD if it contradicts itself, or has more frames than @ret has room.
 * Source: V8, src/deoptimizer/translation-opcode.h and frame-translation-builder.h, checked with
 * processes of 12.9 to 15.0.
 */
int v8_deopt_parse(int32_t form, const uint8_t *bytes, size_t n, uint32_t index,
		   struct v8_deopt_frames *ret);

/* The frames of the call that returns to the distance @to in optimised code. 0; V8_ODD if they are
 * not known; an outcome of memory, -errno. */
int v8_deopt_find(const struct v8_heap *heap, const struct v8_code *code, uint32_t to,
		  struct v8_deopt_frames *ret);

#endif
