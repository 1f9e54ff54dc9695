// SPDX-License-Identifier: Apache-2.0
/*
 * Most patterns in rules are a label's name, a list of namespaces, "prefix_(.+)", or the "(.*)"
 * that is there if nobody gives one, and a rule about names tries its pattern on each of some
 * hundred. An engine needs a quarter of a microsecond to begin and to end; comparing takes a tenth
 * of that. What is taken here has one meaning in every syntax: letters, digits and signs that stand
 * for themselves, and a tail of any characters. '.' is any character, newlines too (pattern.h), so
 * that a tail of UTF-8 is any bytes, and at least one where it is "+".
 */
#include "relabel/plain.h"

#include <string.h>

#include "base/cleanup.h"

static bool is_itself(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_-/:,=@ ", c));
}

static enum plain_tail take_tail(struct strview *rest, bool *ret_group)
{
	static const struct {
		const char *text;
		enum plain_tail tail;
		bool group;
	} tails[] = {
		{"(.*)", PLAIN_ANY, true},
		{"(.+)", PLAIN_SOME, true},
		{".*", PLAIN_ANY, false},
		{".+", PLAIN_SOME, false},
	};

	for (size_t i = 0; i < array_size(tails); i++)
		if (strview_prefix(rest, tails[i].text)) {
			*ret_group = *ret_group || tails[i].group;
			return tails[i].tail;
		}
	return PLAIN_NOTHING;
}

void plain_read(const char *pattern, struct plain *ret)
{
	struct strview rest = strview_of(pattern);
	struct plain p = {.n = 0};
	bool more = true;

	ret->n = 0;
	while (more && p.n < PLAIN_WORDS_MAX) {
		struct strview word = rest;

		while (!strview_empty(&rest) && is_itself(*rest.p))
			rest.p++;
		word.end = rest.p;
		p.words[p.n].word = word;
		p.words[p.n++].tail = take_tail(&rest, &p.group);
		more = strview_char(&rest, '|');
	}
	if (strview_empty(&rest) && !more && (!p.group || p.n == 1))
		*ret = p;
}

bool plain_match(const struct plain *p, struct strview text, struct strview *ret_tail)
{
	for (size_t i = 0; i < p->n; i++) {
		size_t n = strview_len(&p->words[i].word);
		struct strview tail = {text.p + n, text.end};

		if (strview_len(&text) < n || memcmp(text.p, p->words[i].word.p, n) != 0)
			continue;
		if (strview_empty(&tail) ? p->words[i].tail == PLAIN_SOME
					 : p->words[i].tail == PLAIN_NOTHING)
			continue;
		*ret_tail = tail;
		return true;
	}
	return false;
}
