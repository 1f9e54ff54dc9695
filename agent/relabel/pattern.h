/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_PATTERN_H
#define PODPROF_RELABEL_PATTERN_H

/* Regular expressions of Prometheus: RE2's syntax, anchored at both ends, and '.' matches newlines
 * too. Matching takes linear time (libre2). */

#include <stdbool.h>
#include <stddef.h>

#include "base/strview.h"

/* Bytes of a pattern's source: room for a list of several hundred namespaces. Reached: wrong usage
 */
#define PATTERN_TEXT_MAX   ((size_t)16 << 10)
/* Bytes of memory of one pattern, for its program and the states of RE2's DFA. Usual patterns keep
 * 2 to 12 KiB, those with the most states 400 KiB. The program has at most 21,000 instructions
 * before RE2 flattens it: room for PATTERN_TEXT_MAX of literals, for ".{0,1000}" twice or for
 * "\pL{50}". Reached: wrong usage for a program; RE2 empties the cache of states, then falls back
 * to its NFA */
#define PATTERN_MEMORY_MAX (1 << 20)
/* Capturing groups of a pattern. Reached: wrong usage */
#define PATTERN_GROUPS_MAX 64
/* Work of one match: instructions of the program times bytes of the text. RE2 cannot interrupt a
 * match. The ceiling allows 16,000 instructions (PATTERN_TEXT_MAX of literals) with 512 bytes. The
 * NFA takes 2 to 3 ns a unit, and 6 ns after a thrashing DFA: 50 ms at most (bench_relabel).
 * Reached: `podprof_relabel_timeouts_total`: the entity is left out */
#define PATTERN_WORK_MAX   ((size_t)8 << 20)
/* Bytes of a message about a pattern. Reached: cut */
#define PATTERN_ERROR_MAX  256

struct pattern_error {
	char text[PATTERN_ERROR_MAX];
};

enum pattern_outcome {
	PATTERN_OK = 0,
	PATTERN_NO_MATCH,
	PATTERN_LIMIT,	 /* not tried: more work than PATTERN_WORK_MAX */
	PATTERN_REFUSED, /* not compiled; the error says why */
};

struct pattern;

/**
 * struct pattern_match - the texts of a pattern's groups
 * @groups: group 0 is everything; .p is NULL for a group without a match
 *
 * Borrows from the matched text.
 */
struct pattern_match {
	size_t n;
	struct strview groups[PATTERN_GROUPS_MAX + 1];
};

/**
 * pattern_new() - compile a pattern for the whole of a text
 * @text: copied
 *
 * A failed allocation inside of RE2 ends the program (pattern.cc).
 *
 * Return: 0; PATTERN_REFUSED with one line for people.
 * Source: github.com/google/re2/wiki/Syntax; NewRegexp of Prometheus' model/relabel.
 */
int pattern_new(const char *text, struct pattern **ret, struct pattern_error *ret_error);
/* The same for a match anywhere in a text, without groups. */
int pattern_new_anywhere(const char *text, struct pattern **ret, struct pattern_error *ret_error);
void pattern_free(struct pattern *p);
/* The source. */
const char *pattern_text(const struct pattern *p);

/**
 * pattern_match() - does a pattern match a text?
 * @text: @n bytes of UTF-8; no pattern matches another byte
 * @ret:  the groups, after PATTERN_OK. NULL: not wanted
 *
 * Return: 0; PATTERN_NO_MATCH; PATTERN_LIMIT.
 */
int pattern_match(const struct pattern *p, const char *text, size_t n, struct pattern_match *ret)
	__attribute__((warn_unused_result));
/* An upper bound of the work of a match with @n bytes, in the unit of PATTERN_WORK_MAX. */
size_t pattern_work(const struct pattern *p, size_t n);
/* The text of group @i. False for a group without a match, and for a number without a group. */
bool pattern_match_group(const struct pattern_match *m, size_t i, struct strview *ret);

/* The number of groups, without group 0. */
size_t pattern_n_groups(const struct pattern *p);
/* The number of the group (?P<name>...); 0: no such group. */
size_t pattern_find_group(const struct pattern *p, struct strview name);

#endif
