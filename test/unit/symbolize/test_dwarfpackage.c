// SPDX-License-Identifier: Apache-2.0
/* Real packages, with names and lines, are in test_dwarf.c. */
#include "support/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/work_budget.h"
#include "elf/elffile.h"
#include "support/allocfail.h"
#include "support/packagemake.h"
#include "symbolize/dwarfpackage.h"

#define ALL UINT32_MAX

static const char strings[] = "no\0last\0first\0no";
/* "first", "last", again "first", the end of "first", outside of the strings, the last byte */
static const uint32_t offs[] = {8, 3, 8, 11, sizeof(strings), sizeof(strings) - 1};
static const char *const texts[] = {"first", "last", "first", "st", "", ""};

/* 0 with a unit, or an outcome. */
static int copy_unit(const struct packagemake *p, uint64_t id, size_t max, int *ret_fd,
		     size_t *ret_n)
{
	struct dwarfpackage *package;
	struct elffile *file;
	int r = elffile_open_memory(p->elf.data, p->elf.n, &file);

	if (r)
		return r;
	r = dwarfpackage_open(file, &package);
	if (r) {
		elffile_free(file);
		return r;
	}
	r = dwarfpackage_unit(package, id, max, ret_fd, ret_n);
	dwarfpackage_free(package);
	return r;
}

/* ---------------------------------------------------------------- good packages */

static void check_section(const struct elffile *file, const char *name, const char *want)
{
	struct elffile_section section;
	char *bytes;

	assert_int_equal(elffile_section(file, name, &section), 0);
	assert_int_equal(section.size, strlen(want));
	assert_int_equal(elffile_read_section(file, &section, section.size, (void **)&bytes), 0);
	assert_memory_equal(bytes, want, section.size);
	free(bytes);
}

static void check_strings(const struct elffile *file, size_t n_header)
{
	struct elffile_section table, section;
	uint32_t moved[array_size(offs)];
	char text[16];

	assert_int_equal(elffile_section(file, ".debug_str_offsets.dwo", &table), 0);
	assert_int_equal(table.size, n_header + sizeof(moved));
	assert_int_equal(elffile_read(file, table.off + n_header, moved, sizeof(moved)), 0);
	assert_int_equal(elffile_section(file, ".debug_str.dwo", &section), 0);
	/* equal strings are there once, and the end of another not at all */
	assert_int_equal(section.size, sizeof("") + sizeof("last") + sizeof("first") + sizeof(""));
	for (size_t i = 0; i < array_size(texts); i++) {
		assert_int_equal(elffile_read_string(file, &section, moved[i], text, sizeof(text)),
				 texts[i][0] != '\0');
		if (texts[i][0])
			assert_string_equal(text, texts[i]);
	}
}

/* The process that reads DWARF has the descriptor. */
static void check_sealed(int fd, size_t n)
{
	assert_int_equal(lseek(fd, 0, SEEK_END), n);
	assert_int_equal(pwrite(fd, "", 1, 0), -1);
	assert_int_equal(ftruncate(fd, (off_t)n + 1), -1);
	assert_int_equal(ftruncate(fd, (off_t)n - 1), -1);
}

static void check_good(uint32_t version)
{
	struct packagemake p;
	struct elffile *file;
	size_t n, again;
	int fd;

	packagemake_init(&p, version, offs, array_size(offs), strings, sizeof(strings));
	packagemake_finish(&p);
	assert_int_equal(copy_unit(&p, PACKAGEMAKE_ID, ALL, &fd, &n), 0);
	check_sealed(fd, n);
	assert_int_equal(elffile_open(fd, &file), 0);
	check_section(file, ".debug_info.dwo", PACKAGEMAKE_INFO);
	check_section(file, ".debug_abbrev.dwo", "ab");
	check_section(file, ".debug_line.dwo", "lll");
	check_strings(file, version == 5 ? 8 : 0);
	elffile_free(file);
	assert_int_equal(copy_unit(&p, PACKAGEMAKE_ID, n, &fd, &again), 0);
	assert_int_equal(again, n);
	close(fd);
	/* no part of it at any size below */
	for (size_t max = 0; max < n; max++)
		assert_int_equal(copy_unit(&p, PACKAGEMAKE_ID, max, &fd, &again),
				 DWARFPACKAGE_TOO_LARGE);
	packagemake_deinit(&p);
}

static void test_versions(void **state)
{
	(void)state;
	check_good(2);
	check_good(5);
}

