// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <string.h>

#include "base/cleanup.h"

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
		low = 0xa0; /* else an overlong encoding */
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

/* Bytes of ASCII at the begin, in whole words: most text has no others. */
static size_t utf8_ascii(const char *s, size_t n)
{
	uint64_t word;
	size_t i;

	for (i = 0; n - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, s + i, sizeof(word));
		if (word & 0x8080808080808080)
			break;
	}
	return i;
}

bool utf8_is_valid(const char *s, size_t n)
{
	size_t step;

	for (size_t i = utf8_ascii(s, n); i < n; i += step) {
		step = utf8_sequence((const unsigned char *)s + i, n - i);
		if (!step)
			return false;
	}
	return true;
}

void utf8_repair(char *s, size_t n)
{
	size_t step;

	for (size_t i = utf8_ascii(s, n); i < n; i += step) {
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

size_t utf8_control_long(const char *s)
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
