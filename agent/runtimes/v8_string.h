/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_V8_STRING_H
#define PODPROF_RUNTIMES_V8_STRING_H

/* Strings of V8: characters in one piece, or parts of other strings. */

#include <stddef.h>
#include <stdint.h>

#include "runtimes/v8_object.h"

/* Strings that one string leads to, one after the other; V8 makes two or three. Reached: `odd`, so
 * the function is "[v8: gone]". */
#define V8_STRING_LINKS_MAX 16
/* Pieces of a string that is put together. Reached: cut. */
#define V8_STRING_PARTS_MAX 64

/**
 * struct v8_text - characters in one piece
 * @at:    address of the first
 * @n:     number
 * @width: bytes of each: 1 (Latin-1) or 2 (UTF-16)
 */
struct v8_text {
	uint64_t at;
	uint32_t n;
	uint32_t width;
};

/* The characters of a string. V8_ODD for another object, and for a string of several pieces; an
 * outcome of memory, -errno. */
int v8_string_find(const struct v8_heap *heap, uint64_t string, struct v8_text *ret);

/* UTF-8 of a string, cut at @size - 1 bytes and terminated; also of several pieces. 0, as above. */
int v8_string_read(const struct v8_heap *heap, uint64_t string, char *ret, size_t size);

#endif
