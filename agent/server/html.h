/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SERVER_HTML_H
#define PODPROF_SERVER_HTML_H

/* Writes HTML into a buffer. After the first failure all calls do nothing, so the caller checks the
 * result once, at the end. */

#include <stdint.h>

struct buf;

struct html {
	struct buf *b;
	int error; /* a result of buf_append() */
};

/* Unescaped: our own markup, numbers. */
void html_raw(struct html *h, const char *markup);
void html_printf(struct html *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Foreign text, as text or as a quoted attribute's value. Invalid UTF-8 becomes '?'. The characters
 * of utf8_control() become U+FFFD: also those that show the rest of the line in another order. */
void html_text(struct html *h, const char *s);

/* Numbers for people: "1.5 MiB"; "2.50 s"; "2026-11-21 11:34:00". */
void html_bytes(struct html *h, uint64_t bytes);
void html_duration(struct html *h, uint64_t ns);
void html_time(struct html *h, uint64_t wall_ns);

#endif
