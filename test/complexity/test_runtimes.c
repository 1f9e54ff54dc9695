// SPDX-License-Identifier: Apache-2.0
/* Frames of language runtimes: agent/runtimes. */
#include "support/test.h"

#include <elf.h>
#include <string.h>

#include "complexity/count.h"
#include "complexity/growth.h"
#include "runtimes/excerpt.h"
#include "runtimes/hotspot_counters.h"
#include "runtimes/hotspot_line.h"
#include "runtimes/hotspot_name.h"
#include "runtimes/python_line.h"
#include "runtimes/runtimes.h"
#include "runtimes/v8_baseline.h"
#include "runtimes/v8_deopt.h"
#include "runtimes/v8_lines.h"
#include "runtimes/v8_places.h"
#include "runtimes/v8_ways.h"

/* Reads of @n parts, in another order than that of the excerpt. */
static uint64_t excerpt_parts(size_t n)
{
	const size_t part_bytes = sizeof(struct stack_dump_part) + 8;
	uint8_t *bytes = calloc(n, part_bytes);
	uint64_t before, word;
	struct excerpt e;

	assert_non_null(bytes);
	assert_true(n <= EXCERPT_PARTS_MAX);
	for (size_t i = 0; i < n; i++) {
		const struct stack_dump_part part = {.at = 4096 + 64 * (n - i), .n = 8};

		memcpy(bytes + i * part_bytes, &part, sizeof(part));
	}
	before = count_now();
	excerpt_init(&e, bytes, n * part_bytes, 0);
	for (size_t i = 1; i <= n; i++)
		assert_int_equal(memory_read(&e.memory, 4096 + 64 * (i * 7 % n + 1), &word, 8), 0);
	before = count_now() - before;
	free(bytes);
	return before;
}

/* The line of the last instruction of a function with @n lines, by all shapes of tables. */
static uint64_t python_lines(size_t n)
{
	static const uint8_t pairs[] = {2, 1}, location[] = {0xe8, 2}; /* no column, a line more */
	const int32_t last = 2 * ((int32_t)n - 1);
	uint8_t *table = malloc(2 * n);
	uint64_t before;

	assert_non_null(table);
	for (size_t i = 0; i < n; i++)
		memcpy(table + 2 * i, pairs, sizeof(pairs));
	before = count_now();
	assert_int_equal(python_line(PYTHON_LNOTAB, table, 2 * n, 1, last), n);
	assert_int_equal(python_line(PYTHON_LINETABLE, table, 2 * n, 1, last / 2), n + 1);
	for (size_t i = 0; i < n; i++)
		memcpy(table + 2 * i, location, sizeof(location));
	assert_int_equal(python_line(PYTHON_LOCATIONS, table, 2 * n, 1, last), n + 1);
	before = count_now() - before;
	free(table);
	return before;
}

/* The line of the last bytecode of a Java method with @n lines. */
static uint64_t java_lines(size_t n)
{
	uint8_t *table = malloc(n);
	uint64_t before;

	assert_non_null(table);
	memset(table, 1 << 3 | 1, n);
	before = count_now();
	assert_int_equal(hotspot_line(table, n, false, (uint32_t)n, NULL), n);
	before = count_now() - before;
	free(table);
	return before;
}

/* The lines of a JavaScript function with @n entries, each in another line. */
static uint64_t javascript_lines(size_t n)
{
	struct v8_place *places = calloc(V8_PLACES_MAX, sizeof(*places));
	uint32_t *ends = calloc(n + 1, sizeof(*ends));
	uint8_t *table = malloc(2 * n);
	const struct v8_lines lines = {.first = 1, .ends = ends, .n = n + 1};
	uint64_t before;

	assert_non_null(places);
	assert_non_null(ends);
	assert_non_null(table);
	for (size_t i = 0; i < n; i++)
		memcpy(table + 2 * i, "\x02\x04", 2);
	for (uint32_t i = 0; i <= n; i++)
		ends[i] = i;
	before = count_now();
	assert_int_equal(v8_places_parse(table, 2 * n, 0, 53, &lines, places), n);
	before = count_now() - before;
	free(table);
	free(ends);
	free(places);
	return before;
}

