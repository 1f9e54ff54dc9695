/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_LABELS_H
#define PODPROF_BASE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pyroscope takes 30 label names a series, two or three of them its own; Prometheus 30 by default.
 * The owner's few and what a user adds stay below. One more is refused with LABELS_FULL. */
#define LABELS_MAX	 27
/* Bytes of one value (Pyroscope's ceiling is 2048); a longer one is cut there, at a character. */
#define LABELS_VALUE_MAX 2048

struct label {
	char *name;
	char *value;
};

/**
 * struct labels - a label set: names are unique, items are sorted by name
 *
 * Owns its strings. {0} is the empty set.
 */
struct labels {
	struct label *items;
	size_t n;
	size_t cap;
};

enum labels_outcome {
	LABELS_OK = 0,
	LABELS_FULL,	 /* LABELS_MAX names already */
	LABELS_BAD_NAME, /* not [a-zA-Z_][a-zA-Z0-9_]* */
};

void labels_deinit(struct labels *l);
/* Copies @name and @value; replaces an older value; an empty value removes the label. Bytes that
 * are not UTF-8 become '?'. 0, LABELS_FULL, LABELS_BAD_NAME, -ENOMEM. */
int labels_set(struct labels *l, const char *name, const char *value)
	__attribute__((warn_unused_result));
/* Borrowed; NULL if absent. */
const char *labels_get(const struct labels *l, const char *name);
/* @ret must be empty. 0 or -ENOMEM. */
int labels_copy(const struct labels *l, struct labels *ret) __attribute__((warn_unused_result));
void labels_swap(struct labels *a, struct labels *b);
bool labels_equal(const struct labels *a, const struct labels *b);
bool labels_valid_name(const char *name);

#endif
