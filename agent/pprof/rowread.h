/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_ROWREAD_H
#define PODPROF_PPROF_ROWREAD_H

/* The rows of a profile's tables, each out of its message. For reader.c, which knows in which order
 * they have to be read. */

#include "base/arena.h"
#include "pprof/field.h"
#include "pprof/ids.h"
#include "pprof/tables.h"

/**
 * struct rowread - tables being filled
 * @t:         have room for all rows of the file; the numbers of rows are of those read
 * @arena:     what the tables are in, and parts of rows
 * @n_strings: how many there are in the file
 * @mappings, @functions, @locations: by the file's ids; from their ids_finish() on they can be
 * named
 * @why:       what is wrong, for people; a constant string
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
/* What an arena returned: PPROF_FULL with the reason, or as it is. */
int rowread_full(struct rowread *rd, int r);

/* All below: 0, PPROF_MALFORMED, PPROF_FULL, -errno. */

typedef int (*rowread_fn)(struct rowread *rd, const struct field *f, void *row);

/* Give each field of @message to @fn, until one is refused. */
int rowread_each(struct rowread *rd, struct cursor message, rowread_fn fn, void *row);

int rowread_signed(struct rowread *rd, const struct field *f, int64_t *ret);
/* A string's index. */
int rowread_index(struct rowread *rd, const struct field *f, uint32_t *ret);
/* The profile's time, which may be there once. */
int rowread_time(struct rowread *rd, const struct field *f);
int rowread_type(struct rowread *rd, const struct field *f, struct pprof_type_row *ret);

/* One more row at the end of its table; of comments, which are numbers, all that @f has. */
int rowread_comment(struct rowread *rd, const struct field *f);
int rowread_string(struct rowread *rd, const struct field *f);
int rowread_mapping(struct rowread *rd, const struct field *f);
int rowread_function(struct rowread *rd, const struct field *f);
int rowread_location(struct rowread *rd, const struct field *f);
int rowread_sample(struct rowread *rd, const struct field *f);

#endif
