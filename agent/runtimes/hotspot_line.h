/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_HOTSPOT_LINE_H
#define PODPROF_RUNTIMES_HOTSPOT_LINE_H

/* The compressed line table of a Java method: pairs of bytecode index and line. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * hotspot_line() - the line of a bytecode
 * @bytes:      the table; ends with a zero, or with its @n bytes
 * @no_zero:    as in struct hotspot_numbers
 * @bci:        index of the bytecode; one outside of the method has a line too, the first or the
 *              last
 * @ret_first:  the first line of the method: the lowest; may be NULL
 *
 * Return: the line; 0: not known.
 */
uint32_t hotspot_line(const uint8_t *bytes, size_t n, bool no_zero, uint32_t bci,
		      uint32_t *ret_first);

#endif
