/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_SAMELINES_H
#define PODPROF_TEST_SUPPORT_SAMELINES_H

/* Compares two profiles of one thing by their visible contents: the stack of each sample as text
 * (function, file, line, inlined or not), its labels and values. Without rounding or omissions. */

#include <stddef.h>
#include <stdint.h>

struct buf;

#define SAMELINES_VALUES_MAX 4

/* All samples with the same stack and labels, because Go 1.26 and later write several. */
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

/* Sums of a comparison. */
struct samelines_tally {
	size_t n_lines;
	size_t n_exact;
	size_t n_one_off;
	size_t n_frames;
};

/**
 * samelines_compare() - fails the test unless both are equal
 *
 * Every line of @own must be in @ours, with values that differ by at most one for each sample,
 * because of the last bit of exp() (goheap/goheap.c). Lines of @ours alone must be zero: writing
 * the profile makes records in the process, and Go publishes these records later.
 */
void samelines_compare(const struct samelines *own, const struct samelines *ours,
		       struct samelines_tally *tally);

#endif
