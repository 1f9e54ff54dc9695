/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_STRVIEW_H
#define PODPROF_BASE_STRVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct strview - a text, read from the front
 * @p:   next character
 * @end: end of the text, exclusive; a NUL is not required
 *
 * The counterpart of cursor for text. Each reader moves past the matched text and returns true, or
 * changes nothing and returns false. The view borrows the characters.
 */
struct strview {
	const char *p;
	const char *end;
};

#define STRVIEW_MUST_CHECK __attribute__((warn_unused_result))

struct strview strview_of(const char *s);
struct strview strview_of_bytes(const char *s, size_t n);

static inline size_t strview_len(const struct strview *t)
{
	return (size_t)(t->end - t->p);
}

static inline bool strview_empty(const struct strview *t)
{
	return t->p == t->end;
}

bool strview_is(const struct strview *t, const char *s);
bool strview_starts(const struct strview *t, const char *prefix);

/* A number in base 10 or 16 (no sign, no "0x"), at least one digit. False above 64 bits. */
bool strview_u64(struct strview *t, unsigned int base, uint64_t *ret) STRVIEW_MUST_CHECK;
/* strview_u64() for a text without anything else. */
bool strview_only_u64(struct strview t, unsigned int base, uint64_t *ret) STRVIEW_MUST_CHECK;
/* All of @s as an address in base 16, with "0x" in front or without. */
bool strview_address(const char *s, uint64_t *ret) STRVIEW_MUST_CHECK;
/* Exactly this character, or this string. */
bool strview_char(struct strview *t, char c) STRVIEW_MUST_CHECK;
bool strview_prefix(struct strview *t, const char *prefix) STRVIEW_MUST_CHECK;
/* Cut @suffix off the end. */
bool strview_suffix(struct strview *t, const char *suffix) STRVIEW_MUST_CHECK;

/* The text up to the next @sep, or the rest without a @sep. The view moves past @sep. False when
 * empty. */
bool strview_until(struct strview *t, char sep, struct strview *ret) STRVIEW_MUST_CHECK;
/* The next line without its newline and the carriage return before the newline. */
bool strview_line(struct strview *t, struct strview *ret) STRVIEW_MUST_CHECK;
/* Skip blanks and tabs, then take the text up to the next blank or tab. False when nothing is left.
 */
bool strview_word(struct strview *t, struct strview *ret) STRVIEW_MUST_CHECK;
void strview_skip_blanks(struct strview *t);
/* The part after the last @sep, or the whole text. */
struct strview strview_after_last(struct strview t, char sep);

/* The last @n characters as @ret_tail and the text before as @ret_head. False for a shorter text.
 */
bool strview_tail(struct strview t, size_t n, struct strview *ret_head,
		  struct strview *ret_tail) STRVIEW_MUST_CHECK;

/* A NUL-terminated copy, owned by the caller; NULL without memory. */
char *strview_dup(struct strview t);

#endif
