// SPDX-License-Identifier: Apache-2.0
/*
 * The longest name wins: "$1x" is the group "1x", not "1". A name in a template has letters and
 * digits of Unicode, a group's name only those of ASCII: "$1é" is empty in Prometheus and here. RE2
 * has the classes of Unicode; their pattern is compiled for a template with such a character.
 */
#include "relabel/template.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"

/* The name in front of a text, and the rest. */
#define NAME_PATTERN "([\\pL\\p{Nd}_]*).*"

struct part {
	struct strview text; /* of the template, for NO_GROUP */
	size_t group;
};

#define NO_GROUP SIZE_MAX

struct template
{
	char *text;
	struct part *parts;
	size_t n;
	size_t cap;
};

struct reader {
	struct template *t;
	struct strview rest;
	const struct pattern *pattern;
	struct pattern_error *error;
};

DEFINE_CLEANUP(struct template *, template_freep, template_free);
DEFINE_CLEANUP(struct pattern *, pattern_freep, pattern_free);

static int add(struct reader *r, struct strview text, size_t group)
{
	struct template *t = r->t;
	int result;

	if (group == NO_GROUP && strview_empty(&text))
		return 0;
	result = vec_grow(&t->parts, &t->cap, t->n + 1, sizeof(*t->parts), TEMPLATE_PARTS_MAX);
	if (result < 0)
		return result;
	if (result) {
		snprintf(r->error->text, sizeof(r->error->text), "more than %d groups and texts",
			 TEMPLATE_PARTS_MAX);
		return PATTERN_REFUSED;
	}
	t->parts[t->n++] = (struct part){text, group};
	return 0;
}

/* The group's number, or NO_GROUP. */
static size_t group_of(const struct reader *r, struct strview name)
{
	size_t i;
	uint64_t n;

	if (strview_only_u64(name, 10, &n) && (*name.p != '0' || strview_len(&name) == 1))
		return n <= pattern_n_groups(r->pattern) ? (size_t)n : NO_GROUP;
	i = pattern_find_group(r->pattern, name);
	return i ? i : NO_GROUP;
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_';
}

/* Text that is not UTF-8 has the empty name. */
static int take_name(struct reader *r, struct strview *rest, struct strview *ret)
{
	_cleanup_(pattern_freep) struct pattern *name = NULL;
	struct pattern_match m;
	int result;

	*ret = (struct strview){rest->p, rest->p};
	while (ret->end < rest->end && is_word(*ret->end))
		ret->end++;
	if (ret->end < rest->end && *ret->end & 0x80) {
		result = pattern_new(NAME_PATTERN, &name, r->error);
		if (result)
			return result;
		*ret = (struct strview){rest->p, rest->p};
		if (!pattern_match(name, rest->p, strview_len(rest), &m))
			(void)pattern_match_group(&m, 1, ret);
	}
	rest->p = ret->end;
	return 0;
}

/* From behind the '$'. */
static int read_reference(struct reader *r)
{
	struct strview rest = r->rest, name;
	bool braces = strview_char(&rest, '{');
	int result = take_name(r, &rest, &name);
	size_t group;

	if (result)
		return result;
	if (strview_empty(&name) || (braces && !strview_char(&rest, '}')))
		return add(r, strview_of("$"), NO_GROUP);
	r->rest = rest;
	group = group_of(r, name);
	return group == NO_GROUP ? 0 : add(r, strview_of(""), group);
}

static int read_all(struct reader *r)
{
	struct strview before;
	int result = 0;

	while (!result && strview_until(&r->rest, '$', &before)) {
		bool dollar = *before.end == '$';

		result = add(r, before, NO_GROUP);
		if (result || !dollar)
			break;
		if (strview_char(&r->rest, '$'))
			result = add(r, strview_of("$"), NO_GROUP);
		else
			result = read_reference(r);
	}
	return result;
}

int template_new(const char *text, const struct pattern *pattern, struct template **ret,
		 struct pattern_error *ret_error)
{
	_cleanup_(template_freep) struct template *t = calloc(1, sizeof(*t));
	struct reader r = {.t = t, .pattern = pattern, .error = ret_error};
	int result;

	if (!t)
		return -ENOMEM;
	if (strnlen(text, TEMPLATE_TEXT_MAX + 1) > TEMPLATE_TEXT_MAX) {
		snprintf(ret_error->text, sizeof(ret_error->text), "more than %zu bytes",
			 TEMPLATE_TEXT_MAX);
		return PATTERN_REFUSED;
	}
	t->text = strdup(text);
	if (!t->text)
		return -ENOMEM;
	r.rest = strview_of(t->text);
	result = read_all(&r);
	if (result)
		return result;
	*ret = take_ptr(t);
	return 0;
}

void template_free(struct template *t)
{
	if (!t)
		return;
	free(t->parts);
	free(t->text);
	free(t);
}

int template_expand(const struct template *t, const struct pattern_match *m, struct buf *to)
{
	int r = 0;

	for (size_t i = 0; i < t->n && !r; i++) {
		struct strview text = t->parts[i].text;

		if (t->parts[i].group != NO_GROUP &&
		    !pattern_match_group(m, t->parts[i].group, &text))
			continue;
		r = buf_append(to, text.p, strview_len(&text));
	}
	return r;
}
