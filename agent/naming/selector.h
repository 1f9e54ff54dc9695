/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMING_SELECTOR_H
#define PODPROF_NAMING_SELECTOR_H

/* Which entities are profiled, by patterns on their names. */

#include <stddef.h>

struct pattern_error;
struct selector;

/* Bytes of a reason for people; a longer pattern is cut. Reached: cut. */
#define SELECTOR_WHY_MAX 128

/**
 * selector_new() - a selector of patterns in RE2's syntax
 * @select: of what is profiled; none: everything
 * @ignore: of what is not, whatever @select says
 *
 * A pattern matches where it matches any part of a name: '^' and '$' are its ends.
 *
 * Return: 0; PATTERN_REFUSED; -ENOMEM.
 */
int selector_new(const char *const *select, size_t n_select, const char *const *ignore,
		 size_t n_ignore, struct selector **ret, struct pattern_error *ret_error);
void selector_free(struct selector *selector);

enum selector_outcome {
	SELECTOR_TAKEN = 0,
	SELECTOR_LEFT_OUT, /* @ret_why says why */
	SELECTOR_GAVE_UP,  /* left out, because a pattern took too long with the name; as above */
};

/* Whether what has this name is profiled. An outcome or -ENOMEM. */
int selector_ask(const struct selector *selector, const char *name, char ret_why[SELECTOR_WHY_MAX]);

#endif
