/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_UTF8_H
#define PODPROF_BASE_UTF8_H

/* Text from outside: made well-formed, and harmless to a terminal. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether @n bytes at @s are well-formed UTF-8 (RFC 3629). */
bool utf8_is_valid(const char *s, size_t n);
/* Overwrite each byte that breaks UTF-8 with '?', in place. */
void utf8_repair(char *s, size_t n);

/* The next character of a NUL-terminated text that is UTF-8; moves *@p past it. Not for its end. */
uint32_t utf8_next(const char **p);

/* Bytes of the control character at @s, 0 if it is none: what a terminal would obey. That are C0,
 * DEL, C1, and what ends a line or turns its direction round, so that a name reads as another
 * (Unicode's Bidi_Control). */
size_t utf8_control(const char *s);
/* Overwrite with '?' what breaks UTF-8 and what a terminal would obey, in place. */
void utf8_make_printable(char *s);

#endif
