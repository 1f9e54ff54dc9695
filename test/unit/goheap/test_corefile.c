// SPDX-License-Identifier: Apache-2.0
/* Odd cores. cmd/test_heap_kinds.c reads cores of real processes. */
#include "support/test.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "goheap/corefile.h"
#include "elf/elffile.h"
#include "support/allocfail.h"

/* Two adjacent segments of a page at BASE, the second half written, and one file of two pages
 * mapped over both. */
#define BASE 0x10000ull
#define PAGE 4096u

struct core {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[3]; /* the notes, two segments */
	uint32_t info_head[3];
	char info_name[8];
	uint8_t info[136];
	uint32_t file_head[3];
	char file_name[8];
	uint64_t n_files;
	uint64_t page_bytes;
	uint64_t file[3];
	char path[8];
	uint8_t memory[PAGE + PAGE / 2];
} __attribute__((packed));

static void core_init(struct core *c)
{
	const size_t notes = offsetof(struct core, info_head);
	const size_t memory = offsetof(struct core, memory);

	*c = (struct core){
		.eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		       .e_type = ET_CORE,
		       .e_phoff = offsetof(struct core, ph),
		       .e_phentsize = sizeof(Elf64_Phdr),
		       .e_phnum = 3},
		.ph = {{.p_type = PT_NOTE, .p_offset = notes, .p_filesz = memory - notes},
		       {.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = memory,
			.p_vaddr = BASE,
			.p_filesz = PAGE,
			.p_memsz = PAGE},
		       {.p_type = PT_LOAD,
			.p_flags = PF_R | PF_W,
			.p_offset = memory + PAGE,
			.p_vaddr = BASE + PAGE,
			.p_filesz = PAGE / 2,
			.p_memsz = PAGE}},
		.info_head = {5, 136, NT_PRPSINFO},
		.info_name = "CORE",
		.file_head = {5, 48, NT_FILE},
		.file_name = "CORE",
		.n_files = 1,
		.page_bytes = PAGE,
		.file = {BASE, BASE + PAGE, 0},
		.path = "/bin/x",
	};
	c->info[24] = 42;
	memcpy(c->info + 40, "name", 4);
	memset(c->memory, 1, PAGE);
	memset(c->memory + PAGE, 2, PAGE / 2);
}

static void good(void **state)
{
	const struct corefile_mapping *m;
	struct corefile *core;
	uint8_t bytes[2 * PAGE];
	struct core c;
	size_t n;

	(void)state;
	core_init(&c);
	assert_int_equal(corefile_open_memory(&c, sizeof(c), &core), 0);
	m = corefile_mappings(core, &n);
	assert_int_equal(n, 1);
	assert_string_equal(m[0].path, "/bin/x");
	assert_true(m[0].start == BASE && m[0].limit == BASE + PAGE && m[0].code);
	assert_int_equal(memory_read(corefile_memory(core), BASE + PAGE - 1, bytes, 2), 0);
	assert_true(bytes[0] == 1 && bytes[1] == 2);
	assert_int_equal(memory_read_some(corefile_memory(core), BASE, bytes, sizeof(bytes), &n),
			 0);
	assert_int_equal(n, PAGE + PAGE / 2);
	assert_int_equal(memory_read(corefile_memory(core), BASE - 1, bytes, 2), MEMORY_UNMAPPED);
	assert_int_equal(memory_read(corefile_memory(core), BASE + 2 * PAGE - 1, bytes, 1),
			 MEMORY_UNMAPPED);
	assert_int_equal(memory_read(corefile_memory(core), UINT64_MAX - 1, bytes, 1),
			 MEMORY_UNMAPPED);
	assert_int_equal(memory_check(corefile_memory(core)), 0);
	corefile_free(core);
}

/* Memory missing from the core comes from the file, once the file is known. */
static void from_the_file(void **state)
{
	struct corefile *core;
	struct elffile *file;
	struct core c, image;
	uint8_t byte;

	(void)state;
	core_init(&c);
	core_init(&image); /* any ELF file */
	c.ph[1].p_filesz = 16;
	assert_int_equal(corefile_open_memory(&c, sizeof(c), &core), 0);
	assert_int_equal(memory_read(corefile_memory(core), BASE + 16, &byte, 1), MEMORY_UNMAPPED);
	assert_int_equal(elffile_open_memory(&image, sizeof(image), &file), 0);
	corefile_attach(core, 0, file);
	assert_int_equal(memory_read(corefile_memory(core), BASE + 15, &byte, 1), 0);
	assert_int_equal(byte, 1);
	assert_int_equal(memory_read(corefile_memory(core), BASE + 16, &byte, 1), 0);
	assert_int_equal(byte, ((uint8_t *)&image)[16]);
	corefile_free(core);
	elffile_free(file);
}

enum change {
	NOTHING,
	NO_MAGIC,
	CLASS_32,
	BIG_ENDIAN_DATA,
	NO_CORE_TYPE,
	PHENTSIZE,
	PHOFF_FAR,
	PHNUM_MANY,
	XNUM,
	SEGMENT_FAR,
	SEGMENT_LONG,
	SEGMENT_WRAPS,
	SEGMENT_BELOW_ITS_FILE,
	SEGMENTS_OVERLAP,
	TWO_NOTES,
	NOTES_FAR,
	NO_FILES,
	FILES_MANY,
	FILES_TWICE,
	FILE_BACKWARDS,
	FILE_OFFSET_WRAPS,
	PATH_WITHOUT_END,
	NOTE_LONG,
};

