/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PPROF_TABLES_H
#define PODPROF_PPROF_TABLES_H

/*
 * A profile as plain tables, filled by the builder or the reader, and read by wire and flame. Rows
 * refer to each other by number. Strings count from 0, where 0 is "". Mappings, functions and
 * locations count from 1, where 0 is "none" and number n is row n - 1. The creator of the tables
 * has checked every number, and owns all memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/pprof.h"

/* Values of one sample of a foreign file. Go's own profiles have up to 4; a plain bound. Reached:
 * `PPROF_FULL`. */
#define PPROF_TYPES_MAX 16

struct pprof_type_row {
	uint32_t type; /* strings */
	uint32_t unit;
};

struct pprof_mapping_row {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	uint32_t path; /* strings */
	uint32_t build_id;
	bool has_functions;
	bool has_filenames;
	bool has_line_numbers;
	bool has_inline_frames;
};

struct pprof_function_row {
	int64_t start_line;
	uint32_t name; /* strings */
	uint32_t system_name;
	uint32_t file;
	uint32_t reserved; /* 0: rows are compared as bytes */
};

struct pprof_location_row {
	uint64_t address;
	const struct pprof_line *lines; /* innermost first */
	uint32_t n_lines;
	uint32_t mapping;
};

struct pprof_label_row {
	int64_t num;
	uint32_t key; /* strings */
	uint32_t str; /* 0: the label is the number */
	uint32_t unit;
	uint32_t reserved; /* 0 */
};

/* The sample's values are n_types numbers at pprof_tables.values + row * n_types. */
struct pprof_sample_row {
	const uint32_t *locations; /* leaf first */
	const struct pprof_label_row *labels;
	uint32_t n_locations;
	uint32_t n_labels;
};

struct pprof_tables {
	struct pprof_type_row types[PPROF_TYPES_MAX];
	size_t n_types;
	struct pprof_type_row period_type;
	uint32_t default_type; /* string; 0: the last of types */
	uint32_t doc_url;      /* string; 0: none */
	int64_t period;
	int64_t time_ns;
	int64_t duration_ns;
	const char **strings;
	size_t n_strings;
	struct pprof_mapping_row *mappings;
	size_t n_mappings;
	struct pprof_function_row *functions;
	size_t n_functions;
	struct pprof_location_row *locations;
	size_t n_locations;
	struct pprof_sample_row *samples;
	size_t n_samples;
	int64_t *values;
	bool without_zeros; /* samples whose values are all 0 are not written */
	uint32_t *comments; /* strings */
	size_t n_comments;
};

/* The number (from 0) of the sample type @name. For NULL the default type: the profile's own
 * default if the name exists, else the last. False for no such type. */
bool tables_type(const struct pprof_tables *t, const char *name, size_t *ret);
/* The sum of one type's values over all samples. */
int64_t tables_total(const struct pprof_tables *t, size_t type);

/* @sum += @value, saturating. */
static inline void tables_add(int64_t *sum, int64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = value < 0 ? INT64_MIN : INT64_MAX;
}

#endif
