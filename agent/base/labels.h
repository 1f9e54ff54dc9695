/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_LABELS_H
#define PODPROF_BASE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pyroscope takes 30 label names a series, two or three of them its own; Prometheus 30 by default.
 * The entity's few and what a user adds stay below. One more is refused with LABELS_FULL. Reached:
 * refused with `LABELS_FULL`. */
#define LABELS_MAX	 27
/* The ceiling of sets that no series gets: what is known of a container, from which its labels are
 * chosen. A pod has 128 labels and 128 annotations at most (metadata/pod.h) with two names each,
 * the rest is for everything else and for the names that rules make of them. Reached: left out. */
#define LABELS_META_MAX	 1024
/* Bytes of one value (Pyroscope's ceiling is 2048); a longer one is cut there, at a character.
 * Reached: cut at a character. */
#define LABELS_VALUE_MAX 2048

struct label {
	char *name;
	char *value;
};

/**
 * struct labels - a label set: names are unique, items are sorted by name
 * @max: ceiling for @n; 0 is LABELS_MAX
 *
 * Owns its strings. {0} is the empty set; {.max = LABELS_META_MAX} one that takes more.
 */
struct labels {
	struct label *items;
	size_t n;
	size_t cap;
	size_t max;
};

enum labels_outcome {
	LABELS_OK = 0,
	LABELS_FULL,	 /* as many names as its ceiling already */
	LABELS_BAD_NAME, /* not [a-zA-Z_][a-zA-Z0-9_]* */
};

/* Makes it the empty set; it keeps its ceiling. */
void labels_deinit(struct labels *l);
/* Copies @name and @value; replaces an older value; an empty value removes the label. Bytes that
 * are not UTF-8 become '?'. 0, LABELS_FULL, LABELS_BAD_NAME, -ENOMEM. */
int labels_set(struct labels *l, const char *name, const char *value)
	__attribute__((warn_unused_result));
/* Borrowed; NULL if absent. */
const char *labels_get(const struct labels *l, const char *name);
/* @ret must be empty; its own ceiling holds. 0, LABELS_FULL, -ENOMEM; on the last two it stays
 * empty. */
int labels_copy(const struct labels *l, struct labels *ret) __attribute__((warn_unused_result));
/* With their ceilings. */
void labels_swap(struct labels *a, struct labels *b);
bool labels_equal(const struct labels *a, const struct labels *b);
/* An order of sets, for sorting: below, at or above 0. */
int labels_compare(const struct labels *a, const struct labels *b);
/* A text that no other set has, for hash tables; the caller frees it. NULL without memory. */
char *labels_key(const struct labels *l);
bool labels_valid_name(const char *name);
/* Whether it may stand in a name; a digit not at its beginning. */
bool labels_name_char(char c);

#endif
