// SPDX-License-Identifier: Apache-2.0
/*
 * The patterns of relabel/ match the whole text, as in Prometheus. Users give a part of a name, as
 * for grep, so ".*" is added on both sides. Each pattern is also compiled alone first: "a)(b" is
 * invalid alone but valid inside the brackets.
 */
#include "naming/selector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "relabel/pattern.h"

/* A compiled pattern and the text. */
struct selector_pattern {
	struct pattern *pattern;
	char *text;
};

struct selector_list {
	struct selector_pattern *items;
	size_t n;
};

struct selector {
	struct selector_list select;
	struct selector_list ignore;
};

DEFINE_CLEANUP(struct pattern *, pattern_freep, pattern_free);
DEFINE_CLEANUP(struct selector *, selector_freep, selector_free);

static void list_deinit(struct selector_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		pattern_free(list->items[i].pattern);
		free(list->items[i].text);
	}
	free(list->items);
}

void selector_free(struct selector *selector)
{
	if (!selector)
		return;
	list_deinit(&selector->select);
	list_deinit(&selector->ignore);
	free(selector);
}

static int pattern_anywhere(const char *text, struct pattern **ret, struct pattern_error *ret_error)
{
	_cleanup_(pattern_freep) struct pattern *alone = NULL;
	_cleanup_(freep) char *wrapped = NULL;
	int r = pattern_new(text, &alone, ret_error);

	if (!r && asprintf(&wrapped, ".*(?:%s).*", text) < 0)
		r = -ENOMEM;
	return r ? r : pattern_new(wrapped, ret, ret_error);
}

static int list_fill(struct selector_list *list, const char *const *texts, size_t n,
		     struct pattern_error *ret_error)
{
	int r = 0;

	list->items = calloc(n + 1, sizeof(*list->items)); /* + 1: never of size 0 */
	if (!list->items)
		return -ENOMEM;
	for (; !r && list->n < n; list->n++) {
		struct selector_pattern *one = &list->items[list->n];

		one->text = strdup(texts[list->n]);
		r = one->text ? pattern_anywhere(one->text, &one->pattern, ret_error) : -ENOMEM;
	}
	return r;
}

int selector_new(const char *const *select, size_t n_select, const char *const *ignore,
		 size_t n_ignore, struct selector **ret, struct pattern_error *ret_error)
{
	_cleanup_(selector_freep) struct selector *selector = calloc(1, sizeof(*selector));
	int r = selector ? list_fill(&selector->select, select, n_select, ret_error) : -ENOMEM;

	if (!r)
		r = list_fill(&selector->ignore, ignore, n_ignore, ret_error);
	if (!r)
		*ret = take_ptr(selector);
	return r;
}

/* Returns the first pattern that matches or exceeds its budget. Later patterns are not tried, so a
 * name exceeds at most one budget. PATTERN_OK or PATTERN_LIMIT with the pattern's text in @ret,
 * PATTERN_NO_MATCH, -ENOMEM. */
static int list_match(const struct selector_list *list, const char *name, const char **ret)
{
	for (size_t i = 0; i < list->n; i++) {
		int r = pattern_match(list->items[i].pattern, name, strlen(name), NULL);

		if (r == -ENOMEM)
			return r;
		if (r == PATTERN_OK || r == PATTERN_LIMIT) {
			*ret = list->items[i].text;
			return r;
		}
	}
	return PATTERN_NO_MATCH;
}

static int gave_up(const char *flag, const char *text, char ret_why[SELECTOR_WHY_MAX])
{
	snprintf(ret_why, SELECTOR_WHY_MAX, "%s %.90s took too long", flag, text);
	return SELECTOR_GAVE_UP;
}

int selector_ask(const struct selector *selector, const char *name, char ret_why[SELECTOR_WHY_MAX])
{
	const char *text;
	int r = list_match(&selector->ignore, name, &text);

	if (r < 0)
		return r;
	if (r == PATTERN_LIMIT)
		return gave_up("--ignore", text, ret_why);
	if (r == PATTERN_OK) {
		snprintf(ret_why, SELECTOR_WHY_MAX, "--ignore %s", text);
		return SELECTOR_LEFT_OUT;
	}
	r = selector->select.n ? list_match(&selector->select, name, &text) : PATTERN_OK;
	if (r == PATTERN_LIMIT)
		return gave_up("--select", text, ret_why);
	if (r == PATTERN_NO_MATCH) {
		snprintf(ret_why, SELECTOR_WHY_MAX, "no --select matches");
		return SELECTOR_LEFT_OUT;
	}
	return r; /* SELECTOR_TAKEN or -ENOMEM */
}
