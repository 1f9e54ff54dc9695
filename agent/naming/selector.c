// SPDX-License-Identifier: Apache-2.0
/*
 * The patterns of rules match the whole text, as in Prometheus. Here users give a part of a name,
 * as for grep.
 */
#include "naming/selector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "relabel/pattern.h"

struct selector_list {
	struct pattern **items;
	size_t n;
};

struct selector {
	struct selector_list select;
	struct selector_list ignore;
};

DEFINE_CLEANUP(struct selector *, selector_freep, selector_free);

static void list_deinit(struct selector_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		pattern_free(list->items[i]);
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

static int list_fill(struct selector_list *list, const char *const *texts, size_t n,
		     struct pattern_error *ret_error)
{
	int r = 0;

	list->items = calloc(n + 1, sizeof(*list->items)); /* + 1: never of size 0 */
	if (!list->items)
		return -ENOMEM;
	for (; !r && list->n < n; list->n++)
		r = pattern_new_anywhere(texts[list->n], &list->items[list->n], ret_error);
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

/* The outcome of the first pattern without PATTERN_NO_MATCH: PATTERN_OK or PATTERN_LIMIT, with the
 * pattern's text in @ret. PATTERN_NO_MATCH: no such pattern. */
static int list_match(const struct selector_list *list, const char *name, const char **ret)
{
	for (size_t i = 0; i < list->n; i++) {
		int r = pattern_match(list->items[i], name, strlen(name), NULL);

		if (r != PATTERN_NO_MATCH) {
			*ret = pattern_text(list->items[i]);
			return r;
		}
	}
	return PATTERN_NO_MATCH;
}

static enum selector_outcome gave_up(const char *flag, const char *text,
				     char ret_why[SELECTOR_WHY_MAX])
{
	snprintf(ret_why, SELECTOR_WHY_MAX, "%s %.90s took too long", flag, text);
	return SELECTOR_GAVE_UP;
}

enum selector_outcome selector_ask(const struct selector *selector, const char *name,
				   char ret_why[SELECTOR_WHY_MAX])
{
	const char *text;
	int r = list_match(&selector->ignore, name, &text);

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
	return SELECTOR_TAKEN;
}
