/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_LOG_H
#define PODPROF_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Log lines on stderr, as logfmt or JSON:
 *
 *	log_warn("kubelet unreachable, keeping last pods", log_err(r), log_int("age_s", age));
 *
 * The message says what happens next. Values are escaped, because text from processes may contain
 * anything. Modules return errors and count, but do not log. Log lines come from agent.c, the
 * loop's callbacks and the commands.
 */

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVEL_MAX };
enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON, LOG_FORMAT_MAX };

struct log_field {
	enum { LOG_END, LOG_STR, LOG_INT, LOG_UINT, LOG_ERRNO } kind;
	const char *key;
	union {
		const char *str;
		int64_t i;
		uint64_t u;
	} value;
};

#define log_str(k, v)  ((struct log_field){LOG_STR, (k), {.str = (v)}})
#define log_int(k, v)  ((struct log_field){LOG_INT, (k), {.i = (v)}})
#define log_uint(k, v) ((struct log_field){LOG_UINT, (k), {.u = (v)}})
/* A negative errno, as "err=\"No such file or directory\"". */
#define log_err(r)     ((struct log_field){LOG_ERRNO, "err", {.i = (r)}})
#define log_end	       ((struct log_field){LOG_END, NULL, {.i = 0}})

#define log_at(level, msg, ...) log_write((level), (msg), (const struct log_field[]){__VA_ARGS__})
#define log_debug(msg, ...)	log_at(LOG_DEBUG, msg, ##__VA_ARGS__, log_end)
#define log_info(msg, ...)	log_at(LOG_INFO, msg, ##__VA_ARGS__, log_end)
#define log_warn(msg, ...)	log_at(LOG_WARN, msg, ##__VA_ARGS__, log_end)
#define log_error(msg, ...)	log_at(LOG_ERROR, msg, ##__VA_ARGS__, log_end)

void log_set(enum log_level min_level, enum log_format format);
/* @fields ends with log_end. */
void log_write(enum log_level level, const char *msg, const struct log_field *fields);

/**
 * struct log_limit - the rate limit of a log line with an outside cause
 * @interval_ns: minimum time between two lines
 * @next_ns:     time of the next permitted line (monotonic)
 * @suppressed:  lines suppressed since the last line; logging "suppressed" resets the count
 */
struct log_limit {
	uint64_t interval_ns;
	uint64_t next_ns;
	uint64_t suppressed;
};

/* Whether a line is permitted now; then *@ret_suppressed is the number of lines suppressed since
 * the last. */
bool log_limit_ok(struct log_limit *limit, uint64_t *ret_suppressed);

#endif
