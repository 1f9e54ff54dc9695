/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_PLAIN_H
#define PODPROF_RELABEL_PLAIN_H

/* Patterns that are compared instead of matched: words, and what begins with one. */

#include <stdbool.h>
#include <stddef.h>

#include "base/strview.h"

/* Words of one pattern; more are left to the engine. Reached: left to PCRE2. */
#define PLAIN_WORDS_MAX 32

enum plain_tail {
	PLAIN_NOTHING, /* the word is all */
	PLAIN_ANY,     /* ".*" */
	PLAIN_SOME,    /* ".+" */
};

/**
 * struct plain - "word|word.*|..."
 * @n:     words; 0: the pattern is none of these
 * @group: there is one word, and what is behind it is group 1: "word(.+)"
 *
 * Borrows from the pattern's text.
 */
struct plain {
	struct {
		struct strview word;
		enum plain_tail tail;
	} words[PLAIN_WORDS_MAX];
	size_t n;
	bool group;
};

void plain_read(const char *pattern, struct plain *ret);
/* Of UTF-8. *@ret_tail: what is behind the word that it begins with. */
bool plain_match(const struct plain *p, struct strview text, struct strview *ret_tail);

#endif
