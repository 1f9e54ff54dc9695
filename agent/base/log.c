// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/utf8.h"

/* Bytes of a line: below PIPE_BUF, so lines of several writers do not mix. Reached: the field is
 * left out. */
#define LOG_LINE_MAX 4000

/* File-scope state, so that a log line needs no argument for it: set at the start and by a reload.
 */
static enum log_level log_min_level = LOG_INFO;
static enum log_format log_line_format = LOG_FORMAT_LOGFMT;

static const char *const log_level_names[LOG_LEVEL_MAX] = {"debug", "info", "warn", "error"};

void log_set(enum log_level min_level, enum log_format format)
{
	log_min_level = min_level;
	log_line_format = format;
}

static bool needs_quotes(const char *s)
{
	if (!*s)
		return true;
	for (; *s; s++)
		if (strchr(" \"=\\", *s) || utf8_control(s))
			return true;
	return false;
}

/* Both formats quote alike: JSON's escapes are read by logfmt readers too. */
static int put_quoted(struct buf *b, const char *s)
{
	int r = buf_putc(b, '"');

	while (*s && !r) {
		const char *c = s;
		const size_t control = utf8_control(c);

		s += control ? control : 1;
		if (control)
			r = buf_printf(b, "\\u%04x", (unsigned int)utf8_next(&c));
		else if (*c == '"' || *c == '\\')
			r = buf_printf(b, "\\%c", *c);
		else
			r = buf_putc(b, *c);
	}
	return r ? r : buf_putc(b, '"');
}

static int put_string(struct buf *b, const char *s)
{
	if (log_line_format == LOG_FORMAT_LOGFMT && !needs_quotes(s))
		return buf_puts(b, s);
	return put_quoted(b, s);
}

static int put_field(struct buf *b, const struct log_field *f)
{
	size_t start = b->len;
	int r = log_line_format == LOG_FORMAT_JSON
			? buf_printf(b, "%s\"%s\":", b->len > 1 ? "," : "", f->key)
			: buf_printf(b, "%s%s=", b->len ? " " : "", f->key);

	if (!r) {
		switch (f->kind) {
		case LOG_STR:
			r = put_string(b, f->value.str ? f->value.str : "");
			break;
		case LOG_INT:
			r = buf_printf(b, "%" PRId64, f->value.i);
			break;
		case LOG_UINT:
			r = buf_printf(b, "%" PRIu64, f->value.u);
			break;
		case LOG_ERRNO:
			r = put_string(b, strerror((int)-f->value.i));
			break;
		case LOG_END:
			break;
		}
	}
	if (r)
		b->len = start;
	return r;
}

static void put_time(struct buf *b)
{
	uint64_t now = nsec_wall();
	time_t sec = (time_t)(now / NSEC_PER_SEC);
	char stamp[40], date[32];
	struct tm tm;

	gmtime_r(&sec, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(stamp, sizeof(stamp), "%s.%03uZ", date,
		 (unsigned int)(now % NSEC_PER_SEC / NSEC_PER_MSEC));
	(void)put_field(b, &log_str("ts", stamp));
}

void log_write(enum log_level level, const char *msg, const struct log_field *fields)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(LOG_LINE_MAX);
	bool json = log_line_format == LOG_FORMAT_JSON;

	if (level < log_min_level)
		return;
	if (json && buf_putc(&line, '{'))
		return;
	put_time(&line);
	(void)put_field(&line, &log_str("level", log_level_names[level]));
	(void)put_field(&line, &log_str("msg", msg));
	for (; fields->kind != LOG_END; fields++)
		(void)put_field(&line, fields);
	if (!line.data)
		return;
	utf8_repair(line.data, line.len);
	line.max += 2; /* the closing must always fit */
	if (buf_puts(&line, json ? "}\n" : "\n"))
		return;
	/* A write to a closed standard error has no remedy. */
	(void)!write(STDERR_FILENO, line.data, line.len);
}

bool log_limit_ok(struct log_limit *limit, uint64_t *ret_suppressed)
{
	uint64_t now = nsec_monotonic();

	if (now < limit->next_ns) {
		limit->suppressed++;
		return false;
	}
	limit->next_ns = now + limit->interval_ns;
	*ret_suppressed = limit->suppressed;
	limit->suppressed = 0;
	return true;
}
