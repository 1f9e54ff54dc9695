// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "elf/elffile.h"
#include "support/allocfail.h"
#include "support/fixture.h"

/* ---------------------------------------------------------------- real files against readelf */

struct readelf {
	struct elffile *file;
	size_t n_sections;
	size_t n_segments;
	size_t n_build_ids;
};

static void check_section(struct readelf *re, const char *line)
{
	unsigned long long vaddr, off, size;
	struct elffile_section by_index, by_name;
	char name[64], type[32];
	unsigned int index;

	/* "  [ 1] .interp PROGBITS 0000000000000318 000318 00001c ..." */
	// NOLINTNEXTLINE(cert-err34-c): readelf, nm and the kernel write numbers
	if (sscanf(line, " [%u] %63s %31s %llx %llx %llx", &index, name, type, &vaddr, &off,
		   &size) != 6 ||
	    index == 0)
		return;
	assert_int_equal(elffile_section_at(re->file, index, &by_index), 0);
	assert_int_equal(elffile_section(re->file, name, &by_name), 0);
	assert_true(by_index.vaddr == vaddr && by_index.off == off && by_index.size == size);
	assert_int_equal(by_index.index, index);
	assert_memory_equal(&by_index, &by_name, sizeof(by_name));
	assert_int_equal(by_index.type == SHT_NOBITS, strcmp(type, "NOBITS") == 0);
	re->n_sections++;
}

static void check_segment(struct readelf *re, const char *line)
{
	unsigned long long off, vaddr, paddr, filesz, memsz;
	const struct elffile_segment *segments;
	size_t n;

	/* "  LOAD 0x000000 0x0000000000000000 0x0000000000000000 0x000628 0x000628 R   0x1000" */
	// NOLINTNEXTLINE(cert-err34-c): readelf, nm and the kernel write numbers
	if (sscanf(line, " LOAD %llx %llx %llx %llx %llx", &off, &vaddr, &paddr, &filesz, &memsz) !=
	    5)
		return;
	segments = elffile_segments(re->file, &n);
	assert_true(re->n_segments < n);
	segments += re->n_segments++;
	assert_true(segments->off == off && segments->vaddr == vaddr);
	assert_true(segments->filesz == filesz && segments->memsz == memsz);
}

static void check_build_id(struct readelf *re, const char *line)
{
	uint8_t id[ELFFILE_BUILD_ID_MAX];
	char hex[2 * sizeof(id) + 1], text[2 * sizeof(id) + 1];
	size_t n;

	line = strstr(line, "Build ID: ");
	if (!line || sscanf(line, "Build ID: %128s", hex) != 1)
		return;
	assert_int_equal(elffile_build_id(re->file, id, &n), 0);
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	assert_string_equal(text, hex);
	re->n_build_ids++;
}

static struct elffile *open_file(const char *path)
{
	struct elffile *file;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elffile_open(fd, &file), 0);
	return file;
}

static void check_file(const char *path)
{
	struct readelf re = {.file = open_file(path)};
	char command[FIXTURE_PATH_MAX + 32], line[1024];
	FILE *out;
	size_t n;

	row_begin(path);
	snprintf(command, sizeof(command), "LC_ALL=C readelf -SlnW '%s'", path);
	out = popen(command, "re"); // NOLINT(bugprone-command-processor,cert-env33-c)
	assert_non_null(out);
	while (fgets(line, sizeof(line), out)) {
		check_section(&re, line);
		check_segment(&re, line);
		check_build_id(&re, line);
	}
	assert_int_equal(pclose(out), 0);
	elffile_segments(re.file, &n);
	assert_int_equal(re.n_segments, n);
	assert_true(re.n_sections > 3 && re.n_build_ids == 1);
	elffile_free(re.file);
}

static void test_real_files(void **state)
{
	static const char *const names[] = {"plain-pie",      "plain-fixed", "plain-static",
					    "plain-stripped", "cxx",	     "asm"};
	char path[FIXTURE_PATH_MAX];

	(void)state;
	for (size_t i = 0; i < array_size(names); i++)
		check_file(fixture_path(names[i], path));
	check_file("/bin/ls");
}

/* ---------------------------------------------------------------- addresses */

