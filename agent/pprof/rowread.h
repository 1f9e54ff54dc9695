/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_ROWREAD_H
#define PODPROF_PPROF_ROWREAD_H

/* Reads the rows of a profile's tables, each from its message. For reader.c, which knows the order
 * of the tables. */

#include "base/arena.h"
#include "pprof/field.h"
#include "pprof/ids.h"
#include "pprof/tables.h"

/**
 * struct rowread - tables being filled
 * @t:         have room for all rows of the file; the counts are of rows already read
 * @arena:     the memory of the tables and of parts of rows
 * @n_strings: number in the file
 * @mappings, @functions, @locations: by the file's ids; usable after their ids_finish()
 * @why:       the problem, for people; a constant string
 */
struct rowread {
	struct pprof_tables t;
	struct arena arena;
	size_t n_strings;
	struct ids mappings, functions, locations;
	const char *why;
};

/* PPROF_MALFORMED, for this reason. */
int rowread_malformed(struct rowread *rd, const char *why);
/* Converts an arena's result: PPROF_FULL with the reason; other results unchanged. */
int rowread_full(struct rowread *rd, int r);

/* All below: 0, PPROF_MALFORMED, PPROF_FULL, -errno. */

typedef int (*rowread_fn)(struct rowread *rd, const struct field *f, void *row);

/* Pass each field of @message to @fn, up to the first refused field. */
int rowread_each(struct rowread *rd, struct cursor message, rowread_fn fn, void *row);

int rowread_signed(struct rowread *rd, const struct field *f, int64_t *ret);
/* A string's index. */
int rowread_index(struct rowread *rd, const struct field *f, uint32_t *ret);
/* The profile's time; a second occurrence is an error. */
int rowread_time(struct rowread *rd, const struct field *f);
int rowread_type(struct rowread *rd, const struct field *f, struct pprof_type_row *ret);

/* Append a row to its table. Comments are numbers, and all numbers of @f are appended. */
int rowread_comment(struct rowread *rd, const struct field *f);
int rowread_string(struct rowread *rd, const struct field *f);
int rowread_mapping(struct rowread *rd, const struct field *f);
int rowread_function(struct rowread *rd, const struct field *f);
int rowread_location(struct rowread *rd, const struct field *f);
int rowread_sample(struct rowread *rd, const struct field *f);

#endif
