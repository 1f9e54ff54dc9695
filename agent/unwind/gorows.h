/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_GOROWS_H
#define PODPROF_UNWIND_GOROWS_H

/*
 * Rows of Go code, from what Go's own tables say of each function's stack (gofile/gocode.h).
 * Whoever has both joins the reader of those tables with this:
 *
 *	gorows_new(file, rows, &g)
 *	for each function: gorows_add(g, &func)
 *	gorows_free(g)
 *
 * rows.h: the rows are of the source ROWS_GO, so that they win over .eh_frame where both describe
 * the code.
 */

#include <stdbool.h>
#include <stdint.h>

struct elffile;
struct gocode_func;
struct gorows;
struct rows;

/* What was made of the functions that gorows_add() was given. */
struct gorows_stats {
	uint64_t n_funcs;	  /* all */
	uint64_t n_framed;	  /* that keep a frame pointer */
	uint64_t n_special;	  /* that end a stack, change it, or are a signal's way back */
	uint64_t n_without_table; /* nothing known: gaps */
	uint64_t n_odd;		  /* whose table makes no sense: gaps */
};

/* Whether there are rules for the file's machine. */
bool gorows_supports(const struct elffile *file);

/* Both are borrowed and must outlive it; gorows_supports(@file) holds. 0 or -ENOMEM. */
int gorows_new(const struct elffile *file, struct rows *rows, struct gorows **ret);
void gorows_free(struct gorows *g);

/* The rows of one function. Functions in ascending order are fast. 0; ROWS_FULL; -errno. */
int gorows_add(struct gorows *g, const struct gocode_func *func);

const struct gorows_stats *gorows_stats(const struct gorows *g);

#endif
