/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_WAYS_H
#define PODPROF_RUNTIMES_V8_WAYS_H

/* The ways to an instruction of compiled code. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Jumps to one piece of code. Reached: the inlined functions at the instruction are not known. */
#define V8_WAYS_MAX	  16
/* Bytes of code that are decoded. Reached: the same, at all its instructions. */
#define V8_WAYS_BYTES_MAX (256u << 10)

/**
 * struct v8_ways - how control comes to an instruction
 * @is_call:   the instruction calls, and is not at its beginning: a frame of a caller
 * @from_mark: from the mark, without a jump
 * @jumps:     from jumps at @n_jumps distances
 */
struct v8_ways {
	bool is_call;
	bool from_mark;
	uint32_t jumps[V8_WAYS_MAX];
	size_t n_jumps;
};

/**
 * v8_ways_find() - the ways to the instruction at @at, from a mark before it
 * @machine: EM_X86_64 or EM_AARCH64
 * @code:    all instructions of a piece of code; @mark and @at are distances in it
 *
 * A jump by a table may lead to any instruction.
 *
 * Return: false if the instruction is not known.
 */
bool v8_ways_find(uint16_t machine, const uint8_t *code, size_t n, uint32_t mark, uint32_t at,
		  struct v8_ways *ret);

#endif