static void test_addresses(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct elffile *file = open_file(fixture_path("plain-fixed", path));
	const struct elffile_segment *segments;
	uint64_t vaddr, off;
	size_t n;

	(void)state;
	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n; i++) {
		const struct elffile_segment *s = &segments[i];

		assert_true(elffile_vaddr_of_off(file, s->off, &vaddr) && vaddr == s->vaddr);
		assert_true(elffile_vaddr_of_off(file, s->off + s->filesz - 1, &vaddr));
		assert_true(vaddr == s->vaddr + s->filesz - 1);
		assert_true(elffile_off_of_vaddr(file, vaddr, &off));
		assert_true(off == s->off + s->filesz - 1);
		/* zeros in memory only */
		if (s->memsz > s->filesz)
			assert_false(elffile_off_of_vaddr(file, s->vaddr + s->filesz, &off));
	}
	assert_false(elffile_vaddr_of_off(file, UINT64_MAX, &vaddr));
	assert_false(elffile_off_of_vaddr(file, 0, &off));
	elffile_free(file);
}

/* ---------------------------------------------------------------- broken files */

struct image {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[2];
	uint8_t note[36];
	char names[24];
	uint32_t padding;
	Elf64_Shdr sh[3];
};

static const uint8_t note[36] = {4, 0, 0, 0,   20,  0,	 0, 0, NT_GNU_BUILD_ID,
				 0, 0, 0, 'G', 'N', 'U', 0, 1, 2,
				 3, 4, 5, 6,   7,   8};

static void make_image(struct image *image)
{
	*image = (struct image){
		.eh = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				   EV_CURRENT},
		       .e_type = ET_DYN,
		       .e_machine = EM_X86_64,
		       .e_version = EV_CURRENT,
		       .e_ehsize = sizeof(Elf64_Ehdr),
		       .e_phoff = offsetof(struct image, ph),
		       .e_phentsize = sizeof(Elf64_Phdr),
		       .e_phnum = 2,
		       .e_shoff = offsetof(struct image, sh),
		       .e_shentsize = sizeof(Elf64_Shdr),
		       .e_shnum = 3,
		       .e_shstrndx = 2},
		.ph = {{.p_type = PT_LOAD,
			.p_vaddr = 0x1000,
			.p_filesz = sizeof(*image),
			.p_memsz = sizeof(*image),
			.p_flags = PF_R | PF_X},
		       {.p_type = PT_NOTE,
			.p_offset = offsetof(struct image, note),
			.p_filesz = sizeof(note),
			.p_align = 4}},
		.names = "\0.text\0.shstrtab",
		.sh = {{0},
		       {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_size = 8, .sh_addr = 0x1000},
		       {.sh_name = 7,
			.sh_type = SHT_STRTAB,
			.sh_offset = offsetof(struct image, names),
			.sh_size = 24}},
	};
	memcpy(image->note, note, sizeof(note));
}

enum what { HAS_TEXT = 1, HAS_ID = 2, HAS_ALL = 3 };

struct broken_row {
	const char *name;
	size_t at; /* overwritten byte offset */
	size_t n;  /* with this many bytes */
	uint64_t value;
	int want;
	enum what has; /* contents after a successful open */
};

#define EH(field)    offsetof(struct image, eh.field), sizeof(((struct image *)0)->eh.field)
#define PH(i, field) offsetof(struct image, ph[i].field), sizeof(((struct image *)0)->ph[0].field)
#define SH(i, field) offsetof(struct image, sh[i].field), sizeof(((struct image *)0)->sh[0].field)

