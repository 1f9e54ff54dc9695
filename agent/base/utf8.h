/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_UTF8_H
#define PODPROF_BASE_UTF8_H

/* Text from outside: made well-formed, and harmless to a terminal. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether @n bytes at @s are well-formed UTF-8 (RFC 3629). */
bool utf8_is_valid(const char *s, size_t n);
/* Overwrite each byte that is not valid UTF-8 with '?', in place. */
void utf8_repair(char *s, size_t n);

/* The next character of a NUL-terminated UTF-8 text; moves *@p past the character. Not for the end
 * of the text. */
uint32_t utf8_next(const char **p);

/* For utf8_control(): the same, for any character. */
size_t utf8_control_long(const char *s);

/* Bytes of the control character at @s, or 0 for other characters. Control characters have an
 * effect on a terminal: C0, DEL, C1, line separators, and the characters that reverse the
 * direction, so that a name reads as another (Unicode's Bidi_Control). Inline: most text is
 * printable ASCII. */
static inline size_t utf8_control(const char *s)
{
	return *s >= ' ' && *s <= '~' ? 0 : utf8_control_long(s);
}

/* Overwrite invalid UTF-8 and control characters with '?', in place. */
void utf8_make_printable(char *s);

#endif
