/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_TEXT_H
#define PODPROF_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct text - a piece of text that is read from the front
 * @p:   next character
 * @end: one past the last; there need not be a NUL
 *
 * What cursor is for bytes. Each reader moves past what it took and returns true, or returns false
 * and leaves everything as it was. The text borrows the characters.
 */
struct text {
	const char *p;
	const char *end;
};

#define TEXT_MUST_CHECK __attribute__((warn_unused_result))

struct text text_of(const char *s);
struct text text_of_bytes(const char *s, size_t n);

static inline size_t text_len(const struct text *t)
{
	return (size_t)(t->end - t->p);
}

static inline bool text_empty(const struct text *t)
{
	return t->p == t->end;
}

bool text_is(const struct text *t, const char *s);
bool text_starts(const struct text *t, const char *prefix);

/* A number in base 10 or 16 (no sign, no "0x"), at least one digit. False if it exceeds 64 bits. */
bool text_u64(struct text *t, unsigned int base, uint64_t *ret) TEXT_MUST_CHECK;
/* The same, for a number that must be all there is. */
bool text_only_u64(struct text t, unsigned int base, uint64_t *ret) TEXT_MUST_CHECK;
/* All of @s as an address in base 16, with "0x" in front or without. */
bool text_address(const char *s, uint64_t *ret) TEXT_MUST_CHECK;
/* Exactly this character, or this string. */
bool text_char(struct text *t, char c) TEXT_MUST_CHECK;
bool text_prefix(struct text *t, const char *prefix) TEXT_MUST_CHECK;
/* Cut @suffix off the end. */
bool text_suffix(struct text *t, const char *suffix) TEXT_MUST_CHECK;

/* Up to the next @sep, which is taken too; the rest when there is none. False when empty. */
bool text_until(struct text *t, char sep, struct text *ret) TEXT_MUST_CHECK;
/* The next line without its newline (and without a carriage return before it). */
bool text_line(struct text *t, struct text *ret) TEXT_MUST_CHECK;
/* Skip blanks and tabs, then take what comes before the next one. False when nothing is left. */
bool text_word(struct text *t, struct text *ret) TEXT_MUST_CHECK;
void text_skip_blanks(struct text *t);
/* The last component after @sep, or all of it. */
struct text text_after_last(struct text t, char sep);

/* The last @n characters as @ret_tail and what is before them as @ret_head. False if there are
 * fewer. */
bool text_tail(struct text t, size_t n, struct text *ret_head,
	       struct text *ret_tail) TEXT_MUST_CHECK;

/* A NUL-terminated copy, owned by the caller; NULL without memory. */
char *text_dup(struct text t);

/* "250ms", "90s", "5m", "24h", "0"; a bare number other than 0 is refused. In nanoseconds. */
bool text_duration(const char *s, uint64_t *ret_ns) TEXT_MUST_CHECK;
/* "4096", "256KiB", "96MiB", "2GiB", also "256Ki" and "96Mi". In bytes. */
bool text_bytes(const char *s, uint64_t *ret) TEXT_MUST_CHECK;
/* A share from 0 to 1, in decimals: "0.02". */
bool text_share(const char *s, double *ret) TEXT_MUST_CHECK;

/* Whether @n bytes at @s are well-formed UTF-8 (RFC 3629). */
bool text_is_utf8(const char *s, size_t n);
/* Overwrite each byte that breaks UTF-8 with '?', in place. */
void text_repair_utf8(char *s, size_t n);

/* The next character of a NUL-terminated text that is UTF-8; moves *@p past it. Not for its end. */
uint32_t text_utf8_next(const char **p);

/* Bytes of the control character at @s, 0 if it is none: what a terminal would obey. That are C0,
 * DEL, C1, and what ends a line or turns its direction round, so that a name reads as another
 * (Unicode's Bidi_Control). */
size_t text_control(const char *s);
/* Overwrite with '?' what breaks UTF-8 and what a terminal would obey, in place. */
void text_make_printable(char *s);

#endif
