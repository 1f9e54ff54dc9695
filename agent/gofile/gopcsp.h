/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOFILE_GOPCSP_H
#define PODPROF_GOFILE_GOPCSP_H

/*
 * The distance of the stack pointer from its value at a Go function's entry, for each place of the
 * code. Go's own stack walks use the same data, and it is exact. All functions of a file, in
 * sequence; gopclntab answers single questions about names.
 */

#include <stddef.h>

#include "gofile/gocode.h"

struct elffile;
struct gopcsp;

enum gopcsp_outcome {
	GOPCSP_OK = 0,
	GOPCSP_ABSENT,	    /* the file has no Go code */
	GOPCSP_UNSUPPORTED, /* an unknown magic, or an unknown text base */
	GOPCSP_MALFORMED,   /* an offset outside of the tables, or to a wrong place */
	GOPCSP_TOO_LARGE,   /* more bytes of tables than GOPCSP_TABLES_MAX */
	GOPCSP_END,	    /* no more functions */
	GOPCSP_OUTCOME_MAX,
};

/* @file is borrowed and must outlive the reader. 0, an outcome, -errno. For one thread at a
 * time. */
int gopcsp_open(const struct elffile *file, struct gopcsp **ret);
void gopcsp_free(struct gopcsp *p);

/* The next function in ascending order; @ret's steps are valid until the next call. 0;
 * GOPCSP_MALFORMED for a skipped function: call again; GOPCSP_END; -errno. */
int gopcsp_next(struct gopcsp *p, struct gocode_func *ret);

#endif
