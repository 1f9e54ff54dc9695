/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_RE2_CLASS_H
#define PODPROF_RELABEL_RE2_CLASS_H

/* The character classes of RE2 that have names. */

#include <stdbool.h>

#include "base/buf.h"
#include "base/strview.h"

enum re2_class_outcome {
	RE2_CLASS_OK = 0,
	RE2_CLASS_FULL, /* BUF_FULL */
	RE2_CLASS_UNKNOWN,
	RE2_CLASS_FOLDED, /* a \p{..} that means something else under (?i), and another in PCRE2 */
};

/* Each puts what belongs between '[' and ']' in PCRE2's syntax. 0, RE2_CLASS_..., -ENOMEM. */

/* \d, \D, \s, \S, \w, \W by their @letter; they are ASCII in RE2. @fold: under (?i). */
int re2_class_perl(char letter, bool fold, struct buf *to);
/* "alpha" of [:alpha:]. */
int re2_class_posix(struct strview name, bool negated, bool fold, struct buf *to);
/* "Lu" or "Greek" of \p{Lu} and \p{Greek}. */
int re2_class_unicode(struct strview name, bool negated, bool fold, struct buf *to);

#endif
