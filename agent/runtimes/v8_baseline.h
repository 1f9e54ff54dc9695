/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_BASELINE_H
#define PODPROF_RUNTIMES_V8_BASELINE_H

/* The bytecode of an address in baseline code. */

#include <stddef.h>
#include <stdint.h>

#include "runtimes/v8_object.h"

struct v8_code;

/* Bytes of bytecode, and of the table of a baseline code. Reached: no line. */
#define V8_BASELINE_BYTES_MAX (256u << 10)

/* Sizes of @n bytecodes at @at: without prefix, then with each of two prefixes. */
struct v8_sizes {
	uint64_t at;
	uint32_t n;
};

/**
 * v8_baseline_offset() - the bytecode at a distance in the code
 * @table:    bytes of code of what is before the first bytecode, of the first bytecode, of the
 *            second and so on, each in LEB128; one above 32 bits ends the table
 * @bytecode: of the function
 * @sizes:    three times @n_sizes
 *
 * Return: the offset of the bytecode; UINT32_MAX before the first and behind the last.
 * Source: V8, src/baseline/bytecode-offset-iterator.h.
 */
uint32_t v8_baseline_offset(const uint8_t *table, size_t n, const uint8_t *bytecode,
			    size_t n_bytecode, const uint8_t *sizes, uint32_t n_sizes,
			    uint64_t distance);

/* The same for the address @pc in the memory of a process. 0; V8_ODD if it is not known; an outcome
 * of memory, -errno. */
int v8_baseline_find(const struct v8_heap *heap, const struct v8_sizes *sizes,
		     const struct v8_code *code, uint64_t pc, uint32_t *ret);

#endif
