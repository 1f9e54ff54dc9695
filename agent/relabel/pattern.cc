// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's one C++ file, because libre2 has no interface for C. Prometheus uses Go's regexp. RE2
 * has the same author, the same syntax and the same rule for groups (leftmost-first). Prometheus
 * compiles "^(?s:PATTERN)$", and so does this file. The remaining differences:
 *
 *   \C            RE2: one byte. Go: refused. Here: refused.
 *   (?<name>..)   Go: since 1.22. RE2: since 2023-09, Debian 12 has an older one. Here: rewritten
 * to
 *                 (?P<name>..).
 *   (?P<ä>..)     RE2: a name may have letters of Unicode. Go: refused. Here: refused.
 *   one name for  RE2: the name of the first group. Go: of the first group with a match. Here:
 *   two groups    refused.
 *   a{123456789}  RE2: nine digits or more are text. Go: refused. Here: refused.
 *   a)|(b         Prometheus: "^(?s:a)|(b)$" matches any text with 'a' in front or 'b' at the end.
 *                 Here: refused as a mistake.
 *   \Qa           Prometheus: refused, because \Q without \E quotes its ")$" too. Here: refused.
 *
 * '^' instead of RE2's ANCHOR_BOTH is also faster: RE2 compares a literal behind '^' before it
 * starts an engine.
 *
 * RE2 returns errors as values and throws nothing of its own. A failed allocation inside of RE2
 * throws std::bad_alloc. No C++ code here catches it (-fno-exceptions), so that std::terminate()
 * ends the program; the stack of C is not unwound.
 */
#include <re2/re2.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

extern "C" {
#include "base/utf8.h"
#include "relabel/pattern.h"
}

/* The cost of a group in instructions. At each begin and end of a group the NFA copies the places
 * of all groups: 64 groups cost as much as 1,000 instructions (bench_relabel). */
#define GROUP_COST 16

struct pattern {
	std::string written;
	RE2 re;
	size_t cost; /* of a byte of text, in instructions */
};

static int refuse(struct pattern_error *error, const std::string &why)
{
	snprintf(error->text, sizeof(error->text), "%s", why.c_str());
	utf8_make_printable(error->text);
	return PATTERN_REFUSED;
}

/* ---------------------------------------------------------------- Go's syntax */

static bool begins(const std::string &s, size_t at, const char *prefix)
{
	return s.compare(at, strlen(prefix), prefix) == 0;
}

/* One past the ']' of the class at @at, or the end of @s. @named: the last ":]" in @s, or npos. */
static size_t class_end(const std::string &s, size_t at, size_t named)
{
	at += begins(s, at, "[^") ? 2 : 1;
	at += s[at] == ']'; /* in front: a character */
	while (at < s.size() && s[at] != ']') {
		if (begins(s, at, "[:") && named != std::string::npos && at + 2 <= named)
			at = (size_t)(strstr(&s[at + 2], ":]") - s.c_str()) + 2;
		else
			at += s[at] == '\\' ? 2 : 1;
	}
	return std::min(at + 1, s.size());
}

/* One past the "(?P<name>" or "(?<name>" at @at; 0: another kind of group; npos: a wrong name. */
static size_t name_end(const std::string &s, size_t at)
{
	size_t name = begins(s, at, "(?P<") ? at + 4 : begins(s, at, "(?<") ? at + 3 : 0;
	size_t end;

	if (!name || s[name] == '=' || s[name] == '!') /* RE2 refuses lookbehind */
		return 0;
	end = s.find_first_not_of("0123456789_abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
				  name);
	return end != name && end != std::string::npos && s[end] == '>' ? end + 1
									: std::string::npos;
}

/* "{n}", "{n,}" or "{n,m}" with a number of nine digits or more. */
static bool is_huge_repeat(const std::string &s, size_t at)
{
	size_t n = strspn(&s[at + 1], "0123456789"), end = at + 1 + n, m = 0;

	if (s[end] == ',') {
		m = strspn(&s[end + 1], "0123456789");
		end += 1 + m;
	}
	return n && s[end] == '}' && std::max(n, m) >= 9;
}

/* Rewrites Go's syntax to RE2's, for all versions of RE2. RE2 refuses the other errors. */
static int translate(const std::string &s, std::string *ret, struct pattern_error *error)
{
	const size_t named = s.rfind(":]");
	size_t depth = 0, end;

	for (size_t at = 0; at < s.size(); at = end) {
		end = at + 1;
		if (begins(s, at, "\\Q")) {
			end = s.find("\\E", at);
			if (end == std::string::npos)
				return refuse(error, "missing \\E: " + s.substr(at));
			end += 2;
		} else if (begins(s, at, "\\C")) {
			return refuse(error, "invalid escape sequence: \\C");
		} else if (s[at] == '\\') {
			end++;
		} else if (s[at] == '[') {
			end = class_end(s, at, named);
		} else if (s[at] == '{' && is_huge_repeat(s, at)) {
			return refuse(error, "invalid repetition size: " + s.substr(at));
		} else if (s[at] == ')' && depth-- == 0) {
			return refuse(error, "unexpected ): " + s.substr(at));
		} else if (s[at] == '(') {
			size_t behind = name_end(s, at);

			depth++;
			if (behind == std::string::npos)
				return refuse(error,
					      "invalid named capture group: " + s.substr(at));
			if (behind && s[at + 2] == '<') {
				ret->append("(?P");
				at += 2;
			}
			end = std::max(end, behind);
		}
		ret->append(s, at, end - at);
	}
	return 0;
}

/* ---------------------------------------------------------------- compiling */

/* With RE2's message about @inner alone: its message about @whole may show the added text. */
static int refuse_re(const RE2 &whole, const std::string &inner, struct pattern_error *error)
{
	RE2 alone(inner, whole.options());

	return refuse(error, alone.ok() ? whole.error() : alone.error());
}

static int make(const char *text, bool anywhere, struct pattern **ret, struct pattern_error *error)
{
	RE2::Options options(RE2::Quiet);
	std::string inner, whole;
	struct pattern *p;
	int r = 0;

	if (strnlen(text, PATTERN_TEXT_MAX + 1) > PATTERN_TEXT_MAX)
		return refuse(error, "more than " + std::to_string(PATTERN_TEXT_MAX) + " bytes");
	r = translate(text, &inner, error);
	if (r)
		return r;
	options.set_max_mem(PATTERN_MEMORY_MAX);
	options.set_never_capture(anywhere);
	whole = (anywhere ? "(?s:" : "^(?s:") + inner + (anywhere ? ")" : ")$");
	p = new pattern{text, RE2(whole, options), 0};
	if (!p->re.ok())
		r = refuse_re(p->re, inner, error);
	else if (pattern_n_groups(p) > PATTERN_GROUPS_MAX)
		r = refuse(error, "more than " + std::to_string(PATTERN_GROUPS_MAX) + " groups");
	else if (p->re.CapturingGroupNames().size() != p->re.NamedCapturingGroups().size())
		r = refuse(error, "two groups have the same name");
	if (r) {
		pattern_free(p);
		return r;
	}
	p->cost = (size_t)p->re.ProgramSize() + GROUP_COST * pattern_n_groups(p);
	*ret = p;
	return 0;
}

int pattern_new(const char *text, struct pattern **ret, struct pattern_error *ret_error)
{
	return make(text, false, ret, ret_error);
}

int pattern_new_anywhere(const char *text, struct pattern **ret, struct pattern_error *ret_error)
{
	return make(text, true, ret, ret_error);
}

void pattern_free(struct pattern *p)
{
	delete p;
}

const char *pattern_text(const struct pattern *p)
{
	return p->written.c_str();
}

size_t pattern_n_groups(const struct pattern *p)
{
	return (size_t)p->re.NumberOfCapturingGroups();
}

size_t pattern_find_group(const struct pattern *p, struct strview name)
{
	const auto &groups = p->re.NamedCapturingGroups();
	auto found = groups.find(std::string(name.p, strview_len(&name)));

	return found == groups.end() ? 0 : (size_t)found->second;
}

/* ---------------------------------------------------------------- matching */

size_t pattern_work(const struct pattern *p, size_t n)
{
	return n * p->cost;
}

int pattern_match(const struct pattern *p, const char *text, size_t n, struct pattern_match *ret)
{
	re2::StringPiece groups[PATTERN_GROUPS_MAX + 1];
	size_t n_groups = ret ? pattern_n_groups(p) + 1 : 0;

	if (pattern_work(p, n) > PATTERN_WORK_MAX)
		return PATTERN_LIMIT;
	if (!p->re.Match(re2::StringPiece(text, n), 0, n, RE2::UNANCHORED, groups, (int)n_groups))
		return PATTERN_NO_MATCH;
	if (!ret)
		return PATTERN_OK;
	for (size_t i = 0; i < n_groups; i++)
		ret->groups[i] = {groups[i].data(), groups[i].data() + groups[i].size()};
	ret->n = n_groups;
	return PATTERN_OK;
}

bool pattern_match_group(const struct pattern_match *m, size_t i, struct strview *ret)
{
	if (i >= m->n || !m->groups[i].p)
		return false;
	*ret = m->groups[i];
	return true;
}
