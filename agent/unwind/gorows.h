/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_GOROWS_H
#define PODPROF_UNWIND_GOROWS_H

/*
 * Rows of Go code, from Go's own tables of each function's stack depth (gofile/gopcsp.h). Their
 * source is ROWS_GO (rows.h), so they take precedence over .eh_frame where both describe the code.
 */

#include <stdint.h>

struct elffile;
struct gocode_func;
struct gorows;
struct rows;

/* Counts of the functions given to gorows_add(). */
struct gorows_stats {
	uint64_t n_funcs;	  /* all */
	uint64_t n_framed;	  /* with a frame pointer */
	uint64_t n_special;	  /* ending or changing a stack, or a signal's return path */
	uint64_t n_without_table; /* nothing known: gaps */
	uint64_t n_odd;		  /* with an invalid table: gaps */
};

/**
 * gorows_add_file() - add the rows of a file's Go code
 * @rows:      that file's, not finished
 * @ret_stats: NULL if not wanted
 *
 * Costs about 1 ns for each byte of the file, and memory for its stack tables during the call.
 *
 * Return: 0, also if some functions have no rows (@ret_stats); an outcome of enum gopcsp_outcome if
 * the file is not Go's or its tables are unreadable: nothing was added; -ENOSPC if @rows is full;
 * -errno.
 */
int gorows_add_file(const struct elffile *file, struct rows *rows, struct gorows_stats *ret_stats);

/* Function by function. Both arguments are borrowed and must outlive the result. 0;
 * GOPCSP_UNSUPPORTED for a machine without rules; -ENOMEM. */
int gorows_new(const struct elffile *file, struct rows *rows, struct gorows **ret);
void gorows_free(struct gorows *g);

/* Adds the rows of one function. Functions in ascending order are fast. 0; ROWS_FULL; -errno. */
int gorows_add(struct gorows *g, const struct gocode_func *func);

#endif
