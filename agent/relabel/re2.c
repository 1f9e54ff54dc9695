// SPDX-License-Identifier: Apache-2.0
/*
 * People bring the patterns that they have in Prometheus, whose syntax is RE2's. PCRE2's looks the
 * same and is another: it has more (backreferences, lookaround, atomic groups, possessive
 * quantifiers, recursion, verbs, comments), some things mean something else (\s, '$', {,3}, \Z,
 * [[:<:]], \p{Greek}, '^' after a last newline), and each release adds to it. A pattern that was
 * passed on could mean one thing in Prometheus and another here; with lookaround or recursion it
 * could also take more time than its length shows. So it is read by RE2's rules to its end, and
 * written anew with few and explicit means of PCRE2: what is not RE2 is refused, not handed on.
 *
 *   literals      what is not an ASCII letter or digit as \x{..}
 *   \d \w \s      classes of ASCII characters (re2_class.c)
 *   .             with 's' that is set from the beginning, as in Prometheus; else [^\n]
 *   ^ $           the text's ends; under (?m) lines' ends, as lookaround
 *   (?i) (?-i)    as in PCRE2, which ends them with the group, too
 *   (?U)          changes which of "*" and "*?" is written
 *   (?P<name>..)  a group with a number: names are kept by us, since RE2's may begin with a digit
 *
 * Other than in Prometheus: a ")" without "(" is refused. There the pattern is put into
 * "^(?s:" ")$" before it is read, which "a)|(b" survives and then means something unexpected.
 *
 * One thing cannot be translated: what a repeated group that may match nothing has matched last.
 * Such groups are marked, and who wants their text is told so (template.c).
 */
#include "relabel/re2.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "relabel/re2_class.h"

/* Bytes of the translated pattern: a byte becomes ten at most, a class of two bytes 120. Reached:
 * wrong usage. */
#define RE2_PCRE2_MAX ((size_t)1 << 20)

#define NO_CEILING UINT32_MAX

enum flag {
	FOLD = 1,    /* i */
	LINES = 2,   /* m */
	ANY = 4,     /* s */
	SWAPPED = 8, /* U */
};

struct reader {
	struct strview rest;
	const char *start;
	struct re2 *re;
	struct pattern_error *error;
	unsigned int flags; /* enum flag */
	bool quoted;	    /* between \Q and \E */
	unsigned int depth;
};

/**
 * struct piece - what was read
 * @nullable:    it may match nothing
 * @repeatable:  a "*" may follow
 * @repeats:     the product of the {n} inside of it
 */
struct piece {
	bool nullable;
	bool repeatable;
	uint32_t repeats;
};

struct repeat {
	uint32_t min;
	uint32_t max; /* or NO_CEILING */
};

static int read_alternatives(struct reader *r, struct piece *ret);

static int __attribute__((format(printf, 2, 3)))
refuse(const struct reader *r, const char *format, ...)
{
	size_t at = (size_t)(r->rest.p - r->start);
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(r->error->text, sizeof(r->error->text), format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof(r->error->text))
		snprintf(r->error->text + n, sizeof(r->error->text) - (size_t)n, " at byte %zu",
			 at);
	return PATTERN_REFUSED;
}

/* What buf_*() returned. */
static int written(const struct reader *r, int result)
{
	return result > 0 ? refuse(r, "the pattern is too long") : result;
}

static int put(struct reader *r, const char *s)
{
	return written(r, buf_puts(&r->re->pcre2, s));
}

static bool peek(const struct reader *r, const char *prefix)
{
	return strview_starts(&r->rest, prefix);
}

static bool take(struct reader *r, const char *prefix)
{
	return strview_prefix(&r->rest, prefix);
}

/* The text is known to be UTF-8 and not at its end. */
static uint32_t next_char(struct reader *r)
{
	return utf8_next(&r->rest.p);
}

