// SPDX-License-Identifier: Apache-2.0
#include "base/labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strview.h"
#include "base/utf8.h"
#include "base/vec.h"

void labels_deinit(struct labels *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->items[i].name);
		free(l->items[i].value);
	}
	free(l->items);
	*l = (struct labels){.max = l->max};
}

bool labels_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (c >= '0' && c <= '9');
}

bool labels_valid_name(const char *name)
{
	if (!*name || (*name >= '0' && *name <= '9'))
		return false;
	while (labels_name_char(*name))
		name++;
	return !*name;
}

/* The position of @name (true), or its insertion point (false). */
static bool labels_find(const struct labels *l, const char *name, size_t *ret)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(l->items[middle].name, name);

		if (order == 0) {
			*ret = middle;
			return true;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return false;
}

/* A copy of the value, cut at the ceiling but not inside a character. A character has at most three
 * continuation bytes; after more, the text is no UTF-8 and is cut anywhere. */
static char *value_dup(const char *value)
{
	size_t n = strnlen(value, LABELS_VALUE_MAX + 1);
	char *copy;

	if (n > LABELS_VALUE_MAX)
		for (n = LABELS_VALUE_MAX; n > LABELS_VALUE_MAX - 3 && (value[n] & 0xc0) == 0x80;
		     n--)
			;
	copy = strview_dup(strview_of_bytes(value, n));
	if (copy)
		utf8_repair(copy, n);
	return copy;
}

int labels_set(struct labels *l, const char *name, const char *value)
{
	_cleanup_(freep) char *name_copy = NULL;
	_cleanup_(freep) char *value_copy = NULL;
	size_t at;
	int r;

	if (!labels_valid_name(name))
		return LABELS_BAD_NAME;
	if (!*value) {
		if (labels_find(l, name, &at)) {
			free(l->items[at].name);
			free(l->items[at].value);
			l->n--;
			memmove(&l->items[at], &l->items[at + 1], (l->n - at) * sizeof(*l->items));
		}
		return 0;
	}
	value_copy = value_dup(value);
	if (!value_copy)
		return -ENOMEM;
	if (labels_find(l, name, &at)) {
		free(l->items[at].value);
		l->items[at].value = take_ptr(value_copy);
		return 0;
	}
	r = vec_grow(&l->items, &l->cap, l->n + 1, sizeof(*l->items), l->max ? l->max : LABELS_MAX);
	if (r)
		return r < 0 ? r : LABELS_FULL;
	name_copy = strdup(name);
	if (!name_copy)
		return -ENOMEM;
	memmove(&l->items[at + 1], &l->items[at], (l->n - at) * sizeof(*l->items));
	l->items[at] = (struct label){take_ptr(name_copy), take_ptr(value_copy)};
	l->n++;
	return 0;
}

const char *labels_get(const struct labels *l, const char *name)
{
	size_t at;

	return labels_find(l, name, &at) ? l->items[at].value : NULL;
}

int labels_copy(const struct labels *l, struct labels *ret)
{
	_cleanup_(labels_deinit) struct labels copy = {.max = ret->max};

	for (size_t i = 0; i < l->n; i++) {
		int r = labels_set(&copy, l->items[i].name, l->items[i].value);

		if (r)
			return r;
	}
	*ret = copy;
	copy = (struct labels){0};
	return 0;
}

void labels_swap(struct labels *a, struct labels *b)
{
	struct labels was = *a;

	*a = *b;
	*b = was;
}

int labels_compare(const struct labels *a, const struct labels *b)
{
	size_t n = a->n < b->n ? a->n : b->n;
	int order = 0;

	for (size_t i = 0; i < n && !order; i++) {
		order = strcmp(a->items[i].name, b->items[i].name);
		if (!order)
			order = strcmp(a->items[i].value, b->items[i].value);
	}
	return order ? order : (a->n > b->n) - (a->n < b->n);
}

bool labels_equal(const struct labels *a, const struct labels *b)
{
	return a->n == b->n && labels_compare(a, b) == 0;
}

char *labels_key(const struct labels *l)
{
	size_t n = 1;
	char *key, *at;

	for (size_t i = 0; i < l->n; i++)
		n += strlen(l->items[i].name) + strlen(l->items[i].value) + 24;
	key = at = malloc(n);
	if (!key)
		return NULL;
	*at = '\0';
	/* a value may contain any byte, so its length comes first */
	for (size_t i = 0; i < l->n; i++)
		at += snprintf(at, n - (size_t)(at - key), "%s=%zu:%s", l->items[i].name,
			       strlen(l->items[i].value), l->items[i].value);
	return key;
}
