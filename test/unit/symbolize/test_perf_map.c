// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/work_budget.h"
#include "support/allocfail.h"
#include "symbolize/codetable.h"
#include "symbolize/perf_map.h"

struct map {
	struct perf_map *m;
	uint64_t events[PERF_MAP_EVENT_MAX];
	int fd;
};

static void open_map(struct map *map)
{
	memset(map->events, 0, sizeof(map->events));
	map->fd = memfd_create("map", MFD_CLOEXEC);
	assert_true(map->fd >= 0);
	assert_int_equal(perf_map_new(map->events, &map->m), 0);
}

static void close_map(struct map *map)
{
	perf_map_free(map->m);
	close(map->fd);
}

static void append(const struct map *map, const char *text)
{
	const size_t n = strlen(text);

	assert_int_equal(lseek(map->fd, 0, SEEK_END) >= 0, 1);
	assert_int_equal(write(map->fd, text, n), n);
}

static int read_map(struct map *map)
{
	struct work_budget work;

	work_budget_init(&work, UINT64_MAX, UINT64_MAX / 2, NULL);
	return perf_map_read(map->m, map->fd, &work);
}

static void check(const struct map *map, uint64_t pc, const char *want)
{
	const char *name = perf_map_find(map->m, pc);

	if (want)
		assert_string_equal(name, want);
	else
		assert_null(name);
}

#define LOOKUPS_MAX 8

struct row {
	const char *name;
	const char *text;
	size_t n_invalid;
	struct {
		uint64_t pc;
		const char *want;
	} lookups[LOOKUPS_MAX]; /* up to a pc of 0 */
};

static const struct row rows[] = {
	{"one function",
	 "1000 10 f\n",
	 0,
	 {{0xfff, NULL}, {0x1000, "f"}, {0x100f, "f"}, {0x1010, NULL}}},
	{"0x, blanks in the name",
	 "0x1000 0x10 JS:*f /a b.js:1:2\n",
	 0,
	 {{0x1000, "JS:*f /a b.js:1:2"}}},
	{"in any order",
	 "3000 10 c\n1000 10 a\n2000 10 b\n",
	 0,
	 {{0x1000, "a"}, {0x2000, "b"}, {0x3000, "c"}}},
	{"neighbours", "1000 10 a\n1010 10 b\n", 0, {{0x100f, "a"}, {0x1010, "b"}}},
	{"the newest wins", "1000 10 old\n1000 10 new\n", 0, {{0x1000, "new"}, {0x100f, "new"}}},
	{"in the middle of an older one",
	 "1000 30 old\n1010 10 new\n",
	 0,
	 {{0x100f, "old"},
	  {0x1010, "new"},
	  {0x101f, "new"},
	  {0x1020, "old"},
	  {0x102f, "old"},
	  {0x1030, NULL}}},
	{"over several older ones",
	 "1000 10 a\n1010 10 b\n1020 10 c\n1008 20 new\n",
	 0,
	 {{0x1007, "a"}, {0x1008, "new"}, {0x1027, "new"}, {0x1028, "c"}}},
	{"over the end",
	 "1000 10 old\n100f 10 new\n",
	 0,
	 {{0x100e, "old"}, {0x100f, "new"}, {0x101e, "new"}}},
	{"three layers",
	 "1000 100 a\n1040 80 b\n1000 50 c\n",
	 0,
	 {{0x1000, "c"}, {0x104f, "c"}, {0x1050, "b"}, {0x10bf, "b"}, {0x10c0, "a"}}},
	{"the last line has no end yet",
	 "1000 10 f\n2000 10 g",
	 0,
	 {{0x1000, "f"}, {0x2000, NULL}}},
	{"no size", "1000 0 f\n", 1, {{0x1000, NULL}}},
	{"no name", "1000 10 \n1000 10\n", 2, {{0x1000, NULL}}},
	{"the largest size", "1000 ffffffff f\n", 0, {{0x100000ffe, "f"}, {0x100000fff, NULL}}},
	{"one byte more", "1000 100000000 f\n", 1, {{0x1000, NULL}}},
	{"the kernel's half", "ffffffff81000000 10 f\n", 1, {{0xffffffff81000000, NULL}}},
	{"its last user address", "7ffffffffffffffe 10 f\n", 0, {{0x7ffffffffffffffe, "f"}}},
	{"all numbers in base 16", "f 1000 g\nx\n\n-1 2 3\n", 3, {{0x100e, "g"}}},
	{"a number in front of none",
	 "1000 10 f\nzz\n2000 10 g\n",
	 1,
	 {{0x1000, "f"}, {0x2000, "g"}}},
	{"empty", "", 0, {{0x1000, NULL}}},
};

