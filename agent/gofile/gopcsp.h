/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOPCSP_H
#define PODPROF_GOFILE_GOPCSP_H

/*
 * How far the stack pointer is from where it was at a Go function's entry, for each place of its
 * code: what Go's own stack walks go by, and exact. All functions of a file, one after the other;
 * for single questions about names there is gopclntab.
 */

#include <stddef.h>

#include "gofile/gocode.h"

struct elffile;
struct gopcsp;

enum gopcsp_outcome {
	GOPCSP_OK = 0,
	GOPCSP_ABSENT,	    /* the file has no Go code */
	GOPCSP_UNSUPPORTED, /* an unknown magic, or a text base that cannot be found */
	GOPCSP_MALFORMED,   /* an offset leaves the tables, or does not lead where it should */
	GOPCSP_TOO_LARGE,   /* more bytes of tables than GOPCSP_TABLES_MAX */
	GOPCSP_END,	    /* that was the last function */
	GOPCSP_OUTCOME_MAX,
};

/* @file is borrowed and must outlive it. 0, an outcome, -errno. For one thread at a time. */
int gopcsp_open(const struct elffile *file, struct gopcsp **ret);
void gopcsp_free(struct gopcsp *p);

/* The functions in ascending order; @ret's steps last until the next call. 0; GOPCSP_MALFORMED for
 * a function that is left out: call again; GOPCSP_END; -errno. */
int gopcsp_next(struct gopcsp *p, struct gocode_func *ret);

/* Memory held now. */
size_t gopcsp_bytes(const struct gopcsp *p);

const char *gopcsp_outcome_name(int outcome);

#endif