static const struct broken_row broken_rows[] = {
	{"whole", 0, 0, 0, 0, HAS_ALL},
	{"magic", 1, 1, 'X', ELFFILE_NOT_ELF, 0},
	{"32-bit", EI_CLASS, 1, ELFCLASS32, ELFFILE_UNSUPPORTED, 0},
	{"big-endian", EI_DATA, 1, ELFDATA2MSB, ELFFILE_UNSUPPORTED, 0},
	{"segments outside", EH(e_phoff), sizeof(struct image) - 111, ELFFILE_MALFORMED, 0},
	{"segments far outside", EH(e_phoff), UINT64_MAX - 8, ELFFILE_MALFORMED, 0},
	{"segment size", EH(e_phentsize), 32, ELFFILE_MALFORMED, 0},
	{"no segments", EH(e_phnum), 0, 0, HAS_TEXT},
	{"segments, at the ceiling", EH(e_phnum), 1170, ELFFILE_MALFORMED, 0},
	{"segments, one more", EH(e_phnum), 1171, ELFFILE_TOO_LARGE, 0},
	{"segments, extended", EH(e_phnum), PN_XNUM, 0, HAS_TEXT},
	{"sections outside", EH(e_shoff), sizeof(struct image) - 191, ELFFILE_MALFORMED, 0},
	{"sections wrap around", EH(e_shoff), UINT64_MAX - 63, ELFFILE_MALFORMED, 0},
	{"section size", EH(e_shentsize), 40, ELFFILE_MALFORMED, 0},
	{"sections, at the ceiling", EH(e_shnum), 8192, ELFFILE_MALFORMED, 0},
	{"sections, one more", EH(e_shnum), 8193, ELFFILE_TOO_LARGE, 0},
	{"sections, extended to none", EH(e_shnum), 0, 0, HAS_ID},
	{"names' section is none", EH(e_shstrndx), 77, 0, HAS_ID},
	{"names are no table", EH(e_shstrndx), 0, 0, HAS_ID},
	{"names outside", SH(2, sh_offset), sizeof(struct image) - 23, 0, HAS_ID},
	{"names too long", SH(2, sh_size), 1 << 21, 0, HAS_ID},
	{"a name outside", SH(1, sh_name), 24, 0, HAS_ID},
	{"notes outside", PH(1, p_offset), sizeof(struct image), 0, HAS_TEXT},
	{"note's name too long", offsetof(struct image, note), 4, 0xfffffff0, 0, HAS_TEXT},
	{"note's id too long", offsetof(struct image, note) + 4, 4, 21, 0, HAS_TEXT},
	{"note's id empty", offsetof(struct image, note) + 4, 4, 0, 0, HAS_TEXT},
	{"note of another kind", offsetof(struct image, note) + 8, 4, 4, 0, HAS_TEXT},
	{"note of another owner", offsetof(struct image, note) + 12, 1, 'X', 0, HAS_TEXT},
};

static void check_contents(const struct elffile *file, enum what has)
{
	uint8_t id[ELFFILE_BUILD_ID_MAX];
	struct elffile_section text;
	size_t n;

	assert_int_equal(elffile_section(file, ".text", &text),
			 has & HAS_TEXT ? 0 : ELFFILE_ABSENT);
	assert_int_equal(elffile_build_id(file, id, &n), has & HAS_ID ? 0 : ELFFILE_ABSENT);
	if (has & HAS_ID) {
		assert_int_equal(n, 20);
		assert_memory_equal(id, note + 16, 20);
	}
}

static void test_broken(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(broken_rows); i++) {
		const struct broken_row *row = &broken_rows[i];
		struct elffile *file = NULL;
		struct image image;

		row_begin(row->name);
		make_image(&image);
		memcpy((uint8_t *)&image + row->at, &row->value, row->n);
		assert_int_equal(elffile_open_memory(&image, sizeof(image), &file), row->want);
		if (!row->want)
			check_contents(file, row->has);
		elffile_free(file);
	}
}

/* Each length: never a crash; below the header not ELF, below all of it malformed. */
static void test_lengths(void **state)
{
	struct image image;

	(void)state;
	make_image(&image);
	for (size_t n = 0; n <= sizeof(image); n++) {
		struct elffile *file = NULL;
		void *copy = malloc(n ? n : 1);
		int r;

		assert_non_null(copy);
		memcpy(copy, &image, n);
		r = elffile_open_memory(copy, n, &file);
		assert_int_equal(r, n < sizeof(Elf64_Ehdr) ? ELFFILE_NOT_ELF
				    : n < sizeof(image)	   ? ELFFILE_MALFORMED
							   : 0);
		elffile_free(file);
		free(copy);
	}
}

/* ---------------------------------------------------------------- reading */

static void test_read(void **state)
{
	struct elffile_section section = {.type = SHT_PROGBITS, .size = 16};
	struct elffile *file;
	struct image image;
	uint8_t bytes[16];
	void *owned;

	(void)state;
	make_image(&image);
	assert_int_equal(elffile_open_memory(&image, sizeof(image), &file), 0);
	assert_int_equal(elffile_read(file, sizeof(image) - 16, bytes, 16), 0);
	assert_memory_equal(bytes, (uint8_t *)&image + sizeof(image) - 16, 16);
	assert_int_equal(elffile_read(file, sizeof(image) - 15, bytes, 16), ELFFILE_TRUNCATED);
	assert_int_equal(elffile_read(file, UINT64_MAX - 3, bytes, 16), ELFFILE_TRUNCATED);
	assert_int_equal(elffile_read(file, sizeof(image), bytes, 0), 0);

	assert_int_equal(elffile_read_section(file, &section, 16, &owned), 0);
	assert_memory_equal(owned, &image, 16);
	free(owned);
	assert_int_equal(elffile_read_section(file, &section, 15, &owned), ELFFILE_TOO_LARGE);
	section.off = UINT64_MAX - 7;
	assert_int_equal(elffile_read_section(file, &section, 16, &owned), ELFFILE_TRUNCATED);
	section.type = SHT_NOBITS;
	assert_int_equal(elffile_read_section(file, &section, 16, &owned), ELFFILE_ABSENT);
	elffile_free(file);
}

