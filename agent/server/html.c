// SPDX-License-Identifier: Apache-2.0
#include "server/html.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* Bytes of one html_printf(): markup around numbers. Reached: cut. */
#define HTML_PIECE_MAX 512

void html_raw(struct html *h, const char *markup)
{
	if (!h->error)
		h->error = buf_puts(h->b, markup);
}

void html_printf(struct html *h, const char *format, ...)
{
	char piece[HTML_PIECE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	html_raw(h, piece);
}

/* The replacement of the character at @s, or NULL for none; *@ret_n: the character's bytes. */
static const char *replaced(const char *s, size_t *ret_n)
{
	const size_t control = utf8_control(s);

	*ret_n = control ? control : 1;
	switch (*s) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return control ? REPLACEMENT : NULL;
	}
}

void html_text(struct html *h, const char *s)
{
	size_t start = h->b->len;

	while (*s && !h->error) {
		size_t n;
		const char *other = replaced(s, &n);

		h->error = other ? buf_puts(h->b, other) : buf_append(h->b, s, n);
		s += n;
	}
	if (h->b->data)
		utf8_repair(h->b->data + start, h->b->len - start);
}

void html_bytes(struct html *h, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < array_size(units)) {
		value /= 1024;
		unit++;
	}
	html_printf(h, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void html_duration(struct html *h, uint64_t ns)
{
	if (ns < NSEC_PER_SEC)
		html_printf(h, "%.0f ms", (double)ns / NSEC_PER_MSEC);
	else
		html_printf(h, "%.*f s", ns % NSEC_PER_SEC ? 2 : 0, (double)ns / NSEC_PER_SEC);
}

void html_time(struct html *h, uint64_t wall_ns)
{
	time_t sec = (time_t)(wall_ns / NSEC_PER_SEC);
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&sec, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	html_raw(h, text);
}