/* Offsets of eight bytes (DWARF 5, 7.26). */
static void test_wide_offsets(void **state)
{
	const uint32_t wide[] = {UINT32_MAX, 20, 0, 5, 8, 0, 3, 0};
	struct elffile_section table, section;
	struct packagemake p;
	struct elffile *file;
	uint64_t moved[2];
	char text[16];
	size_t n;
	int fd;

	(void)state;
	packagemake_init(&p, 5, wide, array_size(wide), strings, sizeof(strings));
	/* without the narrow header before it */
	p.index.offs[1][3] = 8;
	p.index.sizes[1][3] = sizeof(wide);
	packagemake_finish(&p);
	assert_int_equal(copy_unit(&p, PACKAGEMAKE_ID, ALL, &fd, &n), 0);
	assert_int_equal(elffile_open(fd, &file), 0);
	assert_int_equal(elffile_section(file, ".debug_str_offsets.dwo", &table), 0);
	assert_int_equal(elffile_read(file, table.off + 16, moved, sizeof(moved)), 0);
	assert_int_equal(elffile_section(file, ".debug_str.dwo", &section), 0);
	assert_true(elffile_read_string(file, &section, moved[0], text, sizeof(text)));
	assert_string_equal(text, "first");
	assert_true(elffile_read_string(file, &section, moved[1], text, sizeof(text)));
	assert_string_equal(text, "last");
	elffile_free(file);
	packagemake_deinit(&p);
}

/* Strings of several reads, and one above the ceiling, which is cut. */
static void test_long_strings(void **state)
{
	enum { LENGTH = 100000 };
	static const size_t lengths[] = {2047, 2048, 9000, 32767, 32768, LENGTH};
	static char text[array_size(lengths) * (LENGTH + 1)], got[LENGTH + 1];
	uint32_t at[array_size(lengths)];
	struct elffile_section table, section;
	struct packagemake p;
	struct elffile *file;
	size_t n = 0;
	int fd;

	(void)state;
	for (size_t i = 0; i < array_size(lengths); i++) {
		at[i] = (uint32_t)n;
		memset(text + n, 'a' + (int)i, lengths[i]);
		n += lengths[i] + 1;
	}
	packagemake_init(&p, 2, at, array_size(at), text, n);
	packagemake_finish(&p);
	assert_int_equal(copy_unit(&p, PACKAGEMAKE_ID, ALL, &fd, &n), 0);
	assert_int_equal(elffile_open(fd, &file), 0);
	assert_int_equal(elffile_section(file, ".debug_str_offsets.dwo", &table), 0);
	assert_int_equal(elffile_read(file, table.off, at, sizeof(at)), 0);
	assert_int_equal(elffile_section(file, ".debug_str.dwo", &section), 0);
	for (size_t i = 0; i < array_size(lengths); i++) {
		const size_t want = lengths[i] < 32768 ? lengths[i] : 32768;

		assert_true(elffile_read_string(file, &section, at[i], got, sizeof(got)));
		assert_int_equal(strlen(got), want);
		assert_int_equal(got[0], 'a' + (int)i);
		assert_int_equal(got[want - 1], 'a' + (int)i);
	}
	elffile_free(file);
	packagemake_deinit(&p);
}

/* ---------------------------------------------------------------- bad packages */

struct bad_row {
	const char *name;
	size_t at; /* of a number of the index, in bytes */
	uint32_t number;
	int outcome;
};

#define INDEX(member) offsetof(struct packagemake_index, member)

static const struct bad_row bad_rows[] = {
	{"nothing wrong", INDEX(units), 2, 0},
	{"an old version", INDEX(version), 1, DWARFPACKAGE_MALFORMED},
	{"a version between", INDEX(version), 3, DWARFPACKAGE_MALFORMED},
	{"a version with more behind it", INDEX(version), 0x10005, DWARFPACKAGE_MALFORMED},
	{"no columns", INDEX(columns), 0, DWARFPACKAGE_MALFORMED},
	{"too many columns", INDEX(columns), 17, DWARFPACKAGE_MALFORMED},
	{"more rows than bytes", INDEX(units), 3, DWARFPACKAGE_MALFORMED},
	{"the most rows", INDEX(units), UINT32_MAX, DWARFPACKAGE_MALFORMED},
	{"no rows", INDEX(units), 0, DWARFPACKAGE_MALFORMED},
	{"no slots", INDEX(slots), 0, DWARFPACKAGE_ABSENT},
	{"slots that are no power of two", INDEX(slots), 3, DWARFPACKAGE_MALFORMED},
	{"the most slots", INDEX(slots), 1u << 31, DWARFPACKAGE_MALFORMED},
	{"row 0", INDEX(rows[1]), 0, DWARFPACKAGE_MALFORMED},
	{"the first row", INDEX(rows[1]), 1, DWARFPACKAGE_MALFORMED}, /* has no parts */
	{"a row above the last", INDEX(rows[1]), 3, DWARFPACKAGE_MALFORMED},
	{"a part at the end of its section", INDEX(offs[1][1]), 0, 0},
	{"a part behind the end", INDEX(offs[1][1]), 1, DWARFPACKAGE_MALFORMED},
	{"a part far behind the end", INDEX(offs[1][1]), UINT32_MAX, DWARFPACKAGE_MALFORMED},
	{"a part that is too long", INDEX(sizes[1][0]), 5, DWARFPACKAGE_MALFORMED},
	{"a part of any length", INDEX(sizes[1][0]), UINT32_MAX, DWARFPACKAGE_MALFORMED},
	{"no code", INDEX(sizes[1][0]), 0, DWARFPACKAGE_MALFORMED},
	{"no lines", INDEX(sizes[1][2]), 0, 0},
	{"an unknown part", INDEX(kinds[2]), 99, 0},
	{"no strings", INDEX(sizes[1][3]), 0, 0},
	{"offsets without a header", INDEX(sizes[1][3]), 4, 0},
	{"half an offset", INDEX(sizes[1][3]), 10, 0},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		struct packagemake p;
		size_t n;
		int fd = -1;

		row_begin(row->name);
		packagemake_init(&p, 5, offs, array_size(offs), strings, sizeof(strings));
		memcpy((char *)&p.index + row->at, &row->number, sizeof(row->number));
		packagemake_finish(&p);
		assert_int_equal(copy_unit(&p, PACKAGEMAKE_ID, ALL, &fd, &n), row->outcome);
		if (fd >= 0)
			close(fd);
		packagemake_deinit(&p);
	}
}

