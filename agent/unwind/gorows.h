/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_GOROWS_H
#define PODPROF_UNWIND_GOROWS_H

/*
 * Rows of Go code, from what Go's own tables say of each function's stack (gofile/gopcsp.h). They
 * are of the source ROWS_GO (rows.h), so that they win over .eh_frame where both describe the code.
 */

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

/**
 * gorows_add_file() - add the rows of a file's Go code
 * @rows:      that file's, not finished
 * @ret_stats: NULL if not wanted
 *
 * Costs about 1 ns for each byte of the file, and memory for its stack tables while it runs.
 *
 * Return: 0, also if some functions have no rows (@ret_stats); an outcome of enum gopcsp_outcome if
 * the file is not Go's or its tables cannot be read: nothing was added; -ENOSPC if @rows is full;
 * -errno.
 */
int gorows_add_file(const struct elffile *file, struct rows *rows, struct gorows_stats *ret_stats);

/* Function by function. Both are borrowed and must outlive it. 0; GOPCSP_UNSUPPORTED if there are
 * no rules for the file's machine; -ENOMEM. */
int gorows_new(const struct elffile *file, struct rows *rows, struct gorows **ret);
void gorows_free(struct gorows *g);

/* The rows of one function. Functions in ascending order are fast. 0; ROWS_FULL; -errno. */
int gorows_add(struct gorows *g, const struct gocode_func *func);

#endif
