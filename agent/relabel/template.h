/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RELABEL_TEMPLATE_H
#define PODPROF_RELABEL_TEMPLATE_H

/* Text with the groups of a match in it: $1, ${1}, $name, ${name}; $$ is a '$'. */

#include <stdbool.h>

#include "base/buf.h"
#include "relabel/pattern.h"

/* Bytes of a template. Reached: wrong usage. */
#define TEMPLATE_TEXT_MAX  ((size_t)4 << 10)
/* Groups and the pieces of text between them. Reached: wrong usage. */
#define TEMPLATE_PARTS_MAX 64

struct template;

/**
 * template_new() - read a template
 * @pattern: whose groups it names; it is not kept
 *
 * A group that the pattern has not is empty text, as in Prometheus, and so is "$1_x", which names a
 * group "1_x"; a '$' without a name is a '$'.
 *
 * Return: 0; PATTERN_REFUSED, also where it names a group of pattern_group_is_vague(); -ENOMEM.
 * Source: Expand of Go's regexp.
 */
int template_new(const char *text, const struct pattern *pattern, struct template **ret,
		 struct pattern_error *ret_error);
void template_free(struct template *t);
/* Appends it with the groups of @m. As buf_append(). */
int template_expand(const struct template *t, const struct pattern_match *m, struct buf *to)
	__attribute__((warn_unused_result));

#endif
