// SPDX-License-Identifier: Apache-2.0
/* DWARF and packages of split DWARF: agent/symbolize/dwarf*. */
#include "support/test.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "complexity/count.h"
#include "complexity/growth.h"
#include "elf/elffile.h"
#include "support/packagemake.h"
#include "symbolize/dwarfcode.h"
#include "symbolize/dwarfpackage.h"
#include "symbolize/dwarfwire.h"
#include "symbolize/linecache.h"
#include "symbolize/symbolizer.h"

/* Each number is little-endian; forms are those of DWARF 4. */
static void put_number(struct buf *to, uint64_t number, size_t n)
{
	assert_int_equal(buf_append(to, &number, n), 0);
}

static void put_leb(struct buf *to, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		put_number(to, (number & 0x7f) | 0x80, 1);
	put_number(to, number, 1);
}

#define DWARF_CODE 0x1000u

struct dwarf {
	struct buf abbrevs; /* empty: dwarf_abbrev */
	struct buf info;
	struct buf lines;
	struct buf ranges;
};

/* Units with addresses and lines (1), functions (2), blocks without addresses (3), inlined
 * functions with the addresses of all (4); with a list of ranges: functions (5), inlined functions
 * (6), units with lines (7). */
static const uint8_t dwarf_abbrev[] = {
	1,    0x11, 1,	  0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0,    0, 2,    0x2e, 1,	 0x11,
	0x01, 0x12, 0x07, 0,	0,    3,    0x0b, 1,	0,    0,    4, 0x1d, 1,	   0x11, 0x01,
	0x12, 0x07, 0,	  0,	5,    0x2e, 0,	  0x55, 0x17, 0,    0, 6,    0x1d, 0,	 0x55,
	0x17, 0,    0,	  7,	0x11, 1,    0x55, 0x17, 0x10, 0x17, 0, 0,    0,
};

static void put_code(struct buf *to, uint8_t abbrev, uint64_t vaddr, uint64_t size)
{
	put_number(to, abbrev, 1);
	put_number(to, vaddr, 8);
	put_number(to, size, 8);
}

static void put_header(struct buf *to, size_t *ret_length)
{
	*ret_length = to->len;
	put_number(to, 0, 4);
	put_number(to, 4, 2);
	put_number(to, 0, 4);
	put_number(to, 8, 1);
}

/* The header and the first entry of a unit; *@ret_length is for end_unit(). */
static void begin_unit(struct buf *to, uint64_t vaddr, uint64_t size, size_t *ret_length)
{
	put_header(to, ret_length);
	put_code(to, 1, vaddr, size);
	put_number(to, 0, 4);
}

static void end_unit(struct buf *to, size_t at)
{
	uint32_t length;

	put_number(to, 0, 1);
	length = (uint32_t)(to->len - at - sizeof(length));
	memcpy(to->data + at, &length, sizeof(length));
}

/* Work of an address in the code, in the last unit. */
static uint64_t run_dwarf(struct dwarf *d, uint64_t vaddr)
{
	static struct symbol_line lines[SYMBOL_LINES_MAX];
	struct cursor sections[DWARFSECTION_MAX] = {{.start = NULL}};
	struct dwarfsections *opened;
	struct dwarfcode *code;
	uint64_t before;

	cursor_init(&sections[DWARFSECTION_INFO], d->info.data, d->info.len);
	if (d->abbrevs.len)
		cursor_init(&sections[DWARFSECTION_ABBREV], d->abbrevs.data, d->abbrevs.len);
	else
		cursor_init(&sections[DWARFSECTION_ABBREV], dwarf_abbrev, sizeof(dwarf_abbrev));
	cursor_init(&sections[DWARFSECTION_LINE], d->lines.data, d->lines.len);
	cursor_init(&sections[DWARFSECTION_RANGES], d->ranges.data, d->ranges.len);
	assert_int_equal(dwarfsections_open_memory(sections, &opened), 0);
	before = count_now();
	assert_int_equal(dwarfcode_open_sections(opened, &code), 0);
	dwarfcode_renew(code);
	/* for the second address of a function, all functions inlined there are read */
	for (size_t i = 0; i < 3; i++)
		assert_true(dwarfcode_find(code, vaddr, lines) > 0);
	before = count_now() - before;
	dwarfcode_free(code);
	buf_deinit(&d->abbrevs);
	buf_deinit(&d->info);
	buf_deinit(&d->lines);
	buf_deinit(&d->ranges);
	return before;
}

