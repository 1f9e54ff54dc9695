/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_TEMPLATE_H
#define PODPROF_RELABEL_TEMPLATE_H

/* Text with references to the groups of a match: $1, ${1}, $name, ${name}; $$ is a '$'. */

#include <stdbool.h>

#include "base/buf.h"
#include "relabel/pattern.h"

/* Bytes of a template. Reached: wrong usage. */
#define TEMPLATE_TEXT_MAX  ((size_t)4 << 10)
/* References and the pieces of text between them. Reached: wrong usage. */
#define TEMPLATE_PARTS_MAX 64

struct template;

/**
 * template_new() - read a template
 * @pattern: for the names of groups; not kept
 *
 * As in Prometheus, a missing group is empty text, also the group "1_x" of "$1_x". A '$' without a
 * name is a '$'.
 *
 * Return: 0; PATTERN_REFUSED; -ENOMEM.
 * Source: Expand of Go's regexp.
 */
int template_new(const char *text, const struct pattern *pattern, struct template **ret,
		 struct pattern_error *ret_error);
void template_free(struct template *t);
/* Appends the text with the groups of @m. Return: as buf_append(). */
int template_expand(const struct template *t, const struct pattern_match *m, struct buf *to)
	__attribute__((warn_unused_result));

#endif