/* An unknown unit ends at a free slot, or when all slots were looked at. */
static void test_absent(void **state)
{
	struct packagemake p;
	size_t n;
	int fd;

	(void)state;
	packagemake_init(&p, 5, offs, array_size(offs), strings, sizeof(strings));
	for (size_t i = 0; i < 2; i++) {
		packagemake_finish(&p);
		assert_int_equal(copy_unit(&p, 1ull << 40, ALL, &fd, &n), DWARFPACKAGE_ABSENT);
		packagemake_deinit(&p);
		packagemake_init(&p, 5, offs, array_size(offs), strings, sizeof(strings));
		for (size_t k = 0; k < PACKAGEMAKE_SLOTS; k++)
			p.index.ids[k] = 7 + k;
	}
	packagemake_deinit(&p);
}

static void test_sections(void **state)
{
	struct packagemake p;
	size_t n;
	int fd;

	(void)state;
	packagemake_init(&p, 5, offs, array_size(offs), strings, sizeof(strings));
	elfmake_finish(&p.elf);
	row_begin("no index");
	assert_int_equal(copy_unit(&p, PACKAGEMAKE_ID, ALL, &fd, &n), DWARFPACKAGE_ABSENT);
	packagemake_deinit(&p);
	row_begin("a compressed section");
	packagemake_init(&p, 5, offs, array_size(offs), strings, sizeof(strings));
	p.elf.sh[2].sh_flags = SHF_COMPRESSED;
	packagemake_finish(&p);
	assert_int_equal(copy_unit(&p, PACKAGEMAKE_ID, ALL, &fd, &n), DWARFPACKAGE_MALFORMED);
	packagemake_deinit(&p);
}

/* The budget of the file ends the copy. */
static void test_budget(void **state)
{
	struct elffile *file, *budgeted;
	struct dwarfpackage *package;
	struct work_budget work;
	struct packagemake p;
	size_t n;
	int fd;

	(void)state;
	packagemake_init(&p, 5, offs, array_size(offs), strings, sizeof(strings));
	packagemake_finish(&p);
	assert_int_equal(elffile_open_memory(p.elf.data, p.elf.n, &file), 0);
	work_budget_init(&work, 4096, UINT64_MAX, NULL);
	assert_int_equal(elffile_budgeted(file, &work, &budgeted), 0);
	assert_int_equal(dwarfpackage_open(budgeted, &package), 0);
	assert_int_equal(dwarfpackage_unit(package, PACKAGEMAKE_ID, ALL, &fd, &n),
			 DWARFPACKAGE_MALFORMED);
	assert_int_equal(work.end, WORK_SPENT);
	dwarfpackage_free(package);
	elffile_free(file);
	packagemake_deinit(&p);
}

static int copy_one(void *ctx)
{
	size_t n;
	int fd, r = copy_unit(ctx, PACKAGEMAKE_ID, ALL, &fd, &n);

	if (!r)
		close(fd);
	return r;
}

static void test_without_memory(void **state)
{
	struct packagemake p;

	(void)state;
	packagemake_init(&p, 5, offs, array_size(offs), strings, sizeof(strings));
	packagemake_finish(&p);
	allocfail_each(copy_one, &p);
	packagemake_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),     cmocka_unit_test(test_wide_offsets),
		cmocka_unit_test(test_long_strings), cmocka_unit_test(test_bad),
		cmocka_unit_test(test_absent),	     cmocka_unit_test(test_sections),
		cmocka_unit_test(test_budget),	     cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
