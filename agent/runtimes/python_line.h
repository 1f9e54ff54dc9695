/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_LINE_H
#define PODPROF_RUNTIMES_PYTHON_LINE_H

/* The line tables of CPython's code objects. */

#include <stddef.h>
#include <stdint.h>

#include "runtimes/python_layout.h"

/**
 * python_line() - the line of an instruction
 * @shape:      of @table
 * @table:      @n untrusted bytes
 * @first_line: co_firstlineno
 * @place:      as in a frame's words: bytes; with PYTHON_LINETABLE instructions of 2 bytes.
 *              Negative: the function has not begun, and the line is the first
 *
 * Return: 0 if the instruction has no line, or the table ends before it.
 */
uint32_t python_line(enum python_lines shape, const uint8_t *table, size_t n, int32_t first_line,
		     int32_t place);

#endif
