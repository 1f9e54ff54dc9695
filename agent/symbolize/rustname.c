// SPDX-License-Identifier: Apache-2.0
/*
 * Thirty bytes can make a trusting demangler run for ever: a back reference into its own container,
 * or "for<...>" with 2^60 lifetimes. This file parses a name by the grammar without following any
 * reference. A name passes only if
 *
 *	- each back reference leads to the start of an item of the same kind that ended before the
 *	  reference, so there are no circles;
 *	- no binder has more than RUSTNAME_LIFETIMES_MAX lifetimes;
 *	- no nesting is deeper than RUSTNAME_DEPTH_MAX.
 *
 * The compiler makes no other names. The content of a suffix (".llvm.123") does not matter here.
 *
 * Constants are as in RFC 2603: integers, bool, char. Newer constants (strings, structs) are
 * refused.
 *
 * Grammar: Rust RFC 2603, and "v0 Symbol Format" in the rustc book.
 */
#include "symbolize/rustname.h"

#include <stdint.h>
#include <string.h>

/* Lifetimes of a "for<...>". Code written by people has a handful. Reached: shown unchanged. */
#define RUSTNAME_LIFETIMES_MAX 32
/* Nested productions; closures in generic impls reach some 30. Reached: shown unchanged. */
#define RUSTNAME_DEPTH_MAX     128

enum kind { PATH = 1, TYPE = 2, CONST = 4 };

struct reader {
	const char *s; /* behind "_R": where back references count from */
	size_t n;
	size_t pos;
	unsigned int depth;
	struct rustname found;
	uint8_t ended[RUSTNAME_MAX]; /* by position: kinds of the finished items that started there
				      */
};

static bool read_path(struct reader *r);
static bool read_type(struct reader *r);
static bool read_const(struct reader *r);

static char peek(const struct reader *r)
{
	return r->pos < r->n ? r->s[r->pos] : '\0';
}

