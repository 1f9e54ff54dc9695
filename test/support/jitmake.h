/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_JITMAKE_H
#define PODPROF_TEST_SUPPORT_JITMAKE_H

/* Writes the bytes of a jitdump, as a JIT compiler does. */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Kinds of records. */
enum jitmake_kind {
	JITMAKE_LOAD = 0,
	JITMAKE_MOVE = 1,
	JITMAKE_LINES = 2,
	JITMAKE_CLOSE = 3,
	JITMAKE_UNWINDING = 4,
};

/* The header's numbers that a reader looks at. */
struct jitmake_header {
	uint32_t magic;
	uint32_t version;
	uint32_t size;
	uint32_t machine;
};

/* An entry of a function's lines. */
struct jitmake_line {
	uint64_t address;
	uint32_t line;
	const char *file; /* NULL: the entry's before */
};

/* Of this machine. */
struct jitmake_header jitmake_this(void);
void jitmake_header(struct buf *b, const struct jitmake_header *header);
/* @n_code bytes of code follow the name. */
void jitmake_load(struct buf *b, uint64_t address, uint64_t size, const char *name, size_t n_code);
void jitmake_move(struct buf *b, uint64_t from, uint64_t to, uint64_t size);
void jitmake_lines(struct buf *b, uint64_t address, const struct jitmake_line *lines, size_t n);
/* A record of any kind and length with @n bytes. */
void jitmake_record(struct buf *b, uint32_t kind, uint32_t length, const void *bytes, size_t n);

#endif