/* The last of @n bytecodes of baseline code. */
static uint64_t javascript_baseline(size_t n)
{
	static const uint8_t sizes[] = {0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
	uint8_t *table = malloc(n + 1), *bytecode = malloc(n);
	uint64_t before;

	assert_non_null(table);
	assert_non_null(bytecode);
	memset(table, 1, n + 1);
	memset(bytecode, 4, n);
	before = count_now();
	assert_int_equal(v8_baseline_offset(table, n + 1, bytecode, n, sizes, 5, n), n - 1);
	before = count_now() - before;
	free(bytecode);
	free(table);
	return before;
}

/* A translation that repeats every other one of @n values of an earlier one, each after a value of
 * its own, and then has a frame. */
static uint64_t javascript_frames(size_t n)
{
	/* a value without operands, and a repeated operation */
	static const uint8_t begin[] = {14, 0, 2, 2}, value[] = {12, 45}, frame[] = {1, 0, 0, 0};
	const uint32_t second = (uint32_t)(sizeof(begin) + n);
	/* its beginning, with the distance to the earlier one */
	const uint8_t again[] = {14, second | 0x80, second >> 7 | 0x80, second >> 14, 2, 2};
	const size_t bytes = second + sizeof(again) + n / 2 * sizeof(value) + sizeof(frame);
	uint8_t *translations = malloc(bytes), *at = translations;
	struct v8_deopt_frames frames;
	uint64_t before;

	assert_non_null(translations);
	at = (uint8_t *)mempcpy(at, begin, sizeof(begin));
	memset(at, value[0], n);
	at = (uint8_t *)mempcpy(at + n, again, sizeof(again));
	for (size_t i = 0; i < n / 2; i++)
		at = (uint8_t *)mempcpy(at, value, sizeof(value));
	memcpy(at, frame, sizeof(frame));
	before = count_now();
	assert_int_equal(v8_deopt_parse(V8_DEOPT_OF_12, translations, bytes, second, &frames), 0);
	before = count_now() - before;
	free(translations);
	return before;
}

/* The ways to the last of @n instructions, of jumps to the first. */
static uint64_t javascript_ways(size_t n)
{
	uint8_t *code = malloc(2 * n);
	struct v8_ways ways;
	uint64_t before;

	assert_non_null(code);
	for (size_t i = 0; i < n; i++)
		memcpy(code + 2 * i, "\x74\x80", 2);
	before = count_now();
	assert_true(v8_ways_find(EM_X86_64, code, 2 * n, (uint32_t)(2 * n - 2),
				 (uint32_t)(2 * n - 2), &ways));
	before = count_now() - before;
	free(code);
	return before;
}

/* Counters without names, and none that is sought. */
static uint64_t java_counters(size_t n)
{
	const uint32_t first = 32, number = (uint32_t)n;
	const uint32_t entry[] = {24, 20, 0, 'J', 0, 0}; /* bytes, name, length, type, data */
	uint8_t *bytes = calloc(1, first + n * sizeof(entry));
	uint64_t before;
	size_t at;

	assert_non_null(bytes);
	memcpy(bytes, "\xca\xfe\xc0\xc0\1\2", 6);
	memcpy(bytes + 24, &first, 4);
	memcpy(bytes + 28, &number, 4);
	for (size_t i = 0; i < n; i++)
		memcpy(bytes + first + i * sizeof(entry), entry, sizeof(entry));
	before = count_now();
	assert_false(hotspot_counters_find(bytes, first + n * sizeof(entry), "a", &at));
	before = count_now() - before;
	free(bytes);
	return before;
}

/* A Java method: classes of addresses and operators, and a parameter in packages of packages. */
static uint64_t java_names(size_t n)
{
	char *class = calloc(2, n + 16), *signature = calloc(2, n + 16), name[RUNTIMES_NAME_MAX];
	uint64_t before;

	assert_true(class && signature);
	for (size_t i = 0; i < n; i += 4) {
		memcpy(class + i, i % 8 ? "$plu" : "0x/+", 4);
		memcpy(signature + i, i ? "[[L/" : "([[[", 4);
	}
	before = count_now();
	hotspot_name(class, class, signature, "a.scala", name, sizeof(name));
	hotspot_file(class, class, name, sizeof(name));
	memset(class, '/', n);
	memcpy(class, "+0x", 3);
	hotspot_file(class, class, name, sizeof(name));
	before = count_now() - before;
	free(class);
	free(signature);
	return before;
}

static const struct growth rows[] = {
	{"excerpt: many parts", excerpt_parts, 64, GROWS},
	{"python_line: many lines", python_lines, 4096, GROWS},
	{"hotspot_counters: no names", java_counters, 1024, GROWS},
	{"hotspot_name: addresses and packages", java_names, 8192, GROWS},
	{"hotspot_line: many lines", java_lines, 4096, GROWS},
	{"v8_places: many lines", javascript_lines, 2048, GROWS},
	{"v8_baseline: many bytecodes", javascript_baseline, 4096, GROWS},
	{"v8_deopt: many operations", javascript_frames, 4096, GROWS},
	{"v8_ways: many jumps", javascript_ways, 4096, GROWS},
};

int main(void)
{
	return growth_main(rows, array_size(rows));
}
