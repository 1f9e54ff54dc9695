// SPDX-License-Identifier: Apache-2.0
/*
 * Accept: clause, clause, ...   with each clause   name; parameter=value; ...; q=0.5
 * (RFC 9110 sections 12.4.2, 12.5.1 and 12.5.3). The most important client is Prometheus:
 *
 *	application/openmetrics-text;version=1.0.0;q=0.6,...;version=0.0.1;q=0.5,
 *	text/plain;version=0.0.4;q=0.4,...
 *
 * Without a version OpenMetrics means 0.0.1 and text 0.0.4. A clause with an unknown version is
 * ignored. Quoted parameter values occur in neither header.
 */
#include "server/accept.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/strview.h"

/* One clause. */
struct clause {
	struct strview name;
	struct strview version; /* empty if absent */
	unsigned int q;		/* in thousandths, as far as HTTP is precise */
};

static struct strview trim(struct strview t)
{
	strview_skip_blanks(&t);
	while (!strview_empty(&t) && (t.end[-1] == ' ' || t.end[-1] == '\t'))
		t.end--;
	return t;
}

static bool is_word(struct strview t, const char *word)
{
	if (strview_empty(&t))
		return !*word;
	return strview_len(&t) == strlen(word) && strncasecmp(t.p, word, strview_len(&t)) == 0;
}

/* "1", "0.5", "0.123" in thousandths. */
static bool parse_q(struct strview t, unsigned int *ret)
{
	unsigned int q = 0, weight = 1000;

	if (strview_empty(&t) || (*t.p != '0' && *t.p != '1'))
		return false;
	q = *t.p++ == '1' ? 1000 : 0;
	if (strview_empty(&t)) {
		*ret = q;
		return true;
	}
	if (!strview_char(&t, '.') || strview_len(&t) > 3)
		return false;
	for (; !strview_empty(&t); t.p++) {
		if (*t.p < '0' || *t.p > '9')
			return false;
		weight /= 10;
		q += (unsigned int)(*t.p - '0') * weight;
	}
	if (q > 1000)
		return false;
	*ret = q;
	return true;
}

/* False at the end. A clause with an unreadable q counts as refused (q = 0). */
static bool clause_next(struct strview *header, struct clause *ret)
{
	struct strview clause, part, key;

	if (!strview_until(header, ',', &clause))
		return false;
	*ret = (struct clause){.q = 1000};
	if (strview_until(&clause, ';', &part))
		ret->name = trim(part);
	while (strview_until(&clause, ';', &part)) {
		if (!strview_until(&part, '=', &key))
			continue;
		key = trim(key);
		part = trim(part);
		if (is_word(key, "version"))
			ret->version = part;
		else if (is_word(key, "q") && !parse_q(part, &ret->q))
			ret->q = 0;
	}
	return true;
}

static bool clause_format(const struct clause *c, enum accept_format *ret)
{
	static const struct {
		const char *name, *version;
		enum accept_format format;
	} offers[] = {
		{"application/openmetrics-text", "1.0.0", ACCEPT_OPENMETRICS},
		{"application/openmetrics-text", "0.0.1", ACCEPT_OPENMETRICS_01},
		{"application/openmetrics-text", "", ACCEPT_OPENMETRICS_01},
		{"text/plain", "0.0.4", ACCEPT_TEXT},
		{"text/plain", "", ACCEPT_TEXT},
		{"text/*", "", ACCEPT_TEXT},
		{"*/*", "", ACCEPT_TEXT},
	};

	for (size_t i = 0; i < array_size(offers); i++)
		if (is_word(c->name, offers[i].name) && is_word(c->version, offers[i].version)) {
			*ret = offers[i].format;
			return true;
		}
	return false;
}

enum accept_format accept_format(const char *accept)
{
	struct strview header = strview_of(accept ? accept : "");
	enum accept_format best = ACCEPT_TEXT, format;
	unsigned int best_q = 0;
	struct clause c;

	while (clause_next(&header, &c))
		if (c.q > best_q && clause_format(&c, &format)) {
			best = format;
			best_q = c.q;
		}
	return best;
}

const char *accept_content_type(enum accept_format format)
{
	static const char *const types[ACCEPT_FORMAT_MAX] = {
		[ACCEPT_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
		[ACCEPT_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
		[ACCEPT_OPENMETRICS_01] =
			"application/openmetrics-text; version=0.0.1; charset=utf-8",
	};

	return types[format];
}

bool accept_gzip(const char *accept_encoding)
{
	struct strview header = strview_of(accept_encoding ? accept_encoding : "");
	bool any = false;
	struct clause c;

	while (clause_next(&header, &c)) {
		if (is_word(c.name, "gzip") || is_word(c.name, "x-gzip"))
			return c.q > 0;
		if (is_word(c.name, "*"))
			any = c.q > 0;
	}
	return any;
}
