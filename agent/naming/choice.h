/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMING_CHOICE_H
#define PODPROF_NAMING_CHOICE_H

/* Which entities are profiled, by patterns on their names. */

#include <stddef.h>

struct choice;
struct pattern_error;

/* Bytes of a reason for people; a longer pattern is cut. Reached: cut. */
#define CHOICE_WHY_MAX 128

/**
 * choice_new() - a choice of patterns in RE2's syntax
 * @select: of what is profiled; none: everything
 * @ignore: of what is not, whatever @select says
 *
 * A pattern matches where it matches any part of a name: '^' and '$' are its ends.
 *
 * Return: 0; PATTERN_REFUSED; -ENOMEM.
 */
int choice_new(const char *const *select, size_t n_select, const char *const *ignore,
	       size_t n_ignore, struct choice **ret, struct pattern_error *ret_error);
void choice_free(struct choice *choice);

enum choice_outcome {
	CHOICE_TAKEN = 0,
	CHOICE_LEFT_OUT, /* @ret_why says why */
	CHOICE_GAVE_UP,	 /* left out, because a pattern took too long with the name; as above */
};

/* Whether what has this name is profiled. An outcome or -ENOMEM. */
int choice_ask(const struct choice *choice, const char *name, char ret_why[CHOICE_WHY_MAX]);

#endif
