/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_CODE_H
#define PODPROF_RUNTIMES_PYTHON_CODE_H

/* A code object in the memory of a process: names, first line, line table. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "runtimes/python_layout.h"
#include "runtimes/runtimes.h"

struct memory;

/* Bytes of a line table: 2 to 4 for each line. Reached: the function has no lines. */
#define PYTHON_LINES_BYTES_MAX (256u << 10)

/* {0} is empty. The strings and the table lie in one piece of memory. */
struct python_code {
	char *name; /* owned; UTF-8; qualified from 3.11 on. "": not a function, but code of the
		     * interpreter's own */
	const char *file; /* behind @name */
	int32_t first_line;
	enum python_lines shape;
	const uint8_t *lines; /* behind @file; NULL: not known */
	size_t n_lines;
	size_t n_bytes; /* of all three */
};

void python_code_deinit(struct python_code *code);

/* The words that a frame's check is made of. */
struct python_code_key {
	uint64_t file;
	uint64_t name;	   /* from 3.12 on: the word with the code object's own number */
	uint64_t qualname; /* @name where there is none */
	uint64_t lines;
	uint64_t first_line;
	uint64_t has_strings; /* 1: the next two are set; to 3.11. No padding: keys are compared */
	struct python_code_string {
		uint64_t length;
		uint64_t hash; /* all ones: not computed yet */
		uint64_t tail[PYTHON_TAIL_WORDS];
	} name_string, file_string;
};

/* Bits 63..32 of a frame's second word. The walker computes the same. */
uint32_t python_code_check(const struct python_code_key *key);
/* Whether the walker could have read the key: CPython may have computed hashes of the strings
 * since. */
bool python_code_is(const struct python_code_key *key, uint32_t check);

/**
 * python_code_read() - read a code object
 * @address: of the object
 * @check:   of the frame; NULL: any
 * @ret:     must be empty; stays empty on failure
 *
 * The words of the check are read again at the end: they hold the strings. Ten reads or less.
 *
 * Return: 0; PYTHON_ODD if the object is no such code object, or not @check's any more;
 * PYTHON_UNREADABLE; PYTHON_GONE; PYTHON_DENIED; -errno.
 */
int python_code_read(struct memory *m, const struct python_layout *layout, uint64_t address,
		     const uint32_t *check, struct python_code *ret);

/* The line at @place of a frame's second word; 0: not known. */
uint32_t python_code_line(const struct python_code *code, int32_t place);

#endif
