// SPDX-License-Identifier: Apache-2.0
#include "server/health.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

static struct health_condition *health_find(struct health *h, const char *name)
{
	for (size_t i = 0; i < h->n; i++)
		if (strcmp(h->items[i].name, name) == 0)
			return &h->items[i];
	if (h->n == HEALTH_CONDITIONS_MAX)
		return NULL;
	h->items[h->n].name = name;
	return &h->items[h->n++];
}

/* Makes one line of readable text; reasons quote other programs' messages. */
static void make_plain(char *s)
{
	utf8_repair(s, strlen(s));
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = ' ';
}

void health_set(struct health *h, enum health_kind kind, const char *name, bool ok,
		const char *reason)
{
	struct health_condition *c = health_find(h, name);

	if (!c) {
		h->overflow = true;
		return;
	}
	c->kind = kind;
	c->ok = ok;
	snprintf(c->reason, sizeof(c->reason), "%s", reason ? reason : "");
	make_plain(c->reason);
}

static bool counts(const struct health_condition *c, enum health_kind kind)
{
	return kind == HEALTH_READY || c->kind == HEALTH_LIVE;
}

bool health_ok(const struct health *h, enum health_kind kind)
{
	for (size_t i = 0; i < h->n; i++)
		if (counts(&h->items[i], kind) && h->items[i].kind != HEALTH_NOTE &&
		    !h->items[i].ok)
			return false;
	return !h->overflow;
}

int health_summarize(const struct health *h, enum health_kind kind, struct buf *ret)
{
	const char *word = kind == HEALTH_LIVE ? "healthy" : "ready";

	return buf_printf(ret, "%s%s\n", health_ok(h, kind) ? "" : "not ", word);
}

int health_render(const struct health *h, enum health_kind kind, struct buf *ret)
{
	int r = health_summarize(h, kind, ret);

	for (size_t i = 0; i < h->n && !r; i++) {
		const struct health_condition *c = &h->items[i];

		if (counts(c, kind))
			r = buf_printf(ret, "%s: %s%s%s\n", c->name, c->ok ? "ok" : "failing",
				       *c->reason ? ", " : "", c->reason);
	}
	return r;
}
