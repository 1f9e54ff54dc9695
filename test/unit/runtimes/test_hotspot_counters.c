// SPDX-License-Identifier: Apache-2.0
/* The performance counters of HotSpot. Each row changes bytes of an area with three entries: a
 * text, an array, and a counter. */
#include "support/test.h"

#include <string.h>

#include "runtimes/hotspot_counters.h"

#define NAME   HOTSPOT_COUNTERS_SAFEPOINTS
#define HEADER 32
#define ENTRY  48
#define TEXT   HEADER
#define ARRAY  (TEXT + ENTRY)
#define LAST   (ARRAY + ENTRY)
#define BYTES  (LAST + ENTRY)
#define FOUND  (LAST + 40)

static void put(uint8_t *bytes, size_t at, uint32_t word)
{
	memcpy(bytes + at, &word, sizeof(word));
}

static void put_entry(uint8_t *bytes, size_t at, char type, uint32_t length, const char *name)
{
	put(bytes, at, ENTRY);
	put(bytes, at + 4, 20);
	put(bytes, at + 8, length);
	bytes[at + 12] = (uint8_t)type;
	put(bytes, at + 16, 40);
	memcpy(bytes + at + 20, name, strlen(name) + 1);
}

static void build(uint8_t bytes[BYTES])
{
	memset(bytes, 0, BYTES);
	memcpy(bytes, "\xca\xfe\xc0\xc0\x01\x02\x00\x01", 8);
	put(bytes, 24, HEADER);
	put(bytes, 28, 3);
	put_entry(bytes, TEXT, 'B', 8, NAME);
	put_entry(bytes, ARRAY, 'J', 1, NAME);
	put_entry(bytes, LAST, 'J', 0, NAME);
}

static const struct {
	const char *name;
	size_t at, n;
	uint32_t word;
	size_t want; /* 0: not found */
} rows[] = {
	{"as it is", 28, BYTES, 3, FOUND},
	{"no header", 28, HEADER - 1, 3, 0},
	{"another number", 0, BYTES, 0xc0c0fecb, 0},
	{"another byte order", 4, BYTES, 0x01000200, 0},
	{"another version", 4, BYTES, 0x01000301, 0},
	{"no entries", 28, BYTES, 0, 0},
	{"one entry less", 28, BYTES, 2, 0},
	{"entries beyond the end", 24, BYTES, BYTES + 1, 0},
	{"more entries than there are", 28, BYTES, 4000000000u, FOUND},
	{"the same, none of them ours", LAST + 20, BYTES, 0x2e6e7573 + 1, 0},
	{"an entry of no bytes", TEXT, BYTES, 0, 0},
	{"beyond the end", LAST, BYTES, ENTRY + 1, 0},
	{"a name beyond the entry", LAST + 4, BYTES, ENTRY, 0},
	{"a name without an end", LAST + 4, BYTES, ENTRY - 7, 0},
	{"data that end with the entry", LAST + 16, BYTES, 40, FOUND},
	{"data beyond it", LAST + 16, BYTES, 48, 0},
	{"not at a multiple of 8", LAST + 16, BYTES, 36, 0},
	{"far beyond it", LAST + 16, BYTES, 0xfffffff8, 0},
	{"cut by one byte", 28, BYTES - 1, 3, 0},
};

static void test_find(void **state)
{
	uint8_t bytes[BYTES];

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		size_t at = 0;

		print_message("row: %s\n", rows[i].name);
		build(bytes);
		put(bytes, rows[i].at, rows[i].word);
		assert_int_equal(hotspot_counters_find(bytes, rows[i].n, NAME, &at),
				 rows[i].want != 0);
		assert_int_equal(at, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_find)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