static struct dwarf dwarf_new(void)
{
	return (struct dwarf){.abbrevs = BUF_INIT(64u << 20),
			      .info = BUF_INIT(64u << 20),
			      .lines = BUF_INIT(64u << 20),
			      .ranges = BUF_INIT(64u << 20)};
}

/* In the reverse order. */
static uint64_t dwarf_units(size_t n)
{
	struct dwarf d = dwarf_new();
	size_t at;

	for (size_t i = n; i-- > 0;) {
		begin_unit(&d.info, DWARF_CODE + 16 * i, 16, &at);
		put_code(&d.info, 2, DWARF_CODE + 16 * i, 16);
		put_number(&d.info, 0, 1);
		end_unit(&d.info, at);
	}
	return run_dwarf(&d, DWARF_CODE);
}

/* @n units share a table of @n declarations, of which none is theirs. */
static uint64_t dwarf_undeclared(size_t n)
{
	const uint32_t table = sizeof(dwarf_abbrev);
	struct dwarf d = dwarf_new();
	size_t at;

	for (size_t i = 0; i < table; i++)
		put_number(&d.abbrevs, dwarf_abbrev[i], 1);
	for (size_t i = 0; i < n; i++) {
		put_number(&d.abbrevs, 9, 1);
		put_number(&d.abbrevs, 0x34, 1);
		put_number(&d.abbrevs, 0, 3);
	}
	put_number(&d.abbrevs, 0, 1);
	begin_unit(&d.info, DWARF_CODE, 16, &at);
	put_code(&d.info, 2, DWARF_CODE, 16);
	put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	for (size_t i = 0; i < n; i++) {
		put_header(&d.info, &at);
		memcpy(d.info.data + at + 6, &table, sizeof(table));
		put_number(&d.info, 8, 1);
		end_unit(&d.info, at);
	}
	return run_dwarf(&d, DWARF_CODE);
}

/* Entries inside of each other, without siblings to jump to: @abbrev, or functions around them. */
static uint64_t run_nested(size_t n, uint8_t abbrev)
{
	struct dwarf d = dwarf_new();
	size_t at;

	begin_unit(&d.info, DWARF_CODE, n + 16, &at);
	put_code(&d.info, 2, DWARF_CODE, n + 16);
	for (size_t i = 0; i < n; i++)
		if (abbrev == 3)
			put_number(&d.info, abbrev, 1);
		else
			put_code(&d.info, abbrev, DWARF_CODE + i, n + 16 - i);
	for (size_t i = 0; i <= n; i++)
		put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	return run_dwarf(&d, DWARF_CODE + n);
}

static uint64_t dwarf_blocks(size_t n)
{
	return run_nested(n, 3);
}

static uint64_t dwarf_inlined(size_t n)
{
	return run_nested(n, 4);
}

/* Functions inside of functions, which are looked for in a second pass. */
static uint64_t dwarf_functions(size_t n)
{
	struct dwarf d = dwarf_new();
	size_t at;

	begin_unit(&d.info, DWARF_CODE, 2 * n + 16, &at);
	put_code(&d.info, 2, DWARF_CODE, 1);
	for (size_t i = 0; i < n; i++)
		put_code(&d.info, 2, DWARF_CODE + 1 + i, 1);
	for (size_t i = 0; i <= n; i++)
		put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	return run_dwarf(&d, DWARF_CODE + n);
}

/* A list of @n ranges elsewhere. */
static void put_ranges(struct buf *to, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		put_number(to, 16 * DWARF_CODE + 4 * i, 8);
		put_number(to, 16 * DWARF_CODE + 4 * i + 2, 8);
	}
	put_number(to, 0, 8);
	put_number(to, 0, 8);
}

/* @n entries share a list of @n ranges: functions, or functions inlined into one. */
static uint64_t run_sharing(size_t n, uint8_t abbrev)
{
	struct dwarf d = dwarf_new();
	size_t at;

	put_ranges(&d.ranges, n);
	begin_unit(&d.info, DWARF_CODE, 16, &at);
	put_code(&d.info, 2, DWARF_CODE, 16);
	for (size_t i = 0; i < n; i++) {
		if (!i && abbrev == 5)
			put_number(&d.info, 0, 1);
		put_number(&d.info, abbrev, 1);
		put_number(&d.info, 0, 4);
	}
	if (abbrev != 5)
		put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	return run_dwarf(&d, DWARF_CODE);
}

