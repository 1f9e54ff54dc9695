// SPDX-License-Identifier: Apache-2.0
#include "base/strview.h"

#include <stdlib.h>
#include <string.h>

struct strview strview_of_bytes(const char *s, size_t n)
{
	return (struct strview){.p = s, .end = n ? s + n : s};
}

struct strview strview_of(const char *s)
{
	return strview_of_bytes(s, strlen(s));
}

bool strview_starts(const struct strview *t, const char *prefix)
{
	size_t n = strlen(prefix);

	/* an empty text may have a NULL address, which memcmp() must not receive */
	return strview_len(t) >= n && (!n || memcmp(t->p, prefix, n) == 0);
}

bool strview_is(const struct strview *t, const char *s)
{
	return strview_len(t) == strlen(s) && strview_starts(t, s);
}

static bool strview_digit(char c, unsigned int base, unsigned int *ret)
{
	unsigned int d;

	if (c >= '0' && c <= '9')
		d = (unsigned int)(c - '0');
	else if (c >= 'a' && c <= 'f')
		d = (unsigned int)(c - 'a') + 10;
	else if (c >= 'A' && c <= 'F')
		d = (unsigned int)(c - 'A') + 10;
	else
		return false;
	if (d >= base)
		return false;
	*ret = d;
	return true;
}

bool strview_u64(struct strview *t, unsigned int base, uint64_t *ret)
{
	const char *p = t->p;
	uint64_t value = 0;
	unsigned int d;

	while (p < t->end && strview_digit(*p, base, &d)) {
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, d, &value))
			return false;
		p++;
	}
	if (p == t->p)
		return false;
	t->p = p;
	*ret = value;
	return true;
}

bool strview_only_u64(struct strview t, unsigned int base, uint64_t *ret)
{
	uint64_t value;

	if (!strview_u64(&t, base, &value) || !strview_empty(&t))
		return false;
	*ret = value;
	return true;
}

bool strview_address(const char *s, uint64_t *ret)
{
	struct strview t = strview_of(s);

	if (strview_starts(&t, "0x"))
		t.p += 2;
	return strview_only_u64(t, 16, ret);
}

bool strview_char(struct strview *t, char c)
{
	if (strview_empty(t) || *t->p != c)
		return false;
	t->p++;
	return true;
}

bool strview_prefix(struct strview *t, const char *prefix)
{
	if (!strview_starts(t, prefix))
		return false;
	t->p += strlen(prefix);
	return true;
}

bool strview_suffix(struct strview *t, const char *suffix)
{
	size_t n = strlen(suffix);

	if (strview_len(t) < n || (n && memcmp(t->end - n, suffix, n) != 0))
		return false;
	t->end -= n;
	return true;
}

bool strview_until(struct strview *t, char sep, struct strview *ret)
{
	const char *at;

	if (strview_empty(t))
		return false;
	at = memchr(t->p, sep, strview_len(t));
	*ret = (struct strview){.p = t->p, .end = at ? at : t->end};
	t->p = at ? at + 1 : t->end;
	return true;
}

bool strview_line(struct strview *t, struct strview *ret)
{
	struct strview line;

	if (!strview_until(t, '\n', &line))
		return false;
	if (!strview_empty(&line) && line.end[-1] == '\r')
		line.end--;
	*ret = line;
	return true;
}

void strview_skip_blanks(struct strview *t)
{
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\t'))
		t->p++;
}

bool strview_word(struct strview *t, struct strview *ret)
{
	struct strview rest = *t;
	const char *start;

	strview_skip_blanks(&rest);
	start = rest.p;
	while (rest.p < rest.end && *rest.p != ' ' && *rest.p != '\t')
		rest.p++;
	if (rest.p == start)
		return false;
	*ret = (struct strview){.p = start, .end = rest.p};
	*t = rest;
	return true;
}

struct strview strview_after_last(struct strview t, char sep)
{
	const char *at = strview_empty(&t) ? NULL : memrchr(t.p, sep, strview_len(&t));

	if (at)
		t.p = at + 1;
	return t;
}

bool strview_tail(struct strview t, size_t n, struct strview *ret_head, struct strview *ret_tail)
{
	if (strview_len(&t) < n)
		return false;
	*ret_head = (struct strview){.p = t.p, .end = t.end - n};
	*ret_tail = (struct strview){.p = t.end - n, .end = t.end};
	return true;
}

char *strview_dup(struct strview t)
{
	char *s = malloc(strview_len(&t) + 1);

	if (!s)
		return NULL;
	if (!strview_empty(&t))
		memcpy(s, t.p, strview_len(&t));
	s[strview_len(&t)] = '\0';
	return s;
}