/* All lines at once, and byte by byte. */
static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows) * 2; i++) {
		const struct row *row = &rows[i / 2];
		struct map map;

		row_begin(row->name);
		open_map(&map);
		for (size_t k = 0; i % 2 && row->text[k]; k++) {
			append(&map, (char[]){row->text[k], '\0'});
			assert_int_equal(read_map(&map), 0);
		}
		if (!(i % 2))
			append(&map, row->text);
		assert_int_equal(read_map(&map), 0);
		for (size_t k = 0; k < LOOKUPS_MAX && row->lookups[k].pc; k++)
			check(&map, row->lookups[k].pc, row->lookups[k].want);
		assert_int_equal(map.events[PERF_MAP_REPLACED], 0);
		assert_int_equal(map.events[PERF_MAP_INVALID_LINE], row->n_invalid);
		close_map(&map);
	}
}

static void test_growth(void **state)
{
	struct map map;

	(void)state;
	open_map(&map);
	append(&map, "1000 10 a\n");
	assert_int_equal(read_map(&map), 0);
	append(&map, "2000 10 b\n1008 8 c\n");
	assert_int_equal(read_map(&map), 0);
	check(&map, 0x1007, "a");
	check(&map, 0x1008, "c");
	check(&map, 0x2000, "b");
	assert_int_equal(map.events[PERF_MAP_READ], 2);
	assert_int_equal(read_map(&map), 0);
	assert_int_equal(map.events[PERF_MAP_READ], 2);
	close_map(&map);
}

/* Truncated, and longer again than before when it is read. */
static void test_replaced(void **state)
{
	struct map map;

	(void)state;
	open_map(&map);
	append(&map, "1000 10 a\n");
	assert_int_equal(read_map(&map), 0);
	assert_int_equal(ftruncate(map.fd, 0), 0);
	append(&map, "3000 10 b\n4000 10 c\n");
	assert_int_equal(read_map(&map), 0);
	check(&map, 0x1000, NULL);
	check(&map, 0x3000, "b");
	check(&map, 0x4000, "c");
	assert_int_equal(ftruncate(map.fd, 0), 0);
	assert_int_equal(read_map(&map), 0);
	check(&map, 0x3000, NULL);
	assert_int_equal(map.events[PERF_MAP_REPLACED], 2);
	close_map(&map);
}

/* A line of the limit and of one byte more, whose rest is no line. */
static void test_long_lines(void **state)
{
	struct buf line = BUF_INIT(2 * PERF_MAP_LINE_MAX);
	struct map map;

	(void)state;
	for (size_t over = 0; over < 2; over++) {
		open_map(&map);
		buf_reset(&line);
		assert_int_equal(buf_puts(&line, "1000 10 "), 0);
		while (line.len < PERF_MAP_LINE_MAX - 1 + over)
			assert_int_equal(buf_puts(&line, "n"), 0);
		append(&map, line.data);
		assert_int_equal(read_map(&map), 0);
		append(&map, "\n2000 10 g\n");
		assert_int_equal(read_map(&map), 0);
		assert_int_equal(map.events[PERF_MAP_INVALID_LINE], over);
		check(&map, 0x2000, "g");
		if (over)
			check(&map, 0x1000, NULL);
		else
			assert_int_equal(strlen(perf_map_find(map.m, 0x1000)), CODE_TABLE_NAME_MAX);
		close_map(&map);
	}
	buf_deinit(&line);
}