static uint64_t dwarf_sharing_functions(size_t n)
{
	return run_sharing(n, 5);
}

static uint64_t dwarf_sharing_inlined(size_t n)
{
	return run_sharing(n, 6);
}

static uint64_t dwarf_sharing_units(size_t n)
{
	struct dwarf d = dwarf_new();
	size_t at;

	put_ranges(&d.ranges, n);
	begin_unit(&d.info, DWARF_CODE, 16, &at);
	put_code(&d.info, 2, DWARF_CODE, 16);
	put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	for (size_t i = 0; i < n; i++) {
		put_header(&d.info, &at);
		put_number(&d.info, 7, 1);
		put_number(&d.info, 0, 8);
		end_unit(&d.info, at);
	}
	return run_dwarf(&d, DWARF_CODE);
}

/* Sequences that begin before the one before, and overlap it. */
static uint64_t dwarf_sequences(size_t n)
{
	static const uint8_t header[] = {1, 1, 1, 0xfb, 14, 13, 0,   1, 1, 1, 1, 0, 0,
					 0, 1, 0, 0,	1,  0,	'a', 0, 0, 0, 0, 0};
	struct dwarf d = dwarf_new();
	size_t at;

	begin_unit(&d.info, DWARF_CODE, 8 * n, &at);
	put_code(&d.info, 2, DWARF_CODE, 8 * n);
	put_number(&d.info, 0, 1);
	end_unit(&d.info, at);
	put_number(&d.lines, 0, 4);
	put_number(&d.lines, 4, 2);
	put_number(&d.lines, sizeof(header), 4);
	assert_int_equal(buf_append(&d.lines, header, sizeof(header)), 0);
	for (size_t i = n; i-- > 0;) {
		put_number(&d.lines, 0x20900, 3);
		put_number(&d.lines, DWARF_CODE + 4 * i, 8);
		put_number(&d.lines, 0x21, 1);
		put_number(&d.lines, 2, 1);
		put_leb(&d.lines, 2 * n);
		put_number(&d.lines, 0x010100, 3);
	}
	at = d.lines.len - 4;
	memcpy(d.lines.data, &(uint32_t){(uint32_t)at}, 4);
	return run_dwarf(&d, DWARF_CODE + 4 * n);
}

/* ---------------------------------------------------------------- packages of split DWARF */

/* Offsets of @step bytes from each other, the last one first; a string ends every @length bytes. */
static uint64_t run_package(size_t n, size_t step, size_t length)
{
	uint32_t *offs = calloc(n, sizeof(*offs));
	char *strings = malloc(n * step);
	struct dwarfpackage *package;
	struct packagemake p;
	struct elffile *file;
	uint64_t before;
	size_t n_bytes;
	int fd;

	assert_true(offs && strings);
	memset(strings, 'x', n * step);
	for (size_t i = 0; i < n; i++)
		offs[i] = (uint32_t)((n - 1 - i) * step);
	for (size_t i = length; i < n * step; i += length)
		strings[i] = '\0';
	packagemake_init(&p, 2, offs, n, strings, n * step);
	packagemake_finish(&p);
	assert_int_equal(elffile_open_memory(p.elf.data, p.elf.n, &file), 0);
	assert_int_equal(dwarfpackage_open(file, &package), 0);
	before = count_now();
	assert_int_equal(dwarfpackage_unit(package, PACKAGEMAKE_ID, UINT32_MAX, &fd, &n_bytes), 0);
	before = count_now() - before;
	close(fd);
	dwarfpackage_free(package);
	packagemake_deinit(&p);
	free(offs);
	free(strings);
	return before;
}

/* Each string ends the one before. */
static uint64_t package_tails(size_t n)
{
	return run_package(n, 1, SIZE_MAX / 2);
}

/* No two strings in one read. */
static uint64_t package_far(size_t n)
{
	return run_package(n, 3000, 3000);
}

/* Each is cut, and read again. */
static uint64_t package_long(size_t n)
{
	return run_package(n, 40000, SIZE_MAX / 2);
}

/* ---------------------------------------------------------------- answers of the reading process
 */

