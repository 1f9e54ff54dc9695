/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_LABELS_H
#define PODPROF_BASE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Labels of a series. Pyroscope accepts 30 label names a series, two or three of them its own;
 * Prometheus 30 by default. The entity's few labels and the user's stay below. Reached: refused
 * with `LABELS_FULL`. */
#define LABELS_MAX	 27
/* Labels of a set for no series: the known facts about a container, from which its labels are
 * chosen. A pod has at most 128 labels and 128 annotations (metadata/pod.h) with two names each.
 * The rest is for all other facts and for names made by rules. Reached: left out. */
#define LABELS_META_MAX	 1024
/* Bytes of one value, Pyroscope's ceiling. Reached: cut at a character. */
#define LABELS_VALUE_MAX 2048

struct label {
	char *name;
	char *value;
};

/**
 * struct labels - a label set: names are unique, items are sorted by name
 * @max: ceiling for @n; 0 is LABELS_MAX
 *
 * Owns its strings. {0} is the empty set; {.max = LABELS_META_MAX} is an empty set with the larger
 * ceiling.
 */
struct labels {
	struct label *items;
	size_t n;
	size_t cap;
	size_t max;
};

enum labels_outcome {
	LABELS_OK = 0,
	LABELS_FULL,	 /* the set has as many names as its ceiling */
	LABELS_BAD_NAME, /* not [a-zA-Z_][a-zA-Z0-9_]* */
};

/* Empties the set; the ceiling stays. */
void labels_deinit(struct labels *l);
/* Copies @name and @value; replaces an older value; an empty value removes the label. Bytes that
 * are not UTF-8 become '?'. 0, LABELS_FULL, LABELS_BAD_NAME, -ENOMEM. */
int labels_set(struct labels *l, const char *name, const char *value)
	__attribute__((warn_unused_result));
/* Borrowed; NULL if absent. */
const char *labels_get(const struct labels *l, const char *name);
/* @ret must be empty and keeps its own ceiling. 0, LABELS_FULL, -ENOMEM; after an
 * error @ret is empty. */
int labels_copy(const struct labels *l, struct labels *ret) __attribute__((warn_unused_result));
/* With their ceilings. */
void labels_swap(struct labels *a, struct labels *b);
bool labels_equal(const struct labels *a, const struct labels *b);
/* An order of sets, for sorting: below, at or above 0. */
int labels_compare(const struct labels *a, const struct labels *b);
/* A text unique to this set, for hash tables; the caller frees the text. NULL without memory. */
char *labels_key(const struct labels *l);
bool labels_valid_name(const char *name);
/* Whether @c may be in a name; a digit may not be the first character. */
bool labels_name_char(char c);

#endif