static bool eat(struct reader *r, char c)
{
	if (peek(r) != c || !c)
		return false;
	r->pos++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* "_" is 0, "0_" is 1, ... */
static bool read_base62(struct reader *r, uint64_t *ret)
{
	uint64_t value = 0;

	if (eat(r, '_')) {
		*ret = 0;
		return true;
	}
	while (!eat(r, '_')) {
		char c = peek(r);
		unsigned int digit;

		if (is_digit(c))
			digit = (unsigned int)(c - '0');
		else if (is_lower(c))
			digit = (unsigned int)(c - 'a') + 10;
		else if (is_upper(c))
			digit = (unsigned int)(c - 'A') + 36;
		else
			return false;
		r->pos++;
		if (__builtin_mul_overflow(value, 62, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	return !__builtin_add_overflow(value, 1, ret);
}

/* [@tag NUMBER] */
static bool skip_number(struct reader *r, char tag)
{
	uint64_t number;

	return !eat(r, tag) || read_base62(r, &number);
}

/* ["u"] LENGTH ["_"] BYTES */
static bool read_plain_identifier(struct reader *r)
{
	size_t length = 0;

	r->found.punycode |= eat(r, 'u');
	if (!is_digit(peek(r)))
		return false;
	if (!eat(r, '0'))
		while (is_digit(peek(r)) && length <= RUSTNAME_MAX)
			length = length * 10 + (size_t)(r->s[r->pos++] - '0');
	eat(r, '_');
	if (length > r->n - r->pos)
		return false;
	r->pos += length;
	return true;
}

static bool read_identifier(struct reader *r)
{
	return skip_number(r, 's') && read_plain_identifier(r);
}

/* The "B" has been taken. */
static bool read_backref(struct reader *r, enum kind kind)
{
	size_t here = r->pos - 1;
	uint64_t to;

	r->found.n_backrefs++;
	return read_base62(r, &to) && to < here && (r->ended[to] & kind);
}

/* ["G" NUMBER] */
static bool read_binder(struct reader *r)
{
	uint64_t n;

	return !eat(r, 'G') || (read_base62(r, &n) && n < RUSTNAME_LIFETIMES_MAX);
}

static bool read_generic_args(struct reader *r)
{
	uint64_t lifetime;

	while (!eat(r, 'E')) {
		bool ok;

		if (eat(r, 'L'))
			ok = read_base62(r, &lifetime);
		else if (eat(r, 'K'))
			ok = read_const(r);
		else
			ok = read_type(r);
		if (!ok)
			return false;
	}
	return true;
}

static bool read_path_inside(struct reader *r)
{
	char tag = peek(r);

	r->pos += tag != '\0';
	switch (tag) {
	case 'C':
		return read_identifier(r);
	case 'M':
		return skip_number(r, 's') && read_path(r) && read_type(r);
	case 'X':
		return skip_number(r, 's') && read_path(r) && read_type(r) && read_path(r);
	case 'Y':
		return read_type(r) && read_path(r);
	case 'N':
		if (!is_lower(peek(r)) && !is_upper(peek(r)))
			return false;
		r->pos++;
		return read_path(r) && read_identifier(r);
	case 'I':
		return read_path(r) && read_generic_args(r);
	case 'B':
		return read_backref(r, PATH);
	default:
		return false;
	}
}

static bool read_function(struct reader *r)
{
	if (!read_binder(r))
		return false;
	eat(r, 'U');
	if (eat(r, 'K') && !eat(r, 'C') && !read_plain_identifier(r))
		return false;
	while (!eat(r, 'E'))
		if (!read_type(r))
			return false;
	return read_type(r);
}

static bool read_dyn(struct reader *r)
{
	uint64_t lifetime;

	if (!read_binder(r))
		return false;
	while (!eat(r, 'E')) {
		if (!read_path(r))
			return false;
		while (eat(r, 'p'))
			if (!read_plain_identifier(r) || !read_type(r))
				return false;
	}
	return eat(r, 'L') && read_base62(r, &lifetime);
}

static bool read_tuple(struct reader *r)
{
	while (!eat(r, 'E'))
		if (!read_type(r))
			return false;
	return true;
}

static bool read_type_inside(struct reader *r)
{
	char tag = peek(r);

	if (tag && strchr("CMXYNI", tag))
		return read_path(r);
	r->pos += tag != '\0';
	switch (tag) {
	case 'A':
		return read_type(r) && read_const(r);
	case 'S':
	case 'P':
	case 'O':
		return read_type(r);
	case 'R':
	case 'Q':
		return skip_number(r, 'L') && read_type(r);
	case 'T':
		return read_tuple(r);
	case 'F':
		return read_function(r);
	case 'D':
		return read_dyn(r);
	case 'B':
		return read_backref(r, TYPE);
	default:
		return is_lower(tag);
	}
}

static bool read_const_inside(struct reader *r)
{
	char tag = peek(r);

	r->pos += tag != '\0';
	if (tag == 'B')
		return read_backref(r, CONST);
	if (tag == 'p')
		return true;
	if (!is_lower(tag))
		return false;
	eat(r, 'n');
	while (is_digit(peek(r)) || (peek(r) >= 'a' && peek(r) <= 'f'))
		r->pos++;
	return eat(r, '_');
}

/* Reads an item of @kind, and records the start after the end. */
static bool read_kind(struct reader *r, enum kind kind, bool (*inside)(struct reader *r))
{
	size_t start = r->pos;
	bool ok;

	if (start >= r->n || r->depth == RUSTNAME_DEPTH_MAX)
		return false;
	r->depth++;
	ok = inside(r);
	r->depth--;
	if (ok)
		r->ended[start] |= (uint8_t)kind;
	return ok;
}

static bool read_path(struct reader *r)
{
	return read_kind(r, PATH, read_path_inside);
}

static bool read_type(struct reader *r)
{
	return read_kind(r, TYPE, read_type_inside);
}

static bool read_const(struct reader *r)
{
	return read_kind(r, CONST, read_const_inside);
}

bool rustname_check(const char *name, struct rustname *ret)
{
	struct reader r = {.s = name + 2};

	if (strncmp(name, "_R", 2) != 0)
		return false;
	r.n = strcspn(r.s, ".");
	if (r.n >= RUSTNAME_MAX || is_digit(peek(&r)) || !read_path(&r))
		return false;
	if (r.pos < r.n && !read_path(&r)) /* the instantiating crate */
		return false;
	if (r.pos != r.n)
		return false;
	*ret = r.found;
	return true;
}
