/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_STRING_H
#define PODPROF_RUNTIMES_PYTHON_STRING_H

/* CPython's compact strings: 1, 2 or 4 bytes a character, all of one width. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/python_layout.h"

/* Bytes of a string object that python_string_parse() needs, at most: 36, or 52 in a build without
 * the interpreter lock. */
#define PYTHON_STRING_HEADER_BYTES 56u

/**
 * struct python_string - where a string's characters are
 * @offset: of the first, in the object
 * @n:      characters
 * @width:  bytes of each: 1, 2, 4
 */
struct python_string {
	uint16_t offset;
	uint8_t width;
	uint64_t n;
};

/* How many of them: a short string may be at the end of the mapped memory. */
size_t python_string_header_bytes(const struct python_layout *layout);

/* From the first PYTHON_STRING_HEADER_BYTES of the object. False if these are no compact string. */
bool python_string_parse(const struct python_layout *layout,
			 const uint8_t header[PYTHON_STRING_HEADER_BYTES],
			 struct python_string *ret);

/* UTF-8 of @n characters, cut at @size - 1 bytes and terminated. Code points that UTF-8 does not
 * have become '?', zeros too. */
void python_string_utf8(const uint8_t *chars, size_t n, uint8_t width, char *ret, size_t size);

#endif
