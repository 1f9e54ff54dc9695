// SPDX-License-Identifier: Apache-2.0
/* The symbols of this program itself, exported and local. */
#include "support/test.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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

/* The file with its .gnu.hash, or with a section of another name in its place. */
#define LIBC_MAX (16 << 20)

static struct elffile *open_bytes(uint8_t *bytes, size_t n, bool hashed)
{
	static const char name[] = ".gnu.hash";
	uint8_t *at = memmem(bytes, n, name, sizeof(name));
	struct elffile *file = NULL;

	assert_non_null(at);
	at[1] = hashed ? 'g' : 'x';
	assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
	at[1] = 'g';
	return file;
}

static void compare(const struct elffile *hashed, const struct elffile *plain, const char *name,
		    size_t *n_found)
{
	struct elfsym a, b;

	assert_int_equal(elfsym_find(hashed, ELFSYM_DYNSYM, ELFSYM_CODE, &name, 1, &a), 0);
	assert_int_equal(elfsym_find(plain, ELFSYM_DYNSYM, ELFSYM_CODE, &name, 1, &b), 0);
	assert_int_equal(a.n, b.n);
	assert_int_equal(a.vaddr, b.vaddr);
	assert_int_equal(a.size, b.size);
	assert_int_equal(a.section, b.section);
	*n_found += a.n != 0;
}

/* The C library, in @ret's LIBC_MAX bytes. */
static size_t read_libc(uint8_t *ret)
{
	int fd = open("/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		fd = open("/lib/aarch64-linux-gnu/libc.so.6", O_RDONLY | O_CLOEXEC);
	n = read(fd, ret, LIBC_MAX);
	close(fd);
	assert_in_range(n, 1 << 20, LIBC_MAX - 1);
	return (size_t)n;
}

/* By the hash table as by reading all: each 50th name of a library, and each without its first
 * letter. */
static void test_hashed(void **state)
{
	_cleanup_(freep) uint8_t *bytes = malloc(LIBC_MAX);
	_cleanup_(elffile_freep) struct elffile *hashed = NULL, *plain = NULL;
	struct elffile_section strings;
	size_t n_found = 0, n_names = 0;
	const char *texts;
	size_t n;

	(void)state;
	n = read_libc(bytes);
	hashed = open_bytes(bytes, n, true);
	plain = open_bytes(bytes, n, false);
	assert_int_equal(elffile_section(hashed, ".dynstr", &strings), 0);
	texts = (const char *)bytes + strings.off;
	for (size_t at = 1; at < strings.size; at += strlen(texts + at) + 1) {
		if (n_names++ % 50)
			continue;
		compare(hashed, plain, texts + at, &n_found);
		if (strlen(texts + at) > 1)
			compare(hashed, plain, texts + at + 1, &n_found);
	}
	assert_true(n_found > 20 && n_found < 2 * n_names / 50);
}

/* A bucket without an end, and one that leaves the table. */
static void test_hash_malformed(void **state)
{
	_cleanup_(freep) uint8_t *bytes = malloc(LIBC_MAX);
	static const char *const name = "no_such_name";
	struct elffile_section section;
	struct elffile *file;
	struct elfsym found;
	uint32_t *words;
	size_t n;

	(void)state;
	n = read_libc(bytes);
	file = open_bytes(bytes, n, true);
	assert_int_equal(elffile_section(file, ".gnu.hash", &section), 0);
	words = (uint32_t *)(void *)(bytes + section.off);
	for (size_t i = 4; i < section.size / 4; i++)
		words[i] = words[1];
	for (size_t i = 4 + 2 * (size_t)words[2] + words[0]; i < section.size / 4; i++)
		words[i] = 0;
	assert_int_equal(elfsym_find(file, ELFSYM_DYNSYM, ELFSYM_CODE, &name, 1, &found),
			 ELFSYM_MALFORMED);
	words[2] = UINT32_MAX;
	assert_int_equal(elfsym_find(file, ELFSYM_DYNSYM, ELFSYM_CODE, &name, 1, &found),
			 ELFSYM_MALFORMED);
	words[0] = 0; /* no table */
	assert_int_equal(elfsym_find(file, ELFSYM_DYNSYM, ELFSYM_CODE, &name, 1, &found), 0);
	assert_int_equal(found.n, 0);
	elffile_free(file);
}

/* More than two pieces of names (ELFSYM_STEP_BYTES), and two symbols. */
#define STRINGS ((size_t)150000)

struct made {
	Elf64_Ehdr head;
	Elf64_Shdr sections[4];
	char section_names[16];
	Elf64_Sym symbols[3];
	char strings[STRINGS];
};

static void make_file(struct made *ret)
{
	*ret = (struct made){
		.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT},
			 .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = 4,
			 .e_shstrndx = 3,
			 .e_shoff = offsetof(struct made, sections)},
		.sections = {[1] = {.sh_name = 1,
				    .sh_type = SHT_DYNSYM,
				    .sh_offset = offsetof(struct made, symbols),
				    .sh_size = sizeof(ret->symbols),
				    .sh_entsize = sizeof(Elf64_Sym),
				    .sh_link = 2},
			     [2] = {.sh_type = SHT_STRTAB,
				    .sh_offset = offsetof(struct made, strings),
				    .sh_size = STRINGS},
			     [3] = {.sh_type = SHT_STRTAB,
				    .sh_offset = offsetof(struct made, section_names),
				    .sh_size = sizeof(ret->section_names)}},
		.section_names = "\0.dynsym",
	};
	for (size_t i = 1; i < 3; i++) {
		ret->symbols[i].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
		ret->symbols[i].st_shndx = 1;
		ret->symbols[i].st_value = i;
	}
}

/* A name, the tail of a longer one, at all places around the ends of the pieces. */
static void test_pieces(void **state)
{
	static const char *const names[] = {"wanted", "ted", "wante", "unwanted"};
	static const char longer[] = "xwanted";
	static const size_t piece = 65536, overlap = 128;
	_cleanup_(freep) struct made *made = malloc(sizeof(*made));

	(void)state;
	assert_non_null(made);
	for (size_t border = piece - overlap; border < STRINGS; border += overlap) {
		if (border % (piece - overlap) > 2 * overlap)
			continue;
		for (size_t at = border - 9; at < border + 3 && at < STRINGS - sizeof(longer);
		     at++) {
			_cleanup_(elffile_freep) struct elffile *file = NULL;
			struct elfsym found[array_size(names)];

			make_file(made);
			memset(made->strings + 1, 'x', STRINGS - 2);
			memcpy(made->strings + at, longer, sizeof(longer));
			made->symbols[1].st_name = (uint32_t)at + 1;
			made->symbols[2].st_name = (uint32_t)at + 4;
			assert_int_equal(elffile_open_memory(made, sizeof(*made), &file), 0);
			assert_int_equal(elfsym_find(file, ELFSYM_DYNSYM, ELFSYM_DATA, names,
						     array_size(names), found),
					 0);
			assert_int_equal(found[0].n, 1);
			assert_int_equal(found[0].vaddr, 1);
			assert_int_equal(found[1].n, 1);
			assert_int_equal(found[1].vaddr, 2);
			assert_int_equal(found[2].n, 0);
			assert_int_equal(found[3].n, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),  cmocka_unit_test(test_dynamic),
		cmocka_unit_test(test_hashed), cmocka_unit_test(test_hash_malformed),
		cmocka_unit_test(test_pieces),
	};

	local_function();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
