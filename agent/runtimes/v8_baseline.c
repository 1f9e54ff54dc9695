// SPDX-License-Identifier: Apache-2.0
/*
 * Baseline code has a piece of code for each bytecode, in the same order. Its table has the length
 * of each piece, and no bytecode offsets: these are known by going through the bytecode, with the
 * sizes of bytecodes from the image.
 */
#include "runtimes/v8_baseline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "procmap/memory.h"
#include "runtimes/v8_code.h"
#include "runtimes/v8_places.h"

/* Numbers of bytecodes that are a prefix, the same in all releases: even ones for 2 bytes, odd
 * ones for 4. */
#define PREFIXES 4

/* Bytes of the bytecode at @bytecode; 0: not known. */
static uint32_t size_of(const uint8_t *bytecode, size_t n, const uint8_t *sizes, uint32_t n_sizes)
{
	uint32_t prefix = 0, row = 0;

	if (n && bytecode[0] < PREFIXES) {
		prefix = 1;
		row = 1 + (bytecode[0] & 1);
	}
	if (n <= prefix || bytecode[prefix] >= n_sizes)
		return 0;
	return prefix + sizes[row * n_sizes + bytecode[prefix]];
}

uint32_t v8_baseline_offset(const uint8_t *table, size_t n, const uint8_t *bytecode,
			    size_t n_bytecode, const uint8_t *sizes, uint32_t n_sizes,
			    uint64_t distance)
{
	struct cursor lengths;
	uint64_t limit, length;
	size_t off = 0;

	cursor_init(&lengths, table, n);
	if (!cursor_uleb(&lengths, &limit) || distance < limit)
		return UINT32_MAX;
	while (off < n_bytecode && cursor_uleb(&lengths, &length) && length <= UINT32_MAX) {
		const uint32_t size = size_of(bytecode + off, n_bytecode - off, sizes, n_sizes);

		limit += length;
		if (distance < limit)
			return (uint32_t)off;
		if (!size)
			break;
		off += size;
	}
	return UINT32_MAX;
}

/* ---------------------------------------------------------------- in a process */

/* The bytecode, owned; NULL without one. */
static int read_bytecode(const struct v8_heap *heap, uint64_t array, uint8_t **ret, size_t *ret_n)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	uint64_t n;
	int r = v8_word_read(heap, array, (uint64_t)heap->constants[V8_ARRAY_N], &n);

	if (r || !v8_is_integer(n) || v8_integer(n) <= 0 ||
	    v8_integer(n) > (int32_t)V8_BASELINE_BYTES_MAX)
		return r;
	bytes = malloc((size_t)v8_integer(n));
	if (!bytes)
		return -ENOMEM;
	r = v8_bytes_read(heap, array, (uint64_t)heap->constants[V8_BYTECODE_DATA], bytes,
			  (size_t)v8_integer(n));
	if (r)
		return r;
	*ret = take_ptr(bytes);
	*ret_n = (size_t)v8_integer(n);
	return 0;
}

int v8_baseline_find(const struct v8_heap *heap, const struct v8_sizes *sizes,
		     const struct v8_code *code, uint64_t pc, uint32_t *ret)
{
	_cleanup_(freep) uint8_t *table = NULL, *bytecode = NULL;
	uint8_t bytes[3 * V8_BYTECODES_MAX];
	size_t n = 0, n_bytecode = 0;
	int r = v8_outcome_of_memory(memory_read(heap->memory, sizes->at, bytes, 3ull * sizes->n));

	if (!r)
		r = v8_table_read(heap, code->positions, V8_BASELINE_BYTES_MAX, &table, &n);
	if (!r && table)
		r = read_bytecode(heap, code->data, &bytecode, &n_bytecode);
	if (r)
		return r;
	if (!bytecode)
		return V8_ODD;
	*ret = v8_baseline_offset(table, n, bytecode, n_bytecode, bytes, sizes->n,
				  pc - code->start);
	return *ret == UINT32_MAX ? V8_ODD : 0;
}
