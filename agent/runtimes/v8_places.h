/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_PLACES_H
#define PODPROF_RUNTIMES_V8_PLACES_H

/* Tables of source positions: lines of bytecode, and the positions of compiled code. */

#include <stddef.h>
#include <stdint.h>

#include "runtimes/v8_object.h"

struct v8_lines;

/* Bytes of a table: two to four for each entry. Reached: the places behind have the last line. */
#define V8_TABLE_BYTES_MAX (64u << 10)
/* Changes of the line in one function. Reached: the same. */
#define V8_PLACES_MAX	   16384

/*
 * A source position: bit 0 for code of other languages; 30 bits for the character, counted from 1,
 * 0 for none; 16 bits for the inlined call in whose function it is, counted from 1, 0 for none. A
 * position of 0 is none.
 */
#define V8_NO_POSITION UINT32_MAX

static inline uint32_t v8_position_character(uint64_t position)
{
	const uint32_t character = (uint32_t)(position >> 1) & 0x3fffffff;

	return character && !(position & 1) ? character - 1 : V8_NO_POSITION;
}

static inline uint32_t v8_position_inlined(uint64_t position)
{
	return position & 1 ? 0 : (uint32_t)(position >> 31) & 0xffff;
}

static inline uint64_t v8_position_of(uint32_t character, uint32_t inlined)
{
	return (uint64_t)inlined << 31 | (uint64_t)(uint32_t)(character + 1) << 1;
}

/* From bytecode @at on, counted as in a frame's place (bpf/shared/v8.h), the line is @line; 0: not
 * known. */
struct v8_place {
	uint32_t at;
	uint32_t line;
};

/**
 * v8_places_parse() - the lines of a table
 * @shift: by release (V8_TABLE_SHIFT)
 * @base:  place of bytecode 0
 * @ret:   room for V8_PLACES_MAX
 *
 * An entry is a distance in the bytecode and one in the source, each of up to five or ten bytes of
 * seven bits, lowest first, with the sign in the lowest bit. The sign of the distance in the
 * bytecode is a flag, whether a statement begins there, and @shift more bits are flags. The
 * distances begin at -1, the place of a function's entry. A table that ends inside an entry, or
 * whose bytecodes do not ascend, ends there.
 *
 * Return: the number of places.
 * Source: V8, src/codegen/source-position-table.cc.
 */
size_t v8_places_parse(const uint8_t *table, size_t n, int32_t shift, uint32_t base,
		       const struct v8_lines *lines, struct v8_place *ret);

/* The source position of the instruction at @at in a table of the same form; 0 without one.
 * *@ret_from receives where its entry begins. */
uint64_t v8_position_find(const uint8_t *table, size_t n, int32_t shift, uint32_t at,
			  uint32_t *ret_from);

/* The bytes of an array, owned, @most of them; NULL if there is none. 0, an outcome of memory,
 * -errno. */
int v8_table_read(const struct v8_heap *heap, uint64_t table, size_t most, uint8_t **ret,
		  size_t *ret_n);

/* The bytecode array of @data, or of the code that was made of it; 0 for other code. 0, an outcome
 * of memory, -errno. */
int v8_bytecode_find(const struct v8_heap *heap, uint64_t data, uint64_t *ret);

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
