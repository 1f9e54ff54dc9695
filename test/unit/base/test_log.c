// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/nsec.h"

#define LINE_MAX_BYTES 8192

/* Captures log_write()'s output; standard error is a file in memory meanwhile. */
static void capture_at(enum log_level level, enum log_format format, const char *msg,
		       const struct log_field *fields, char ret[LINE_MAX_BYTES])
{
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	int memory = memfd_create("log", MFD_CLOEXEC);
	ssize_t n;

	dup2(memory, STDERR_FILENO);
	log_set(LOG_INFO, format);
	log_write(level, msg, fields);
	log_set(LOG_INFO, LOG_FORMAT_LOGFMT);
	dup2(saved, STDERR_FILENO);
	close(saved);
	n = pread(memory, ret, LINE_MAX_BYTES - 1, 0);
	close(memory);
	assert_true(n >= 0);
	ret[n] = '\0';
}

static void capture(enum log_format format, const char *msg, const struct log_field *fields,
		    char ret[LINE_MAX_BYTES])
{
	capture_at(LOG_WARN, format, msg, fields, ret);
}

struct value_row {
	const char *name, *value, *logfmt, *json; /* json: the values after a JSON reader */
};

static const struct value_row value_rows[] = {
	{"plain", "web-0", "web-0", "web-0"},
	{"path", "/proc/1/maps", "/proc/1/maps", "/proc/1/maps"},
	{"empty", "", "\"\"", ""},
	{"blank", "a b", "\"a b\"", "a b"},
	{"equals", "a=b", "\"a=b\"", "a=b"},
	{"quote", "a\"b", "\"a\\\"b\"", "a\"b"},
	{"backslash", "a\\b", "\"a\\\\b\"", "a\\b"},
	{"newline", "a\nlevel=error", "\"a\\u000alevel=error\"", "a\nlevel=error"},
	{"terminal escape", "\x1b[2J", "\"\\u001b[2J\"", "\x1b[2J"},
	{"delete", "\x7f", "\"\\u007f\"", "\x7f"},
	{"eight-bit terminal escape", "\xc2\x9b[2J", "\"\\u009b[2J\"", "\xc2\x9b[2J"},
	{"one past those", "\xc2\xa0", "\xc2\xa0", "\xc2\xa0"},
	{"right-to-left override",
	 "\xe2\x80\xae"
	 "fdp",
	 "\"\\u202efdp\"",
	 "\xe2\x80\xae"
	 "fdp"},
	{"cut short", "\xc2", "?", "?"},
	{"UTF-8", "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
	{"not UTF-8", "a\xff", "a?", "a?"},
};

static void test_values(void **state)
{
	char line[LINE_MAX_BYTES], want[LINE_MAX_BYTES];

	(void)state;
	for (size_t i = 0; i < array_size(value_rows); i++) {
		const struct value_row *row = &value_rows[i];
		const struct log_field fields[] = {log_str("pod", row->value), log_end};
		json_t *json;

		row_begin(row->name);
		capture(LOG_FORMAT_LOGFMT, "seen", fields, line);
		snprintf(want, sizeof(want), " level=warn msg=seen pod=%s\n", row->logfmt);
		assert_non_null(strchr(line, ' '));
		assert_string_equal(strchr(line, ' '), want);

		capture(LOG_FORMAT_JSON, "seen", fields, line);
		json = json_loads(line, 0, NULL);
		assert_non_null(json);
		assert_string_equal(json_string_value(json_object_get(json, "pod")), row->json);
		json_decref(json);
	}
}

static void test_kinds(void **state)
{
	const struct log_field fields[] = {log_int("i", INT64_MIN), log_uint("u", UINT64_MAX),
					   log_err(-ENOENT), log_str("none", NULL), log_end};
	char line[LINE_MAX_BYTES];

	(void)state;
	capture(LOG_FORMAT_LOGFMT, "a message", fields, line);
	assert_non_null(strstr(line, " msg=\"a message\" i=-9223372036854775808 "
				     "u=18446744073709551615 err=\"No such file or directory\" "
				     "none=\"\"\n"));
	/* ts=2026-01-02T03:04:05.678Z */
	assert_memory_equal(line, "ts=20", 5);
	assert_memory_equal(line + 22, ".", 1);
	assert_memory_equal(line + 26, "Z ", 2);
}

/* An oversized field is dropped, the line stays whole and the next field may still fit. */
static void test_long(void **state)
{
	static const enum log_format formats[] = {LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON};
	char value[LINE_MAX_BYTES / 2], line[LINE_MAX_BYTES];

	(void)state;
	memset(value, 'x', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	for (size_t i = 0; i < array_size(formats); i++) {
		const struct log_field fields[] = {log_str("long", value), log_str("short", "s"),
						   log_end};

		capture(formats[i], "m", fields, line);
		assert_null(strstr(line, "xxx"));
		assert_null(strstr(line, "long"));
		assert_non_null(strstr(line, "short"));
		assert_int_equal(line[strlen(line) - 1], '\n');
		if (formats[i] == LOG_FORMAT_JSON) {
			json_t *json = json_loads(line, 0, NULL);

			assert_non_null(json);
			json_decref(json);
		}
	}
}

/* At any length, a line is a single write, and a pipe takes the write whole. */
static void test_ceiling(void **state)
{
	char value[LINE_MAX_BYTES / 2], line[LINE_MAX_BYTES];
	size_t longest = 0, n_with = 0;

	(void)state;
	for (size_t n = 3850; n < 4050; n++) {
		const struct log_field fields[] = {log_str("v", value), log_end};

		memset(value, 'x', n);
		value[n] = '\0';
		capture(LOG_FORMAT_JSON, "m", fields, line);
		assert_memory_equal(line + strlen(line) - 2, "}\n", 2);
		if (strlen(line) > longest)
			longest = strlen(line);
		n_with += strstr(line, "xxx") != NULL;
	}
	assert_int_equal(longest, 4002); /* LOG_LINE_MAX and the closing */
	assert_in_range(n_with, 1, 199);
}

static void test_level(void **state)
{
	const struct log_field none[] = {log_end};
	char line[LINE_MAX_BYTES];

	(void)state;
	capture_at(LOG_INFO, LOG_FORMAT_LOGFMT, "text", none, line);
	assert_non_null(strstr(line, "text"));
	capture_at(LOG_DEBUG, LOG_FORMAT_LOGFMT, "text", none, line);
	assert_string_equal(line, "");
}

static void test_limit(void **state)
{
	struct log_limit limit = {.interval_ns = 3600 * NSEC_PER_SEC};
	uint64_t suppressed = 42;

	(void)state;
	assert_true(log_limit_ok(&limit, &suppressed));
	assert_int_equal(suppressed, 0);
	for (int i = 0; i < 5; i++)
		assert_false(log_limit_ok(&limit, &suppressed));
	limit.next_ns = 0; /* an hour later */
	assert_true(log_limit_ok(&limit, &suppressed));
	assert_int_equal(suppressed, 5);
	assert_int_equal(limit.suppressed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values), cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_long),   cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_level),  cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
