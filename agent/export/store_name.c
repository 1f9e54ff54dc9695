// SPDX-License-Identifier: Apache-2.0
#include "export/store_name.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/strview.h"

#define FILE_SUFFIX ".pb.gz"
#define HASH_DIGITS 8

/* FNV-1a with 64 bits: offset basis and prime. */
#define FNV_START 14695981039346656037ull
#define FNV_PRIME 1099511628211ull

/* Includes the NUL, so "a", "bc" and "ab", "c" differ. */
static uint64_t fnv(uint64_t hash, const char *s)
{
	do {
		hash ^= (unsigned char)*s;
		hash *= FNV_PRIME;
	} while (*s++);
	return hash;
}

/* Not hidden, not "..", and nothing a shell or a terminal would have an opinion of. */
static bool safe_char(char c, bool first)
{
	return isascii(c) &&
	       (isalnum((unsigned char)c) || c == '_' || c == '-' || (c == '.' && !first));
}

/* ---- folders */

/* Append a part behind @len characters; returns the new length. */
static size_t add_part(char *name, size_t len, const char *part)
{
	size_t start;

	if (len)
		name[len++] = '_';
	start = len;
	for (; *part && len - start < STORE_NAME_PART_MAX; part++, len++) {
		name[len] = *part;
		if (!safe_char(*part, len == start))
			name[len] = '_';
	}
	return len;
}

void store_name_folder(const struct labels *labels, uint32_t attempt, char ret[STORE_NAME_MAX])
{
	static const char *const parts[] = {"namespace", "service_name", "pod", "container"};
	const char *last = "";
	uint64_t hash = FNV_START;
	size_t len = 0;

	for (size_t i = 0; i < array_size(parts); i++) {
		const char *value = labels_get(labels, parts[i]);

		if (!value || strcmp(value, last) == 0)
			continue;
		len = add_part(ret, len, value);
		last = value;
	}
	if (!len)
		len = add_part(ret, len, "unnamed");
	for (size_t i = 0; i < labels->n; i++)
		hash = fnv(fnv(hash, labels->items[i].name), labels->items[i].value);
	snprintf(ret + len, STORE_NAME_MAX - len, "-%08" PRIx32, (uint32_t)(hash >> 32) + attempt);
}

bool store_name_is_folder(const char *name)
{
	size_t n = strlen(name);

	if (n <= HASH_DIGITS + 1 || n >= STORE_NAME_MAX || name[n - HASH_DIGITS - 1] != '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!safe_char(name[i], i == 0))
			return false;
	return strspn(name + n - HASH_DIGITS, "0123456789abcdef") == HASH_DIGITS;
}

/* ---- files */

uint64_t store_name_duration(uint64_t duration_ns)
{
	if (duration_ns < NSEC_PER_SEC)
		return duration_ns / NSEC_PER_MSEC * NSEC_PER_MSEC;
	return (duration_ns / NSEC_PER_SEC + (duration_ns % NSEC_PER_SEC >= NSEC_PER_SEC / 2)) *
	       NSEC_PER_SEC;
}

void store_name_file(const struct store_name *name, char ret[STORE_NAME_MAX])
{
	time_t seconds = (time_t)(name->start_ns / NSEC_PER_SEC);
	uint64_t start_ms = name->start_ns / NSEC_PER_MSEC % 1000;
	uint64_t duration_ns = store_name_duration(name->duration_ns);
	bool whole = duration_ns % NSEC_PER_SEC == 0;
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &tm);
	snprintf(ret, STORE_NAME_MAX, "%s.%03" PRIu64 "Z_%" PRIu64 "%s_%s" FILE_SUFFIX, text,
		 start_ms, (uint64_t)(duration_ns / (whole ? NSEC_PER_SEC : NSEC_PER_MSEC)),
		 whole ? "s" : "ms", profile_kind_name(name->kind));
}

/* Exactly @n digits. */
static bool take_digits(struct strview *t, size_t n, uint64_t *ret)
{
	struct strview digits = {.p = t->p, .end = t->p + n};

	if (strview_len(t) < n || !strview_only_u64(digits, 10, ret))
		return false;
	t->p += n;
	return true;
}

static bool take_time(struct strview *t, uint64_t *ret_ns)
{
	uint64_t year, month, day, hour, minute, second, ms;
	struct tm tm = {0};
	time_t seconds;

	if (!take_digits(t, 4, &year) || !take_digits(t, 2, &month) || !take_digits(t, 2, &day) ||
	    !strview_char(t, 'T') || !take_digits(t, 2, &hour) || !take_digits(t, 2, &minute) ||
	    !take_digits(t, 2, &second) || !strview_char(t, '.') || !take_digits(t, 3, &ms) ||
	    !strview_char(t, 'Z'))
		return false;
	tm.tm_year = (int)year - 1900;
	tm.tm_mon = (int)month - 1;
	tm.tm_mday = (int)day;
	tm.tm_hour = (int)hour;
	tm.tm_min = (int)minute;
	tm.tm_sec = (int)second;
	seconds = timegm(&tm);
	if (seconds < 0)
		return false;
	return !__builtin_mul_overflow((uint64_t)seconds, NSEC_PER_SEC, ret_ns) &&
	       !__builtin_add_overflow(*ret_ns, ms * NSEC_PER_MSEC, ret_ns);
}

static bool take_duration(struct strview *t, uint64_t *ret_ns)
{
	uint64_t value;

	if (!strview_u64(t, 10, &value))
		return false;
	return !__builtin_mul_overflow(
		value, strview_prefix(t, "ms") ? NSEC_PER_MSEC : NSEC_PER_SEC, ret_ns);
}

static bool take_kind(struct strview *t, enum profile_kind *ret)
{
	for (int kind = 0; kind < PROFILE_KIND_MAX; kind++) {
		if (strview_is(t, profile_kind_name((enum profile_kind)kind))) {
			*ret = (enum profile_kind)kind;
			return true;
		}
	}
	return false;
}

bool store_name_parse(const char *file, struct store_name *ret)
{
	struct strview t = strview_of(file);
	char again[STORE_NAME_MAX];
	struct store_name name;

	if (!strview_suffix(&t, FILE_SUFFIX) || !take_time(&t, &name.start_ns) ||
	    !strview_char(&t, '_') || !take_duration(&t, &name.duration_ns))
		return false;
	if (!strview_prefix(&t, "s_") && !strview_prefix(&t, "_"))
		return false;
	if (!take_kind(&t, &name.kind))
		return false;
	/* refuses "61st of Brumaire", leading zeroes, a missing unit: the name must be in our own
	 * spelling */
	store_name_file(&name, again);
	if (strcmp(again, file) != 0)
		return false;
	*ret = name;
	return true;
}

uint64_t store_name_id(const char *folder, const char *file)
{
	uint64_t hash = fnv(fnv(FNV_START, folder), file);

	return hash ? hash : 1;
}
