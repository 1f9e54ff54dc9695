/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_PATTERN_H
#define PODPROF_RELABEL_PATTERN_H

/* A pattern in RE2's syntax, as Prometheus takes it: it has to match all of a text, and '.' matches
 * newlines too. */

#include <stdbool.h>
#include <stddef.h>

#include "base/strview.h"

/* Bytes of a pattern as it is written: room for a list of several hundred namespaces. Reached:
 * wrong usage. */
#define PATTERN_TEXT_MAX   ((size_t)16 << 10)
/* Groups of a pattern that keep what they matched. Reached: wrong usage. */
#define PATTERN_GROUPS_MAX 64
/* Bytes of a message about a pattern. Reached: cut. */
#define PATTERN_ERROR_MAX  256

struct pattern_error {
	char text[PATTERN_ERROR_MAX];
};

enum pattern_outcome {
	PATTERN_OK = 0,
	PATTERN_NO_MATCH,
	PATTERN_LIMIT,	 /* whether it matches was not found out with the work allowed for it */
	PATTERN_REFUSED, /* not compiled; the error says why */
};

struct pattern;

/**
 * struct pattern_match - what the groups of a pattern matched; {0} before the first use
 *
 * Borrows from the text. A pattern never changes, so each user has one of these.
 */
struct pattern_match {
	struct pcre2_real_match_data_8 *data;
	const char *text;
	struct strview plain[2]; /* instead of @data, where the pattern is plain (plain.h) */
	size_t n_plain;
};

/* 0, PATTERN_REFUSED, -ENOMEM. @text is copied. */
int pattern_new(const char *text, struct pattern **ret, struct pattern_error *ret_error);
void pattern_free(struct pattern *p);
/* As it was written. */
const char *pattern_text(const struct pattern *p);

/**
 * pattern_match() - does all of a text match?
 * @text: @n bytes of UTF-8
 * @ret:  the groups, after PATTERN_OK; may be used again. NULL: not wanted
 *
 * Return: 0; PATTERN_NO_MATCH; PATTERN_LIMIT; -EILSEQ where it is noticed that @text is not UTF-8;
 * -ENOMEM.
 */
int pattern_match(const struct pattern *p, const char *text, size_t n, struct pattern_match *ret)
	__attribute__((warn_unused_result));
void pattern_match_deinit(struct pattern_match *m);
/* What group @i matched, 0 being everything. False if there is no such group or it matched
 * nothing. */
bool pattern_match_group(const struct pattern_match *m, size_t i, struct strview *ret);

/* The number of groups, without group 0. */
size_t pattern_n_groups(const struct pattern *p);
/* The number of the group (?P<name>...); 0: there is none. */
size_t pattern_find_group(const struct pattern *p, struct strview name);
/* Whether what group @i keeps is another text for RE2 and for PCRE2 (see re2.h). */
bool pattern_group_is_vague(const struct pattern *p, size_t i);

#endif
