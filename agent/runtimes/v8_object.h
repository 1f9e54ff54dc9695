/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_OBJECT_H
#define PODPROF_RUNTIMES_V8_OBJECT_H

/* Objects of V8 in the memory of a process. A word refers to an object if its lowest bit is set. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/v8_layout.h"

struct memory;

/* @constants and @machine of the image. */
struct v8_heap {
	struct memory *memory;
	const int32_t *constants;
	uint16_t machine;
};

static inline bool v8_is_object(uint64_t word)
{
	return (word & 7) == 1;
}

static inline bool v8_is_integer(uint64_t word)
{
	return (uint32_t)word == 0;
}

static inline int32_t v8_integer(uint64_t word)
{
	return (int32_t)(word >> 32);
}

/* @n bytes at @off of @object. 0, V8_ODD for a word without object, an outcome of memory, -errno.
 */
int v8_bytes_read(const struct v8_heap *heap, uint64_t object, uint64_t off, void *ret, size_t n);
/* The word at @off. */
int v8_word_read(const struct v8_heap *heap, uint64_t object, uint64_t off, uint64_t *ret);
/* The number of items of an array, but not of bytecode. V8_ODD if the word is none. */
int v8_array_read(const struct v8_heap *heap, uint64_t array, uint32_t *ret);
/* The word @i of an array. V8_ODD behind its end. */
int v8_item_read(const struct v8_heap *heap, uint64_t array, uint32_t i, uint64_t *ret);
/* The type of the object. */
int v8_type_read(const struct v8_heap *heap, uint64_t object, uint16_t *ret);
/* V8_ODD if the object has another type. */
int v8_type_check(const struct v8_heap *heap, uint64_t object, enum v8_constant type);

#endif