static bool is_digit(uint32_t c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(uint32_t c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int put_char(struct reader *r, uint32_t c)
{
	if (c >= 0xd800 && c <= 0xdfff)
		return refuse(r, "U+%04X is half of a UTF-16 pair and no character", c);
	if (is_alnum(c))
		return written(r, buf_putc(&r->re->pcre2, (char)c));
	return written(r, buf_printf(&r->re->pcre2, "\\x{%x}", c));
}

/* ---------------------------------------------------------------- escapes */

static int hex_value(uint32_t c)
{
	if (is_digit(c))
		return (int)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (int)(c - 'a') + 10 : -1;
}

/* The digits of \x41 or \x{1F600}. */
static int read_hex(struct reader *r, uint32_t *ret)
{
	bool braces = take(r, "{");
	uint32_t c = 0;
	int n = 0;

	for (; braces || n < 2; n++) {
		int digit = strview_empty(&r->rest) ? -1 : hex_value((uint8_t)*r->rest.p);

		if (braces && n && take(r, "}"))
			break;
		if (digit < 0 || c > 0x10ffff >> 4)
			return refuse(r, "\\x takes two hexadecimal digits, or {..} up to 10FFFF");
		c = c << 4 | (uint32_t)digit;
		r->rest.p++;
	}
	*ret = c;
	return 0;
}

static bool is_octal(const struct reader *r)
{
	return !strview_empty(&r->rest) && *r->rest.p >= '0' && *r->rest.p <= '7';
}

static int read_octal(struct reader *r, uint32_t first, uint32_t *ret)
{
	if (first != '0' && !is_octal(r))
		return refuse(r, "RE2 has no backreferences");
	*ret = first - '0';
	for (int i = 1; i < 3 && is_octal(r); i++)
		*ret = *ret << 3 | (uint32_t)(*r->rest.p++ - '0');
	return 0;
}

static int refuse_escape(const struct reader *r, uint32_t c)
{
	if (c == 'C')
		return refuse(r, "\\C, a single byte, is not in Go's RE2");
	if (c == 'Z' || c == 'G' || c == 'K')
		return refuse(r, "RE2 has no \\%c%s", c, c == 'Z' ? ", only \\z" : "");
	if (c == '8' || c == '9' || c == 'k' || c == 'g')
		return refuse(r, "RE2 has no backreferences");
	if (c > ' ' && c < 0x7f)
		return refuse(r, "\\%c is no escape of RE2", c);
	return refuse(r, "a backslash does not go before this character");
}

/* One character after a backslash. */
static int read_escape(struct reader *r, uint32_t *ret)
{
	static const char letters[] = "afnrtv", meant[] = "\a\f\n\r\t\v";
	const char *letter;
	uint32_t c;

	if (strview_empty(&r->rest))
		return refuse(r, "a backslash at the end");
	c = next_char(r);
	if (c == 'x')
		return read_hex(r, ret);
	if (c >= '0' && c <= '7')
		return read_octal(r, c, ret);
	letter = c && c < 0x80 ? strchr(letters, (int)c) : NULL;
	if (letter)
		*ret = (uint8_t)meant[letter - letters];
	else if (c < 0x80 && !is_alnum(c))
		*ret = c;
	else
		return refuse_escape(r, c);
	return 0;
}

/* ---------------------------------------------------------------- classes */

static int class_result(const struct reader *r, struct strview name, int result)
{
	int n = (int)(strview_len(&name) > 40 ? 40 : strview_len(&name));

	if (result == RE2_CLASS_UNKNOWN)
		return refuse(r, "'%.*s' is no class of characters", n, name.p);
	if (result == RE2_CLASS_FOLDED)
		return refuse(r, "\\p{%.*s} under (?i) is not supported", n, name.p);
	return written(r, result);
}

/* "\pN" or "\p{Greek}", behind the "\p" or "\P". */
static int read_unicode(struct reader *r, bool negated)
{
	struct strview name = {r->rest.p, r->rest.p};

	if (take(r, "{")) {
		const char *end = memchr(r->rest.p, '}', strview_len(&r->rest));

		if (!end)
			return refuse(r, "\\p{ without }");
		name = (struct strview){r->rest.p, end};
		r->rest.p = end + 1;
	} else {
		if (strview_empty(&r->rest))
			return refuse(r, "\\p without a name");
		(void)next_char(r);
		name.end = r->rest.p;
	}
	if (strview_char(&name, '^'))
		negated = !negated;
	return class_result(r, name,
			    re2_class_unicode(name, negated, r->flags & FOLD, &r->re->pcre2));
}

/* Puts a class that a backslash stands for. *@ret: there was one. */
static int read_named(struct reader *r, bool *ret)
{
	struct strview letter;

	*ret = strview_len(&r->rest) >= 2 && *r->rest.p == '\\' && r->rest.p[1] &&
	       strchr("dDsSwWpP", r->rest.p[1]);
	if (!*ret)
		return 0;
	letter = strview_of_bytes(r->rest.p + 1, 1);
	r->rest.p += 2;
	if ((*letter.p | 0x20) == 'p')
		return read_unicode(r, *letter.p == 'P');
	return written(r, re2_class_perl(*letter.p, r->flags & FOLD, &r->re->pcre2));
}

/* "[:alpha:]" in a class. *@ret: there was one; "[:" without ":]" are two characters. */
static int read_posix(struct reader *r, bool *ret)
{
	const char *end = NULL;
	struct strview name;
	bool negated;

	*ret = false;
	if (peek(r, "[:"))
		end = memmem(r->rest.p + 2, strview_len(&r->rest) - 2, ":]", 2);
	if (!end)
		return 0;
	*ret = true;
	name = (struct strview){r->rest.p + 2, end};
	negated = strview_char(&name, '^');
	r->rest.p = end + 2;
	return class_result(r, name,
			    re2_class_posix(name, negated, r->flags & FOLD, &r->re->pcre2));
}

static int read_class_char(struct reader *r, uint32_t *ret)
{
	if (strview_empty(&r->rest))
		return refuse(r, "a [ without ]");
	if (take(r, "\\"))
		return read_escape(r, ret);
	*ret = next_char(r);
	return 0;
}

/* "a" or "a-z" */
static int read_range(struct reader *r)
{
	uint32_t low, high;
	int result = read_class_char(r, &low);

	if (!result)
		result = put_char(r, low);
	if (result || strview_len(&r->rest) < 2 || *r->rest.p != '-' || r->rest.p[1] == ']')
		return result;
	r->rest.p++;
	result = read_class_char(r, &high);
	if (result)
		return result;
	if (high < low)
		return refuse(r, "a range that ends before it begins");
	result = put(r, "-");
	return result ? result : put_char(r, high);
}

static int read_class_item(struct reader *r)
{
	bool done;
	int result = read_posix(r, &done);

	if (!result && !done)
		result = read_named(r, &done);
	return result || done ? result : read_range(r);
}

/* Behind the "[". */
static int read_class(struct reader *r)
{
	int result = put(r, take(r, "^") ? "[^" : "[");

	/* a ']' that comes first is one of the characters */
	do
		result = result ? result : read_class_item(r);
	while (!result && !peek(r, "]"));
	if (result)
		return result;
	r->rest.p++;
	return put(r, "]");
}

/* ---------------------------------------------------------------- repetition */

static bool read_count(struct strview *t, uint32_t *ret)
{
	const char *start = t->p;
	uint64_t n;

	if (!strview_u64(t, 10, &n)) {
		/* digits that are more than 64 bits are too many as well */
		while (t->p < t->end && is_digit((uint8_t)*t->p))
			t->p++;
		n = RE2_REPEAT_MAX + 1;
	}
	*ret = n > RE2_REPEAT_MAX ? RE2_REPEAT_MAX + 1 : (uint32_t)n;
	return t->p > start && (t->p == start + 1 || *start != '0');
}

/* "{2}", "{2,}" or "{2,5}"; what is not one of them is text. */
static bool read_braces(struct strview *t, struct repeat *ret)
{
	struct strview rest = *t;

	if (!strview_char(&rest, '{') || !read_count(&rest, &ret->min))
		return false;
	ret->max = ret->min;
	if (strview_char(&rest, ',')) {
		ret->max = NO_CEILING;
		if (!strview_starts(&rest, "}") && !read_count(&rest, &ret->max))
			return false;
	}
	if (!strview_char(&rest, '}'))
		return false;
	*t = rest;
	return true;
}

static bool read_operator(struct strview *t, struct repeat *ret)
{
	static const struct {
		const char *text;
		struct repeat repeat;
	} operators[] = {{"*", {0, NO_CEILING}}, {"+", {1, NO_CEILING}}, {"?", {0, 1}}};

	for (size_t i = 0; i < array_size(operators); i++)
		if (strview_prefix(t, operators[i].text)) {
			*ret = operators[i].repeat;
			return true;
		}
	return read_braces(t, ret);
}

/* @operator: as it was written, without the '?' that may follow. */
static int put_operator(struct reader *r, struct strview operator)
{
	bool lazy = strview_char(&r->rest, '?');
	int result = written(r, buf_append(&r->re->pcre2, operator.p, strview_len(&operator)));

	if (!result && lazy != !!(r->flags & SWAPPED))
		result = put(r, "?");
	return result;
}

static int check_repeat(const struct reader *r, struct strview operator,
			const struct repeat * repeat, struct piece *piece)
{
	uint32_t n = repeat->max == NO_CEILING ? repeat->min : repeat->max;

	if (*operator.p != '{')
		return 0;
	if (repeat->min > RE2_REPEAT_MAX || n > RE2_REPEAT_MAX || repeat->min > n)
		return refuse(r, "{n,m} takes numbers up to %d, the larger one last",
			      RE2_REPEAT_MAX);
	if (n > 1)
		piece->repeats *= n;
	if (!repeat->max)
		piece->repeats = 1;
	if (piece->repeats > RE2_REPEAT_MAX)
		return refuse(r, "repetitions inside repetitions of more than %d", RE2_REPEAT_MAX);
	return 0;
}

/* What may follow @piece, whose groups come after the first @n_before. */
static int read_repeat(struct reader *r, size_t n_before, struct piece *piece)
{
	struct strview operator= r->rest, rest;
	struct repeat repeat, second;
	int result;

	if (!read_operator(&r->rest, &repeat))
		return 0;
	operator.end = r->rest.p;
	if (!piece->repeatable)
		return refuse(r, "nothing is there to be repeated");
	result = check_repeat(r, operator, & repeat, piece);
	if (!result)
		result = put_operator(r, operator);
	if (result)
		return result;
	rest = r->rest;
	if (read_operator(&rest, &second))
		return refuse(r, "two repetitions in a row; RE2 has no possessive ones");
	if (piece->nullable && repeat.max > 1)
		for (size_t i = n_before + 1; i <= r->re->n_groups; i++)
			r->re->groups[i].vague = true;
	piece->nullable |= !repeat.min;
	return 0;
}

/* ---------------------------------------------------------------- groups */

static bool is_name(struct strview name)
{
	for (const char *p = name.p; p < name.end; p++)
		if (!is_alnum((uint8_t)*p) && *p != '_')
			return false;
	return !strview_empty(&name);
}

static int add_group(struct reader *r, struct strview name)
{
	struct re2 *re = r->re;

	if (re->n_groups == PATTERN_GROUPS_MAX)
		return refuse(r, "more than %d groups; (?:..) are not counted", PATTERN_GROUPS_MAX);
	for (size_t i = 1; i <= re->n_groups; i++)
		if (strview_len(&name) && strview_len(&name) == strview_len(&re->groups[i].name) &&
		    !memcmp(name.p, re->groups[i].name.p, strview_len(&name)))
			return refuse(r, "two groups are named %.*s", (int)strview_len(&name),
				      name.p);
	re->groups[++re->n_groups] = (struct re2_group){.name = name};
	return put(r, "(");
}

/* Behind "(?P<" or "(?<". */
static int read_name(struct reader *r)
{
	struct strview name;

	if (!memchr(r->rest.p, '>', strview_len(&r->rest)) ||
	    !strview_until(&r->rest, '>', &name) || !is_name(name))
		return refuse(r, "a group's name is made of letters, digits and '_'");
	return add_group(r, name);
}

static unsigned int flag_of(char c)
{
	return c == 'i' ? FOLD : c == 'm' ? LINES : c == 's' ? ANY : c == 'U' ? SWAPPED : 0;
}

/* "ims-U" and the character behind it, of "(?ims-U)" or "(?ims-U:..)". */
static int read_flags(struct reader *r, char *ret_end)
{
	unsigned int flags = r->flags;
	bool minus = false, any = true;

	for (; !strview_empty(&r->rest) && *r->rest.p != ')' && *r->rest.p != ':'; r->rest.p++) {
		unsigned int flag = flag_of(*r->rest.p);

		if (*r->rest.p == '-' && !minus) {
			minus = true;
			any = false;
			continue;
		}
		if (!flag)
			return refuse(r, "RE2 has no such group: (?P<name>, (?:, and the flags "
					 "i, m, s and U are those there are");
		any = true;
		flags = minus ? flags & ~flag : flags | flag;
	}
	if (strview_empty(&r->rest) || !any)
		return refuse(r, "flags without an end");
	r->flags = flags;
	*ret_end = *r->rest.p++;
	return 0;
}

struct foreign {
	const char *text;
	const char *what;
};

/* What other engines have, told by its name. */
static int refuse_foreign(const struct reader *r)
{
	static const struct foreign all[] = {
		{"(?=", "lookahead"},	    {"(?!", "lookahead"},
		{"(?<=", "lookbehind"},	    {"(?<!", "lookbehind"},
		{"(?>", "atomic groups"},   {"(?|", "branch resets"},
		{"(?#", "comments"},	    {"(?R", "recursion"},
		{"(?&", "recursion"},	    {"(?P>", "recursion"},
		{"(?P=", "backreferences"}, {"(?C", "callouts"},
		{"(?(", "conditions"},	    {"(*", "verbs"},
	};

	for (size_t i = 0; i < array_size(all); i++)
		if (peek(r, all[i].text))
			return refuse(r, "RE2 has no %s", all[i].what);
	if (strview_len(&r->rest) > 2 && peek(r, "(?") && is_digit((uint8_t)r->rest.p[2]))
		return refuse(r, "RE2 has no recursion");
	return 0;
}

/* From the "(" on. *@ret_flags: it was no group, but "(?i)" for the rest of the one around it. */
static int read_open(struct reader *r, bool *ret_flags)
{
	unsigned int was = r->flags;
	char end = ':';
	int result = refuse_foreign(r);

	*ret_flags = false;
	if (result)
		return result;
	if (take(r, "(?P<") || take(r, "(?<"))
		return read_name(r);
	if (!take(r, "(?")) {
		r->rest.p++;
		return add_group(r, strview_of(""));
	}
	result = read_flags(r, &end);
	*ret_flags = end == ')';
	if (!result && !*ret_flags)
		result = put(r, "(?:");
	if (!result && (was ^ r->flags) & FOLD)
		result = put(r, r->flags & FOLD ? "(?i)" : "(?-i)");
	return result;
}

static int read_group(struct reader *r, struct piece *ret)
{
	unsigned int was = r->flags;
	bool only_flags;
	int result = read_open(r, &only_flags);

	if (result)
		return result;
	if (only_flags) {
		*ret = (struct piece){.nullable = true, .repeats = 1};
		return 0;
	}
	if (++r->depth > RE2_DEPTH_MAX)
		return refuse(r, "more than %d groups inside groups", RE2_DEPTH_MAX);
	result = read_alternatives(r, ret);
	if (result)
		return result;
	if (!take(r, ")"))
		return refuse(r, "a ( without )");
	r->depth--;
	r->flags = was;
	ret->repeatable = true;
	return put(r, ")");
}

/* ---------------------------------------------------------------- pieces */

/* What matches nothing but a place. */
static int read_place(struct reader *r, bool *ret)
{
	static const struct {
		const char *text;
		const char *pcre2;
		const char *pcre2_lines;
	} places[] = {
		{"^", "(?:\\A)", "(?:\\A|(?<=\\n))"}, {"$", "(?:\\z)", "(?=\\n|\\z)"},
		{"\\A", "(?:\\A)", "(?:\\A)"},	      {"\\z", "(?:\\z)", "(?:\\z)"},
		{"\\b", "(?:\\b)", "(?:\\b)"},	      {"\\B", "(?:\\B)", "(?:\\B)"},
	};

	for (size_t i = 0; i < array_size(places); i++)
		if (take(r, places[i].text)) {
			*ret = true;
			return put(r, r->flags & LINES ? places[i].pcre2_lines : places[i].pcre2);
		}
	*ret = false;
	return 0;
}

static int read_backslash_class(struct reader *r, bool *ret)
{
	size_t before = r->re->pcre2.len;
	int result = put(r, "[");

	if (!result)
		result = read_named(r, ret);
	if (!result && *ret)
		return put(r, "]");
	r->re->pcre2.len = before;
	return result;
}

static int read_one_char(struct reader *r)
{
	uint32_t c;
	int result = 0;

	if (take(r, "."))
		return put(r, r->flags & ANY ? "." : "[^\\n]");
	if (take(r, "["))
		return read_class(r);
	if (take(r, "\\"))
		result = read_escape(r, &c);
	else
		c = next_char(r);
	return result ? result : put_char(r, c);
}

static int read_quoted(struct reader *r)
{
	int result = put_char(r, next_char(r));

	r->quoted = !take(r, "\\E");
	return result;
}

static int read_atom(struct reader *r, struct piece *ret)
{
	struct strview rest = r->rest;
	struct repeat repeat;
	bool done;
	int result;

	*ret = (struct piece){.repeatable = true, .repeats = 1};
	if (r->quoted)
		return read_quoted(r);
	if (peek(r, "("))
		return read_group(r, ret);
	if (read_operator(&rest, &repeat))
		return refuse(r, "nothing is there to be repeated");
	result = read_place(r, &done);
	ret->nullable = done;
	if (!result && !done)
		result = read_backslash_class(r, &done);
	return result || done ? result : read_one_char(r);
}

static int read_piece(struct reader *r, struct piece *ret)
{
	size_t n_before = r->re->n_groups;
	int result;

	if (!r->quoted && take(r, "\\Q")) {
		r->quoted = !take(r, "\\E");
		*ret = (struct piece){.nullable = true, .repeats = 1};
		if (r->quoted)
			return 0;
	} else {
		result = read_atom(r, ret);
		if (result || r->quoted)
			return result;
	}
	return read_repeat(r, n_before, ret);
}

static bool at_end_of_sequence(const struct reader *r)
{
	return strview_empty(&r->rest) || (!r->quoted && (peek(r, "|") || peek(r, ")")));
}

static int read_sequence(struct reader *r, struct piece *ret)
{
	*ret = (struct piece){.nullable = true, .repeats = 1};
	while (!at_end_of_sequence(r)) {
		struct piece piece;
		int result = read_piece(r, &piece);

		if (result)
			return result;
		ret->nullable &= piece.nullable;
		if (piece.repeats > ret->repeats)
			ret->repeats = piece.repeats;
	}
	return r->quoted ? refuse(r, "a \\Q without \\E") : 0;
}

static int read_alternatives(struct reader *r, struct piece *ret)
{
	int result;

	*ret = (struct piece){.repeats = 1};
	for (;;) {
		struct piece piece;

		result = read_sequence(r, &piece);
		if (result)
			return result;
		ret->nullable |= piece.nullable;
		if (piece.repeats > ret->repeats)
			ret->repeats = piece.repeats;
		if (!take(r, "|"))
			return 0;
		result = put(r, "|");
		if (result)
			return result;
	}
}

int re2_translate(const char *text, struct re2 *ret, struct pattern_error *ret_error)
{
	struct reader r = {
		.rest = strview_of(text),
		.start = text,
		.re = ret,
		.error = ret_error,
		.flags = ANY,
	};
	struct piece all;
	int result;

	*ret = (struct re2){.pcre2 = BUF_INIT(RE2_PCRE2_MAX)};
	if (strview_len(&r.rest) > PATTERN_TEXT_MAX)
		return refuse(&r, "a pattern has %zu bytes at most;", PATTERN_TEXT_MAX);
	if (!utf8_is_valid(text, strview_len(&r.rest)))
		return refuse(&r, "the pattern is not UTF-8;");
	result = put(&r, "\\A(?:");
	if (!result)
		result = read_alternatives(&r, &all);
	if (!result && !strview_empty(&r.rest))
		return refuse(&r, "a ) without (");
	return result ? result : put(&r, ")\\z");
}

void re2_deinit(struct re2 *re)
{
	buf_deinit(&re->pcre2);
}
