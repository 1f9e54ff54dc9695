// SPDX-License-Identifier: Apache-2.0
/*
 * The answers are those of libdw (dwarflines.h), for each byte of the code. The files are trusted,
 * so both modules run in this process.
 */
#include "support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "procmap/image.h"
#include "support/allocfail.h"
#include "support/fixture.h"
#include "symbolize/dwarfcode.h"
#include "symbolize/dwarflines.h"
#include "symbolize/symbolizer.h"

static _Noreturn void no_memory(void)
{
	abort();
}

static void assert_same_line(const struct symbol_line *a, const struct symbol_line *b)
{
	assert_string_equal(a->function, b->function);
	assert_string_equal(a->system_name, b->system_name);
	/* libdw's file number 0 of DWARF 2: its entries lack the place of the call */
	if (strstr(b->file, "/???"))
		assert_string_equal(a->file, "");
	else
		assert_string_equal(a->file, b->file);
	assert_int_equal(a->line, b->line);
	assert_int_equal(a->column, b->column);
	assert_int_equal(a->start_line, b->start_line);
	assert_int_equal(a->inlined, b->inlined);
}

struct row {
	const char *program;   /* with the code */
	const char *file;      /* with the DWARF */
	const char *alternate; /* NULL: none */
	size_t n_inlined;      /* addresses at least */
};

static const struct row rows[] = {
	{"inline-gcc2", "inline-gcc2", NULL, 100},
	{"inline-gcc3", "inline-gcc3", NULL, 100},
	{"inline-lto", "inline-lto", NULL, 100},
	{"inline-gcc4", "inline-gcc4", NULL, 100},
	{"inline-gcc5", "inline-gcc5", NULL, 100},
	{"inline-clang4", "inline-clang4", NULL, 100},
	{"inline-clang5", "inline-clang5", NULL, 100},
	{"inline-gz", "inline-gz", NULL, 100},
	{"inline-linked", "inline.debug", NULL, 100},
	{"inline-dwz", "inline-dwz", "inline-dwz.debug", 100},
	{"nested", "nested", NULL, 0},
	{"nested-small", "nested-small", NULL, 0},
};

static int open_fixture(const char *name)
{
	char path[FIXTURE_PATH_MAX];
	int fd = open(fixture_path(name, path), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void test_like_libdw(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		static struct symbol_line a[SYMBOL_LINES_MAX], b[SYMBOL_LINES_MAX];
		struct image *image = fixture_image(rows[i].program);
		_cleanup_(close_fdp) int fd = open_fixture(rows[i].file);
		_cleanup_(close_fdp) int other =
			rows[i].alternate ? open_fixture(rows[i].alternate) : -1;
		const int fds[] = {fd, other};
		const size_t n_fds = rows[i].alternate ? 2 : 1;
		struct elffile_section text;
		struct dwarflines *lines;
		struct dwarfcode *code, *apart; /* without neighbours one after the other */
		size_t n_inlined = 0;

		row_begin(rows[i].file);
		assert_int_equal(elffile_section(image->file, ".text", &text), 0);
		assert_int_equal(dwarflines_open(fds, n_fds, no_memory, &lines), 0);
		assert_int_equal(dwarfcode_open(fds, n_fds, &code), 0);
		assert_int_equal(dwarfcode_open(fds, n_fds, &apart), 0);
		for (uint64_t at = text.vaddr; at < text.vaddr + text.size; at++) {
			int n = dwarfcode_find(code, at, a);

			assert_int_equal(n, dwarflines_find(lines, at, b));
			for (int k = 0; k < n; k++)
				assert_same_line(&a[k], &b[k]);
			n_inlined += n > 1;
			(void)dwarfcode_find(
				apart, text.vaddr + (at - text.vaddr + text.size / 2) % text.size,
				a);
			assert_int_equal(dwarfcode_find(apart, at, a), n);
			for (int k = 0; k < n; k++)
				assert_same_line(&a[k], &b[k]);
		}
		assert_true(n_inlined >= rows[i].n_inlined);
		dwarfcode_free(code);
		dwarfcode_free(apart);
		dwarflines_free(lines);
		image_unref(image);
	}
}

static void test_unsupported(void **state)
{
	static const char *const names[] = {"inline-split4", "inline-split5", "inline-clangsplit4",
					    "inline-clangsplit5", "plain-pie"};
	struct dwarfcode *code;

	(void)state;
	for (size_t i = 0; i < array_size(names); i++) {
		_cleanup_(close_fdp) int fd = open_fixture(names[i]);

		row_begin(names[i]);
		assert_int_equal(dwarfcode_open(&fd, 1, &code), DWARFCODE_UNSUPPORTED);
	}
}

struct place {
	int fd;
	uint64_t vaddr;
};

static int find_one(void *ctx)
{
	static struct symbol_line lines[SYMBOL_LINES_MAX];
	const struct place *place = ctx;
	struct dwarfcode *code;
	int r = dwarfcode_open(&place->fd, 1, &code);

	if (r)
		return r;
	for (uint64_t i = 0; i < 2 && r >= 0; i++) /* the second is of the same function */
		r = dwarfcode_find(code, place->vaddr + i, lines);
	dwarfcode_free(code);
	return r < 0 ? r : 0;
}

static void test_without_memory(void **state)
{
	_cleanup_(close_fdp) int fd = open_fixture("inline-gcc5");
	struct image *image = fixture_image("inline-gcc5");
	struct elffile_section text;

	(void)state;
	assert_int_equal(elffile_section(image->file, ".text", &text), 0);
	allocfail_each(find_one, &(struct place){fd, text.vaddr + text.size / 2});
	image_unref(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_libdw),
		cmocka_unit_test(test_unsupported),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