static void change(struct core *c, enum change what)
{
	switch (what) {
	case NO_MAGIC:
		c->eh.e_ident[0] = 0;
		break;
	case CLASS_32:
		c->eh.e_ident[EI_CLASS] = ELFCLASS32;
		break;
	case BIG_ENDIAN_DATA:
		c->eh.e_ident[EI_DATA] = ELFDATA2MSB;
		break;
	case NO_CORE_TYPE:
		c->eh.e_type = ET_DYN;
		break;
	case PHENTSIZE:
		c->eh.e_phentsize = 32;
		break;
	case PHOFF_FAR:
		c->eh.e_phoff = UINT64_MAX - 8;
		break;
	case PHNUM_MANY:
		c->eh.e_phnum = 1000;
		break;
	case XNUM: /* the count is in the supposed section header */
		c->eh.e_phnum = PN_XNUM;
		c->eh.e_shoff = offsetof(struct core, memory);
		break;
	case SEGMENT_FAR:
		c->ph[1].p_offset = UINT64_MAX - 8;
		break;
	case SEGMENT_LONG:
		c->ph[1].p_filesz = c->ph[1].p_memsz = sizeof(*c);
		c->ph[2].p_vaddr = BASE + PAGE * 16;
		break;
	case SEGMENT_WRAPS:
		c->ph[2].p_vaddr = UINT64_MAX - 8;
		break;
	case SEGMENT_BELOW_ITS_FILE:
		c->ph[1].p_memsz = 16;
		break;
	case SEGMENTS_OVERLAP:
		c->ph[2].p_vaddr--;
		break;
	case TWO_NOTES:
		c->ph[1] = c->ph[0];
		break;
	case NOTES_FAR:
		c->ph[0].p_offset = sizeof(*c);
		break;
	case NO_FILES:
		c->file_head[2] = NT_AUXV;
		break;
	case FILES_MANY:
		c->n_files = UINT64_MAX / 24;
		break;
	case FILES_TWICE: /* the first is empty */
		memset(c->info, 0, sizeof(c->info));
		c->info_head[2] = NT_FILE;
		break;
	case FILE_BACKWARDS:
		c->file[1] = BASE;
		break;
	case FILE_OFFSET_WRAPS:
		c->file[2] = UINT64_MAX / 2;
		break;
	case PATH_WITHOUT_END:
		memset(c->path, 'x', sizeof(c->path));
		break;
	case NOTE_LONG:
		c->file_head[1] = UINT32_MAX;
		break;
	default:
		break;
	}
}

static const struct {
	const char *name;
	enum change change;
	int want;
} rows[] = {
	{"nothing", NOTHING, COREFILE_OK},
	{"no magic", NO_MAGIC, COREFILE_NOT_CORE},
	{"32 bits", CLASS_32, COREFILE_UNSUPPORTED},
	{"big-endian", BIG_ENDIAN_DATA, COREFILE_UNSUPPORTED},
	{"a library", NO_CORE_TYPE, COREFILE_NOT_CORE},
	{"program headers of another size", PHENTSIZE, COREFILE_MALFORMED},
	{"program headers far away", PHOFF_FAR, COREFILE_TRUNCATED},
	{"many program headers", PHNUM_MANY, COREFILE_TRUNCATED},
	{"more than fit the header", XNUM, COREFILE_TOO_LARGE},
	{"a segment far away", SEGMENT_FAR, COREFILE_TRUNCATED},
	{"a long segment", SEGMENT_LONG, COREFILE_TRUNCATED},
	{"a segment over the end of addresses", SEGMENT_WRAPS, COREFILE_MALFORMED},
	{"more of a segment than there is", SEGMENT_BELOW_ITS_FILE, COREFILE_MALFORMED},
	{"overlapping segments", SEGMENTS_OVERLAP, COREFILE_MALFORMED},
	{"two lists of notes", TWO_NOTES, COREFILE_MALFORMED},
	{"notes far away", NOTES_FAR, COREFILE_TRUNCATED},
	{"no list of files", NO_FILES, COREFILE_UNSUPPORTED},
	{"many files", FILES_MANY, COREFILE_MALFORMED},
	{"two lists of files", FILES_TWICE, COREFILE_MALFORMED},
	{"a mapping backwards", FILE_BACKWARDS, COREFILE_MALFORMED},
	{"an offset too large", FILE_OFFSET_WRAPS, COREFILE_MALFORMED},
	{"a path without an end", PATH_WITHOUT_END, COREFILE_MALFORMED},
	{"a long note", NOTE_LONG, COREFILE_MALFORMED},
};

static void odd(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct corefile *core = NULL;
		struct core c;

		row_begin(rows[i].name);
		core_init(&c);
		change(&c, rows[i].change);
		assert_string_equal(
			corefile_outcome_name(corefile_open_memory(&c, sizeof(c), &core)),
			corefile_outcome_name(rows[i].want));
		corefile_free(core);
	}
}

/* Each shorter length, in a copy of this length. */
static void cut(void **state)
{
	struct core c;

	(void)state;
	core_init(&c);
	for (size_t n = 0; n < sizeof(c); n += n < 1100 ? 1 : 97) {
		void *copy = malloc(n ? n : 1);
		struct corefile *core = NULL;
		int r;

		assert_non_null(copy);
		memcpy(copy, &c, n);
		r = corefile_open_memory(copy, n, &core);
		if (n < sizeof(c.eh))
			assert_int_equal(r, COREFILE_NOT_CORE);
		else
			assert_int_equal(r, COREFILE_TRUNCATED);
		free(copy);
	}
}

static int attempt(void *arg)
{
	struct corefile *core = NULL;
	int r = corefile_open_memory(arg, sizeof(struct core), &core);

	corefile_free(core);
	return r;
}

static void out_of_memory(void **state)
{
	struct core c;

	(void)state;
	core_init(&c);
	allocfail_each(attempt, &c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good), cmocka_unit_test(from_the_file), cmocka_unit_test(odd),
		cmocka_unit_test(cut),	cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
