/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_PLACES_H
#define PODPROF_RUNTIMES_V8_PLACES_H

/* Lines of bytecode: the table of source positions of a bytecode array. */

#include <stddef.h>
#include <stdint.h>

#include "runtimes/v8_object.h"

struct v8_lines;

/* Bytes of a table: two to four for each entry. Reached: the places behind have the last line. */
#define V8_TABLE_BYTES_MAX (64u << 10)
/* Changes of the line in one function. Reached: the same. */
#define V8_PLACES_MAX	   16384

/* From bytecode @at on, counted as in a frame's place (bpf/shared/v8.h), the line is @line; 0: not
 * known. */
struct v8_place {
	uint32_t at;
	uint32_t line;
};

/**
 * v8_places_parse() - the lines of a table
 * @base: place of bytecode 0
 * @ret:  room for V8_PLACES_MAX
 *
 * An entry is a distance in the bytecode and one in the source, each of up to five or ten bytes of
 * seven bits, lowest first, with the sign in the lowest bit. A table that ends inside an entry, or
 * whose bytecodes do not ascend, ends there.
 *
 * Return: the number of places.
 * Source: V8, src/codegen/source-position-table.cc.
 */
size_t v8_places_parse(const uint8_t *table, size_t n, uint32_t base, const struct v8_lines *lines,
		       struct v8_place *ret);

/**
 * v8_places_read() - the places of a function
 * @data: the word of the function's code; other code than bytecode has no places
 * @ret:  owned; NULL without places
 *
 * Return: 0, an outcome of memory, -errno.
 */
int v8_places_read(const struct v8_heap *heap, uint64_t data, const struct v8_lines *lines,
		   struct v8_place **ret, size_t *ret_n);

/* The line at @at; 0: not known. */
uint32_t v8_places_find(const struct v8_place *places, size_t n, uint32_t at);

#endif
