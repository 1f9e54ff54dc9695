/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_SAMELINES_H
#define PODPROF_TEST_SUPPORT_SAMELINES_H

/* Two profiles of one thing, by what people see of them: a sample is its stack as text (function,
 * file, line, inlined or not), its labels and its values. Nothing is rounded or left out. */

#include <stddef.h>
#include <stdint.h>

struct buf;

#define SAMELINES_VALUES_MAX 4

/* All samples with one stack and one set of labels, since Go 1.26 and later write several of them.
 */
struct sameline {
	char *key;
	int64_t values[SAMELINES_VALUES_MAX];
	size_t n; /* samples added up */
};

/* Sorted by key. */
struct samelines {
	struct sameline *items;
	size_t n;
	size_t n_values;
	int64_t period;
};

/* The test fails if @profile is none, or has other sample types than these @n_types. */
void samelines_of(const struct buf *profile, const char *const *types, size_t n_types,
		  struct samelines *ret);
void samelines_deinit(struct samelines *l);
const struct sameline *samelines_find(const struct samelines *l, const struct sameline *line);

/* What a comparison has seen, added up. */
struct samelines_tally {
	size_t n_lines;
	size_t n_exact;
	size_t n_one_off;
	size_t n_frames;
};

/**
 * samelines_compare() - the test fails unless both are the same
 *
 * Every line of @own is in @ours, with values that differ by no more than one a sample, for the
 * last bit of exp() (goheap/goheap.c). What only @ours has is all zero: a process makes records
 * by writing its profile, and they are published later.
 */
void samelines_compare(const struct samelines *own, const struct samelines *ours,
		       struct samelines_tally *tally);

#endif
