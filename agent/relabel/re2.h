/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_RE2_H
#define PODPROF_RELABEL_RE2_H

/* RE2's syntax, as Go's regexp package has it, put into PCRE2's. */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/strview.h"
#include "relabel/pattern.h"

/* Groups inside groups; RE2 allows 1,000, PCRE2 250. Reached: wrong usage. */
#define RE2_DEPTH_MAX  100
/* The largest {n}, also of repetitions inside repetitions: RE2's own ceiling. Reached: wrong usage.
 */
#define RE2_REPEAT_MAX 1000

/**
 * struct re2_group - a group that keeps what it matched
 * @name:  borrowed from the pattern; empty: none
 * @vague: it is repeated and may match nothing, as in (a*)*. Of its last round RE2 forgets what was
 *         empty, PCRE2 keeps that; whether there is a match is the same.
 */
struct re2_group {
	struct strview name;
	bool vague;
};

/**
 * struct re2 - a translated pattern
 * @pcre2:  for pcre2_compile() with PCRE2_UTF | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY; matches all of
 *          a text or nothing
 * @groups: groups[0] is not used
 */
struct re2 {
	struct buf pcre2;
	struct re2_group groups[PATTERN_GROUPS_MAX + 1];
	size_t n_groups;
};

/**
 * re2_translate() - read a pattern and write it anew
 * @text: the pattern; outlives @ret
 * @ret:  re2_deinit() it whatever is returned
 *
 * Return: 0; PATTERN_REFUSED with a sentence that says what and where; -ENOMEM.
 * Source: github.com/google/re2/wiki/Syntax, and regexp/syntax of Go for what is left open there.
 */
int re2_translate(const char *text, struct re2 *ret, struct pattern_error *ret_error);
void re2_deinit(struct re2 *re);

#endif
