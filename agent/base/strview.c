// SPDX-License-Identifier: Apache-2.0
#include "base/strview.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nsec.h"

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

	/* an empty text may have no address, which memcmp() must not see */
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

struct unit {
	const char *name;
	uint64_t factor;
};

/* A decimal number followed by one of @units. */
static bool with_unit(const char *s, const struct unit *units, size_t n_units, uint64_t *ret)
{
	struct strview t = strview_of(s);
	uint64_t value;

	if (!strview_u64(&t, 10, &value))
		return false;
	for (size_t i = 0; i < n_units; i++) {
		if (!strview_is(&t, units[i].name))
			continue;
		return !__builtin_mul_overflow(value, units[i].factor, ret);
	}
	return false;
}

bool quantity_duration(const char *s, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{"ms", NSEC_PER_MSEC},
		{"s", NSEC_PER_SEC},
		{"m", 60 * NSEC_PER_SEC},
		{"h", 3600 * NSEC_PER_SEC},
	};
	uint64_t ns;

	if (strcmp(s, "0") == 0) {
		*ret_ns = 0;
		return true;
	}
	if (!with_unit(s, units, array_size(units), &ns))
		return false;
	*ret_ns = ns;
	return true;
}

bool quantity_bytes(const char *s, uint64_t *ret)
{
	static const struct unit units[] = {
		{"", 1},
		{"Ki", 1ull << 10},
		{"KiB", 1ull << 10},
		{"Mi", 1ull << 20},
		{"MiB", 1ull << 20},
		{"Gi", 1ull << 30},
		{"GiB", 1ull << 30},
	};
	uint64_t bytes;

	if (!with_unit(s, units, array_size(units), &bytes))
		return false;
	*ret = bytes;
	return true;
}

/* Length of the well-formed UTF-8 sequence at @s, 0 if there is none (RFC 3629 section 4). */
static size_t utf8_sequence(const unsigned char *s, size_t n)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t len;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (n < len)
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0; /* else it would be overlong */
	else if (s[0] == 0xed)
		high = 0x9f; /* else a surrogate */
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f; /* else above U+10FFFF */
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

bool utf8_is_valid(const char *s, size_t n)
{
	size_t step;

	for (size_t i = 0; i < n; i += step) {
		step = utf8_sequence((const unsigned char *)s + i, n - i);
		if (!step)
			return false;
	}
	return true;
}

void utf8_repair(char *s, size_t n)
{
	size_t step;

	for (size_t i = 0; i < n; i += step) {
		step = utf8_sequence((const unsigned char *)s + i, n - i);
		if (!step) {
			s[i] = '?';
			step = 1;
		}
	}
}

uint32_t utf8_next(const char **p)
{
	uint32_t c = (uint8_t) * (*p)++;
	unsigned int more = c < 0xc0 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;

	if (more)
		c &= 0x3fu >> more;
	for (; more && (**p & 0xc0) == 0x80; more--)
		c = c << 6 | ((uint8_t) * (*p)++ & 0x3f);
	return c;
}

size_t utf8_control(const char *s)
{
	static const struct {
		uint32_t first, last;
	} controls[] = {
		{0x01, 0x1f},	  {0x7f, 0x9f},	    {0x61c, 0x61c},
		{0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
	};
	const size_t n = utf8_sequence((const unsigned char *)s, strnlen(s, 4));
	const uint32_t c = n ? utf8_next(&s) : 0;

	for (size_t i = 0; i < array_size(controls); i++)
		if (c >= controls[i].first && c <= controls[i].last)
			return n;
	return 0;
}

void utf8_make_printable(char *s)
{
	size_t n;

	utf8_repair(s, strlen(s));
	for (; *s; s += n ? n : 1) {
		n = utf8_control(s);
		memset(s, '?', n);
	}
}

bool quantity_share(const char *s, double *ret)
{
	char *end;
	double share;

	if (*s < '0' || *s > '9' || strpbrk(s, "xX")) /* no sign, no blanks, no hex */
		return false;
	share = strtod(s, &end);
	if (*end || !(share >= 0 && share <= 1))
		return false;
	*ret = share;
	return true;
}
