/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_GOPCSP_H
#define PODPROF_SYMBOLIZE_GOPCSP_H

/*
 * How far the stack pointer is from where it was at a Go function's entry, for each place of its
 * code: what Go's own stack walks go by, and exact. All functions of a file, one after the other;
 * for single questions about names there is gopclntab.
 */

#include <stddef.h>
#include <stdint.h>

#include "symbolize/gofunc.h"

struct elffile;
struct gopcsp;

/* Bytes of a name that are kept, with the NUL: enough for the runtime's own functions. */
#define GOPCSP_NAME_MAX 64

enum gopcsp_outcome {
	GOPCSP_OK = 0,
	GOPCSP_ABSENT,	    /* the file has no Go code */
	GOPCSP_UNSUPPORTED, /* an unknown magic, or a text base that cannot be found */
	GOPCSP_MALFORMED,   /* an offset leaves the tables, or does not lead where it should */
	GOPCSP_TOO_LARGE,   /* more bytes of tables than GOPCSP_TABLES_MAX */
	GOPCSP_END,	    /* that was the last function */
	GOPCSP_OUTCOME_MAX,
};

/* From @start on to the next one, or to the end of the function. */
struct gopcsp_step {
	uint64_t start; /* vaddr */
	int32_t delta;	/* bytes that the stack pointer is below its value at entry */
};

/**
 * struct gopcsp_func - one function
 * @entry:   vaddr
 * @end:     vaddr: where the next one begins, so there may be padding before it
 * @flags:   enum gofunc_flag
 * @name:    cut to its room; "" for most: only those that have a flag, or a number that marks
 *           special functions, and all in files of Go 1.16 and 1.17, which has few flags
 * @steps:   ascending, the first at @entry; none if the function has no table. Borrowed until the
 *           next call.
 * @n_steps: of them
 */
struct gopcsp_func {
	uint64_t entry;
	uint64_t end;
	uint8_t flags;
	char name[GOPCSP_NAME_MAX];
	const struct gopcsp_step *steps;
	size_t n_steps;
};

/* @file is borrowed and must outlive it. 0, an outcome, -errno. For one thread at a time. */
int gopcsp_open(const struct elffile *file, struct gopcsp **ret);
void gopcsp_free(struct gopcsp *p);

/* The functions in ascending order. 0; GOPCSP_MALFORMED for a function that is left out: call
 * again; GOPCSP_END; -errno. */
int gopcsp_next(struct gopcsp *p, struct gopcsp_func *ret);

/* Memory held now. */
size_t gopcsp_bytes(const struct gopcsp *p);

const char *gopcsp_outcome_name(int outcome);

#endif