/* The file's owner truncates the open file; it grows again, with other bytes. */
static void test_truncated_later(void **state)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct elffile *file;
	struct image image;
	uint8_t bytes[16];

	(void)state;
	make_image(&image);
	assert_int_equal(write(fd, &image, sizeof(image)), sizeof(image));
	assert_int_equal(elffile_open(dup(fd), &file), 0);
	assert_int_equal(ftruncate(fd, 8), 0);
	assert_int_equal(elffile_read(file, 0, bytes, 16), ELFFILE_TRUNCATED);
	assert_int_equal(elffile_read(file, 100, bytes, 16), ELFFILE_TRUNCATED);
	check_contents(file, HAS_ALL); /* earlier reads stay valid */
	assert_int_equal(ftruncate(fd, 200), 0);
	assert_int_equal(elffile_read(file, 100, bytes, 16), 0);
	assert_int_equal(elffile_read(file, 200, bytes, 16), ELFFILE_TRUNCATED);
	elffile_free(file);
	close(fd);
}

/* A failed open leaves the descriptor to the caller. */
static void test_descriptor(void **state)
{
	struct elffile *file;
	int fd = open("Makefile", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(elffile_open(fd, &file), ELFFILE_NOT_ELF);
	assert_int_equal(close(fd), 0);
	assert_int_equal(elffile_open(fd, &file), -EBADF);
}

/* The test's own memory as an ELF file: addresses are offsets, and unmapped memory ends the file.
 */
static void test_process(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t start = (uint64_t)(uintptr_t)at;
	const struct elffile_segment segments[] = {{.vaddr = start,
						    .off = start,
						    .memsz = page,
						    .filesz = page,
						    .flags = PF_R | PF_W}};
	struct elffile_section section;
	struct elffile *file;
	uint8_t bytes[16];
	uint64_t off;

	(void)state;
	assert_true(at != MAP_FAILED);
	memset(at, 7, page);
	munmap(at + page, page);
	assert_int_equal(elffile_open_process(open("/proc/self/mem", O_RDONLY | O_CLOEXEC),
					      EM_X86_64, segments, 1, &file),
			 0);
	assert_true(elffile_is_process(file));
	assert_int_equal(elffile_machine(file), EM_X86_64);
	assert_true(elffile_off_of_vaddr(file, start + 8, &off) && off == start + 8);
	assert_int_equal(elffile_read(file, off, bytes, sizeof(bytes)), 0);
	assert_int_equal(bytes[15], 7);
	assert_int_equal(elffile_read(file, start + page - 8, bytes, 16), ELFFILE_TRUNCATED);
	assert_int_equal(elffile_read(file, start + page, bytes, 1), ELFFILE_TRUNCATED);
	assert_int_equal(elffile_read(file, UINT64_MAX - 3, bytes, 8), ELFFILE_TRUNCATED);
	assert_int_equal(elffile_read(file, 1ull << 63, bytes, 8), ELFFILE_TRUNCATED);
	assert_int_equal(elffile_section_at(file, 1, &section), ELFFILE_ABSENT);
	assert_int_equal(elffile_section(file, ".text", &section), ELFFILE_ABSENT);
	elffile_free(file);
	munmap(at, page);
	/* the descriptor stays the caller's */
	assert_int_equal(elffile_open_process(-1, EM_X86_64, segments, 1u << 20, &file),
			 ELFFILE_TOO_LARGE);
}

static int open_image(void *image)
{
	struct elffile *file = NULL;
	int r = elffile_open_memory(image, sizeof(struct image), &file);

	elffile_free(file);
	return r;
}

static void test_out_of_memory(void **state)
{
	struct image image;

	(void)state;
	make_image(&image);
	allocfail_each(open_image, &image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_files),    cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_broken),	      cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_read),	      cmocka_unit_test(test_truncated_later),
		cmocka_unit_test(test_descriptor),    cmocka_unit_test(test_process),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
