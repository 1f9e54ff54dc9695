// SPDX-License-Identifier: Apache-2.0
/*
 * RE2's \d, \s, \w and [:alpha:] know ASCII only, and \s has no vertical tab, other than PCRE2's:
 * they are written out as ranges. Their complements are written out too, because PCRE2 looks for
 * other cases of what is in a class: under (?i) [\W] must not take U+017F for being another 's',
 * as \w takes it for that reason.
 *
 * \p{..} is PCRE2's own. Its \p{Greek} is the Script_Extensions property, RE2's is Script. Under
 * (?i) RE2 adds the other cases of each character, PCRE2 does not; that makes a difference for a
 * few properties, which are refused there.
 */
#include "relabel/re2_class.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

struct range {
	uint32_t low;
	uint32_t high;
};

struct ascii_class {
	const char *name;
	struct range ranges[5];
	size_t n;
};

static const struct ascii_class classes[] = {
	{"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
	{"alpha", {{'A', 'Z'}, {'a', 'z'}}, 2},
	{"ascii", {{0, 0x7f}}, 1},
	{"blank", {{'\t', '\t'}, {' ', ' '}}, 2},
	{"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}, 2},
	{"digit", {{'0', '9'}}, 1},
	{"graph", {{'!', '~'}}, 1},
	{"lower", {{'a', 'z'}}, 1},
	{"print", {{' ', '~'}}, 1},
	{"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
	{"space", {{'\t', '\r'}, {' ', ' '}}, 2},
	{"upper", {{'A', 'Z'}}, 1},
	{"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
	{"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
	/* \s */
	{"", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}, 3},
};

/* Of ASCII letters two have a third case: U+017F is an 's', U+212A a 'k'. */
#define LONG_S 0x17f
#define KELVIN 0x212a

static const struct ascii_class *class_find(struct strview name)
{
	for (size_t i = 0; i < array_size(classes); i++)
		if (strview_is(&name, classes[i].name))
			return &classes[i];
	return NULL;
}

static bool class_has(const struct ascii_class *class, uint32_t c)
{
	for (size_t i = 0; i < class->n; i++)
		if (c >= class->ranges[i].low && c <= class->ranges[i].high)
			return true;
	return false;
}

static bool is_letter(uint32_t c)
{
	return ((c | 0x20) >= 'a') && ((c | 0x20) <= 'z');
}

/* Whether @c is in the class, or another case of it is. */
static bool class_has_folded(const struct ascii_class *class, uint32_t c)
{
	if (c == LONG_S)
		return class_has(class, 's') || class_has(class, 'S');
	if (c == KELVIN)
		return class_has(class, 'k') || class_has(class, 'K');
	return class_has(class, c) || (is_letter(c) && class_has(class, c ^ 0x20));
}

static int put_range(struct buf *to, uint32_t low, uint32_t high)
{
	if (low > high)
		return 0;
	return buf_printf(to, "\\x{%x}-\\x{%x}", low, high);
}

static int put_class(const struct ascii_class *class, struct buf *to)
{
	int r = 0;

	for (size_t i = 0; i < class->n && !r; i++)
		r = put_range(to, class->ranges[i].low, class->ranges[i].high);
	return r;
}

static int put_ascii_complement(const struct ascii_class *class, bool fold, struct buf *to)
{
	uint32_t low = 0, c;
	int r = 0;

	for (c = 0; c < 0x80 && !r; c++) {
		if (!(fold ? class_has_folded(class, c) : class_has(class, c)))
			continue;
		if (c > low)
			r = put_range(to, low, c - 1);
		low = c + 1;
	}
	return r || low == 0x80 ? r : put_range(to, low, 0x7f);
}

static int put_complement(const struct ascii_class *class, bool fold, struct buf *to)
{
	bool no_s = fold && class_has_folded(class, LONG_S);
	bool no_k = fold && class_has_folded(class, KELVIN);
	int r = put_ascii_complement(class, fold, to);

	if (!r)
		r = put_range(to, 0x80, no_s ? LONG_S - 1 : LONG_S);
	if (!r)
		r = put_range(to, LONG_S + 1, no_k ? KELVIN - 1 : KELVIN);
	return r ? r : put_range(to, KELVIN + 1, 0x10ffff);
}

static int put(struct strview name, bool negated, bool fold, struct buf *to)
{
	const struct ascii_class *class = class_find(name);

	if (!class)
		return RE2_CLASS_UNKNOWN;
	return negated ? put_complement(class, fold, to) : put_class(class, to);
}

int re2_class_posix(struct strview name, bool negated, bool fold, struct buf *to)
{
	return strview_empty(&name) ? RE2_CLASS_UNKNOWN : put(name, negated, fold, to);
}

int re2_class_perl(char letter, bool fold, struct buf *to)
{
	const char *name = (letter | 0x20) == 'd' ? "digit" : (letter | 0x20) == 'w' ? "word" : "";

	return put(strview_of(name), !(letter & 0x20), fold, to);
}

/* Properties that have characters with another case outside of them. */
static bool folds(struct strview name)
{
	static const char *const names[] = {"L", "Ll", "Lt",	"Lu",	  "LC",
					    "M", "Mn", "Greek", "Common", "Inherited"};

	for (size_t i = 0; i < array_size(names); i++)
		if (strview_is(&name, names[i]))
			return true;
	return false;
}

static bool is_category(struct strview name)
{
	static const char categories[] =
		" C Cc Cf Cn Co Cs L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No "
		"P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs ";
	char wanted[8];

	if (strview_len(&name) > 2)
		return false;
	snprintf(wanted, sizeof(wanted), " %.*s ", (int)strview_len(&name), name.p);
	return strstr(categories, wanted);
}

static bool is_script(struct strview name)
{
	for (const char *p = name.p; p < name.end; p++)
		if (!is_letter((uint8_t)*p) && *p != '_')
			return false;
	return strview_len(&name) > 2;
}

int re2_class_unicode(struct strview name, bool negated, bool fold, struct buf *to)
{
	/* its complement is empty, which PCRE2 cannot say */
	if (strview_is(&name, "Any"))
		return negated ? RE2_CLASS_UNKNOWN : put_range(to, 0, 0x10ffff);
	if (fold && folds(name))
		return RE2_CLASS_FOLDED;
	if (strview_is(&name, "LC"))
		return buf_puts(to, negated ? "\\P{L&}" : "\\p{L&}");
	if (is_category(name))
		return buf_printf(to, "\\%c{%.*s}", negated ? 'P' : 'p', (int)strview_len(&name),
				  name.p);
	if (is_script(name))
		return buf_printf(to, "\\%c{sc:%.*s}", negated ? 'P' : 'p', (int)strview_len(&name),
				  name.p);
	return RE2_CLASS_UNKNOWN;
}
