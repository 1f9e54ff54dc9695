/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_NAMING_SELECTOR_H
#define PODPROF_NAMING_SELECTOR_H

/* Selects the entities to profile by patterns on their names. */

#include <stddef.h>

struct pattern_error;
struct selector;

/* Bytes of a reason for users; a longer pattern is cut. Reached: cut. */
#define SELECTOR_WHY_MAX 128

/**
 * selector_new() - compile a selector of RE2 patterns
 * @select: names to profile; none: all
 * @ignore: names not to profile; takes precedence over @select
 *
 * A pattern matches any part of a name: '^' and '$' anchor it.
 *
 * Return: 0; PATTERN_REFUSED with *@ret_error; -ENOMEM.
 */
int selector_new(const char *const *select, size_t n_select, const char *const *ignore,
		 size_t n_ignore, struct selector **ret, struct pattern_error *ret_error);
void selector_free(struct selector *selector);

enum selector_outcome {
	SELECTOR_TAKEN = 0,
	SELECTOR_LEFT_OUT, /* @ret_why has the reason */
	SELECTOR_GAVE_UP,  /* left out because a pattern took too long; @ret_why as above */
};

/* Decides about an entity by its name. */
enum selector_outcome selector_ask(const struct selector *selector, const char *name,
				   char ret_why[SELECTOR_WHY_MAX]);

#endif