/* @n strings of @length bytes, and as many addresses with two lines each. */
static uint64_t run_wire(size_t n, size_t length)
{
	struct symbol_line lines[SYMBOL_LINES_MAX];
	struct buf answer = BUF_INIT(64u << 20);
	struct dwarfwire_reader reader;
	uint64_t before;
	size_t n_lines;

	put_number(&answer, n + 1, 4);
	put_number(&answer, 0, 2);
	for (size_t i = 0; i < n; i++) {
		put_number(&answer, length, 2);
		for (size_t k = 0; k < length; k++)
			put_number(&answer, 0xff, 1); /* is repaired */
	}
	for (size_t i = 0; i < n; i++) {
		const struct dwarfwire_line line = {.function = (uint32_t)(n - i), .file = 1};

		put_number(&answer, 2, 1);
		for (size_t k = 0; k < 2; k++)
			assert_int_equal(buf_append(&answer, &line, sizeof(line)), 0);
	}
	for (size_t i = 0; i < n; i++) {
		put_number(&answer, i, 4);
		put_number(&answer, i, 8);
		put_number(&answer, 1, 2);
		put_number(&answer, '/', 1);
	}
	before = count_now();
	assert_int_equal(dwarfwire_reader_init(&reader, answer.data, answer.len), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(dwarfwire_next(&reader, lines, &n_lines), 0);
	for (size_t i = 0; i < n; i++)
		assert_true(dwarfwire_wanted(&reader, &(struct dwarfwire_wanted){.unit = 0}));
	before = count_now() - before;
	dwarfwire_reader_deinit(&reader);
	buf_deinit(&answer);
	return before;
}

static uint64_t wire_addresses(size_t n)
{
	return run_wire(n, 8);
}

static uint64_t wire_long(size_t n)
{
	return run_wire(64, n);
}

/* Lines that have a long name in turn. They are copied into the next generation, too. */
static uint64_t cache_lines(size_t n)
{
	struct symbol_line lines[2] = {{.file = "f.c"}, {.file = "f.c"}};
	struct linecache cache;
	char *name[2];
	uint64_t before;

	for (size_t i = 0; i < 2; i++) {
		name[i] = calloc(1, n + 1);
		assert_non_null(name[i]);
		memset(name[i], 'a', n);
		name[i][n / 2] = (char)('b' + i);
		lines[i].function = lines[i].system_name = name[i];
	}
	linecache_init(&cache, 64u << 20);
	before = count_now();
	linecache_begin(&cache);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(linecache_add(&cache, i, lines, 2), 0);
	linecache_end(&cache);
	cache.is_full = true;
	linecache_age(&cache);
	linecache_begin(&cache);
	for (size_t i = 0; i < n; i++)
		assert_non_null(linecache_find(&cache, i));
	linecache_end(&cache);
	before = count_now() - before;
	linecache_deinit(&cache);
	free(name[0]);
	free(name[1]);
	return before;
}

static const struct growth rows[] = {
	{"dwarfcode: units", dwarf_units, 4096, GROWS},
	{"dwarfcode: units without their declaration", dwarf_undeclared, 65536, ENDS},
	{"dwarfcode: blocks inside of blocks", dwarf_blocks, 4096, GROWS},
	{"dwarfcode: inlined functions", dwarf_inlined, 4096, GROWS},
	{"dwarfcode: functions inside of functions", dwarf_functions, 4096, GROWS},
	{"dwarfcode: sequences over sequences", dwarf_sequences, 4096, GROWS},
	{"dwarfcode: functions that share ranges", dwarf_sharing_functions, 1024, GROWS},
	{"dwarfcode: inlined functions that share ranges", dwarf_sharing_inlined, 4096, GROWS},
	{"dwarfcode: units that share ranges", dwarf_sharing_units, 1024, GROWS},
	{"dwarfpackage: strings inside of strings", package_tails, 256, GROWS},
	{"dwarfpackage: strings far from each other", package_far, 256, GROWS},
	{"dwarfpackage: long strings", package_long, 32, GROWS},
	{"dwarfwire: addresses", wire_addresses, 1024, GROWS},
	{"dwarfwire: long strings", wire_long, 1024, GROWS},
	{"linecache: lines with long names", cache_lines, 1024, GROWS},
};

int main(void)
{
	return growth_main(rows, array_size(rows));
}