/* A megabyte without a newline costs no memory, and 10 GB are not read. */
static void test_large_files(void **state)
{
	struct map map;

	(void)state;
	open_map(&map);
	append(&map, "1000 10 f\n");
	assert_int_equal(ftruncate(map.fd, 1 << 20), 0);
	append(&map, "\n2000 10 g\n");
	assert_int_equal(read_map(&map), 0);
	check(&map, 0x1000, "f");
	check(&map, 0x2000, "g");
	assert_int_equal(map.events[PERF_MAP_INVALID_LINE], 1);
	assert_int_equal(map.events[PERF_MAP_CUT], 0);
	assert_true(perf_map_bytes(map.m) < 8192);

	assert_int_equal(ftruncate(map.fd, 10000000000), 0);
	append(&map, "\n3000 10 h\n");
	assert_int_equal(read_map(&map), 0);
	check(&map, 0x1000, "f");
	check(&map, 0x3000, "h");
	assert_int_equal(map.events[PERF_MAP_CUT], 1);
	close_map(&map);
}

static void append_ranges(const struct map *map, size_t first, size_t n, const char *name)
{
	struct buf b = BUF_INIT(64u << 20);

	for (size_t i = first; i < first + n; i++)
		assert_int_equal(buf_printf(&b, "%zx 10 %s\n", (i + 1) * 0x10, name), 0);
	append(map, b.data);
	buf_deinit(&b);
}

/* Ranges up to the ceiling; replaced ones make room, others do not. */
static void test_full(void **state)
{
	struct map map;

	(void)state;
	open_map(&map);
	append_ranges(&map, 0, CODE_TABLE_RANGES_MAX, "f");
	assert_int_equal(read_map(&map), 0);
	assert_int_equal(map.events[PERF_MAP_FULL], 0);
	assert_int_equal(perf_map_n(map.m), CODE_TABLE_RANGES_MAX);
	append_ranges(&map, CODE_TABLE_RANGES_MAX, 1, "one_more");
	assert_int_equal(read_map(&map), 0);
	assert_int_equal(map.events[PERF_MAP_FULL], 1);
	check(&map, 0x10, "f");
	check(&map, (CODE_TABLE_RANGES_MAX + 1) * 0x10, NULL);
	close_map(&map);

	open_map(&map);
	for (size_t i = 0; i < 6; i++)
		append_ranges(&map, 0, CODE_TABLE_RANGES_MAX / 2, i < 5 ? "old" : "new");
	assert_int_equal(read_map(&map), 0);
	assert_int_equal(map.events[PERF_MAP_FULL], 0);
	assert_int_equal(perf_map_n(map.m), CODE_TABLE_RANGES_MAX / 2);
	check(&map, 0x10, "new");
	check(&map, CODE_TABLE_RANGES_MAX / 2 * 0x10, "new");
	close_map(&map);
}

/* Against the plain definition of "the newest wins". */
static void test_random(void **state)
{
	enum { SPACE = 512, LINES = 200, ROUNDS = 20 };
	unsigned int seed = 1;
	struct map map;

	(void)state;
	for (size_t round = 0; round < ROUNDS; round++) {
		unsigned int owner[SPACE + 64] = {0};

		open_map(&map);
		for (unsigned int i = 1; i <= LINES; i++) {
			unsigned int start, n;
			char line[64];

			seed = seed * 1103515245u + 12345u;
			start = (seed >> 16) % SPACE;
			n = 1 + (seed >> 8) % 63;
			snprintf(line, sizeof(line), "%x %x f%u\n", 0x1000 + start, n, i);
			append(&map, line);
			for (unsigned int k = start; k < start + n; k++)
				owner[k] = i;
			if (i % 37 == 0)
				assert_int_equal(read_map(&map), 0);
		}
		assert_int_equal(read_map(&map), 0);
		for (size_t k = 0; k < array_size(owner); k++) {
			char want[16];

			snprintf(want, sizeof(want), "f%u", owner[k]);
			check(&map, 0x1000 + k, owner[k] ? want : NULL);
		}
		close_map(&map);
	}
}

static int read_once(void *ctx)
{
	struct map map = {.fd = ((struct map *)ctx)->fd};
	int r = perf_map_new(map.events, &map.m);

	if (!r)
		r = read_map(&map);
	if (!r)
		check(&map, 0x1008, "b");
	perf_map_free(map.m);
	return r;
}

static void test_allocation_failures(void **state)
{
	struct map map;

	(void)state;
	open_map(&map);
	append(&map, "1000 10 a\n1008 8 b\n");
	allocfail_each(read_once, &map);
	close_map(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	    cmocka_unit_test(test_growth),
		cmocka_unit_test(test_replaced),    cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_large_files), cmocka_unit_test(test_full),
		cmocka_unit_test(test_random),	    cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
