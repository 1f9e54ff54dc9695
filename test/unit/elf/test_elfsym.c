// SPDX-License-Identifier: Apache-2.0
/* The symbols of this program itself, exported and local. */
#include "support/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "elf/elfsym.h"

uint64_t exported_word = 1; // NOLINT(misc-use-internal-linkage)
static uint64_t local_word = 2;

static void local_function(void)
{
	local_word++;
}

static struct elffile *open_self(void)
{
	struct elffile *file = NULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elffile_open(fd, &file), 0);
	return file;
}

struct row {
	const char *name;
	enum elfsym_table table;
	uint32_t kinds;
	const void *address; /* NULL: not found */
};

static void test_kinds(void **state)
{
	const struct row rows[] = {
		{"exported_word", ELFSYM_SYMTAB, ELFSYM_DATA, &exported_word},
		{"exported_word", ELFSYM_SYMTAB, ELFSYM_CODE, NULL},
		{"local_word", ELFSYM_SYMTAB, ELFSYM_DATA, &local_word},
		{"local_function", ELFSYM_SYMTAB, ELFSYM_CODE, local_function},
		{"local_function", ELFSYM_SYMTAB, ELFSYM_DATA, NULL},
		{"local_function", ELFSYM_SYMTAB, ELFSYM_DATA | ELFSYM_CODE, local_function},
		{"local_function", ELFSYM_DYNSYM, ELFSYM_CODE, NULL},
		{"local_word", ELFSYM_DYNSYM, ELFSYM_DATA, NULL},
		{"ocal_word", ELFSYM_SYMTAB, ELFSYM_DATA, NULL},
	};
	_cleanup_(elffile_freep) struct elffile *file = open_self();
	const char *anchor = "exported_word";
	struct elfsym base;

	(void)state;
	assert_int_equal(elfsym_find(file, ELFSYM_SYMTAB, ELFSYM_DATA, &anchor, 1, &base), 0);
	for (size_t i = 0; i < array_size(rows); i++) {
		struct elfsym found;

		assert_int_equal(
			elfsym_find(file, rows[i].table, rows[i].kinds, &rows[i].name, 1, &found),
			0);
		assert_int_equal(found.n, rows[i].address != NULL);
		if (rows[i].address)
			assert_int_equal(found.vaddr - base.vaddr,
					 (uintptr_t)rows[i].address - (uintptr_t)&exported_word);
	}
}

/* .dynsym of a library, stripped as installed. */
static void test_dynamic(void **state)
{
	static const char *const names[] = {"malloc", "environ", "no_such_name"};
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	struct elfsym code[3], data[3];
	int fd = open("/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0)
		fd = open("/lib/aarch64-linux-gnu/libc.so.6", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elffile_open(fd, &file), 0);
	assert_int_equal(elfsym_find(file, ELFSYM_DYNSYM, ELFSYM_CODE, names, 3, code), 0);
	assert_int_equal(elfsym_find(file, ELFSYM_DYNSYM, ELFSYM_DATA, names, 3, data), 0);
	assert_true(code[0].n >= 1 && data[0].n == 0);
	assert_true(code[1].n == 0 && data[1].n >= 1);
	assert_true(code[2].n == 0 && data[2].n == 0);
	assert_int_equal(elfsym_find(file, ELFSYM_SYMTAB, ELFSYM_CODE, names, 3, code),
			 ELFSYM_ABSENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_dynamic),
	};

	local_function();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
