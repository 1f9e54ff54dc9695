// SPDX-License-Identifier: Apache-2.0
/* Go programs, their memory and their cores: agent/gofile and agent/goheap. */
#include "support/test.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/root.h"
#include "complexity/count.h"
#include "complexity/elf.h"
#include "complexity/growth.h"
#include "elf/elffile.h"
#include "gofile/gopclntab.h"
#include "goheap/corefile.h"
#include "goheap/goruntime.h"
#include "goheap/gototals.h"
#include "goheap/gounpacked.h"
#include "support/elfworst.h"

#define TEXT ELFWORST_TEXT

static uint64_t gopclntab_lines(size_t n)
{
	struct gopclntab_line line;
	struct gopclntab *t;
	struct elffile *file;
	struct elfmake m;
	uint64_t before;

	elfworst_go(&m, n, false);
	file = open_made(&m);
	before = count_now();
	assert_int_equal(gopclntab_open(file, &t), 0);
	for (size_t i = 0; i < n; i++)
		(void)gopclntab_find(t, TEXT + 16 * i + 8, &line);
	gopclntab_free(t);
	before = count_now() - before;
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* Symbols, sections and code of a file without Go's tables, searched for the runtime. */
static uint64_t goruntime_words(size_t n)
{
	static struct goruntime_file found;
	struct elffile *file;
	struct elfmake m;
	uint64_t before;

	elfmake_init(&m, ET_EXEC, 8 * n);
	m.eh.e_shnum = 0;
	m.eh.e_shoff = 0;
	m.eh.e_shstrndx = 0;
	for (size_t i = 0; i < n; i++)
		elfmake_bytes(&m, "\xf1\xff\xff\xff\0\0\1\x08", 8);
	elfmake_segment(&m, PT_LOAD, PF_R | PF_W, TEXT, m.n - 8 * n, 8 * n);
	file = open_made(&m);
	before = count_now();
	assert_int_equal(goruntime_file_read(file, &found), GORUNTIME_NO_RUNTIME);
	before = count_now() - before;
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* ---------------------------------------------------------------- memory */

/* Reads find the same byte everywhere. */
struct flat {
	struct memory memory;
	uint8_t byte;
	uint64_t n_procs;
};

static int flat_read(struct memory *memory, const struct memory_range *ranges, size_t n,
		     size_t *ret)
{
	const struct flat *flat = container_of(memory, struct flat, memory);

	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		memset(ranges[i].to, flat->byte, ranges[i].n);
		if (ranges[i].n == 16 && flat->n_procs) /* the slice of processors */
			memcpy((uint8_t *)ranges[i].to + 8, &flat->n_procs, 8);
		*ret += ranges[i].n;
	}
	return 0;
}

static int flat_check(struct memory *memory)
{
	(void)memory;
	return 0;
}

static uint64_t gosched_procs(size_t n)
{
	struct flat flat = {.memory = {.read = flat_read, .check = flat_check}, .n_procs = n};
	struct goruntime rt = {.file = {.sched = {8, 8, 8, 8, true}}};
	struct gosched s = {.free_at = 64};
	uint64_t before = count_now(), number;

	(void)gosched_read(&rt, &flat.memory, &s, &number);
	s.free_at = 0;
	(void)gosched_read(&rt, &flat.memory, &s, &number);
	return count_now() - before;
}

/* A process with pieces of anonymous code beside each other, in a procfs of our own. */
static uint64_t gounpacked_maps(size_t n)
{
	const char stat[] = "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 55 0 0 0\n";
	struct pid_id id = {.start_ticks = 55, .pid = 7};
	char dir[] = "/tmp/podprof-test-XXXXXX";
	struct elffile *file = NULL;
	struct root proc;
	uint64_t before;
	int fd, r;
	FILE *out;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(root_open(dir, &proc), 0);
	assert_int_equal(mkdirat(proc.fd, "7", 0700), 0);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = {"7/stat", "7/mem", "7/maps"};

		fd = openat(proc.fd, names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		out = fdopen(fd, "we");
		assert_non_null(out);
		if (i == 0)
			fputs(stat, out);
		for (size_t k = 0; i == 2 && k < n; k++)
			fprintf(out, "%zx-%zx rwxp 00000000 00:00 0\n", (k + 1) << 20,
				(k + 2) << 20);
		assert_int_equal(fclose(out), 0);
	}
	before = count_now();
	r = gounpacked_open(&proc, &id, EM_X86_64, &file);
	before = count_now() - before;
	assert_int_equal(r, GORUNTIME_OK);
	elffile_free(file);
	for (size_t i = 0; i < 3; i++)
		(void)unlinkat(proc.fd, (const char *[]){"7/stat", "7/mem", "7/maps"}[i], 0);
	assert_int_equal(unlinkat(proc.fd, "7", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(dir), 0);
	root_deinit(&proc);
	return before;
}

/* A core with the last mapping first. Each mapping is read. */
static uint64_t corefile_mappings_of(size_t n)
{
	const size_t n_notes = 12 + 8 + 16 + 24 * n + 2 * n;
	const size_t size = sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr) + (n + 1) * sizeof(Elf64_Phdr);
	const size_t notes_off = size + 64;
	uint8_t *bytes = calloc(1, notes_off + n_notes + 64), *note;
	Elf64_Ehdr eh = {.e_type = ET_CORE,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = (uint16_t)(n + 1),
			 .e_phoff = sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr)};
	const uint32_t head[3] = {5, (uint32_t)(n_notes - 20), NT_FILE};
	const uint64_t counts[2] = {n, 4096};
	struct corefile *core;
	uint64_t before;
	uint8_t got[16];

	assert_non_null(bytes);
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(bytes, &eh, sizeof(eh));
	for (size_t i = 0; i <= n; i++) {
		Elf64_Phdr ph = {.p_type = PT_LOAD,
				 .p_flags = PF_R | PF_X,
				 .p_vaddr = 4096 * (n - i),
				 .p_offset = size,
				 .p_filesz = 64,
				 .p_memsz = 4096};

		if (i == n)
			ph = (Elf64_Phdr){
				.p_type = PT_NOTE, .p_offset = notes_off, .p_filesz = n_notes};
		memcpy(bytes + eh.e_phoff + i * sizeof(ph), &ph, sizeof(ph));
	}
	note = bytes + notes_off;
	memcpy(note, head, sizeof(head));
	memcpy(note + 12, "CORE", 5);
	memcpy(note + 20, counts, sizeof(counts));
	for (size_t i = 0; i < n; i++) {
		const uint64_t mapping[3] = {4096 * (i + 1), 4096 * (i + 2), 0};

		memcpy(note + 36 + 24 * i, mapping, sizeof(mapping));
		memcpy(note + 36 + 24 * n + 2 * i, "a", 2);
	}
	before = count_now();
	assert_int_equal(corefile_open_memory(bytes, notes_off + n_notes + 64, &core), 0);
	for (size_t i = 0; i < n; i++)
		(void)memory_read(corefile_memory(core), 4096 * (i + 1), got, sizeof(got));
	corefile_free(core);
	before = count_now() - before;
	free(bytes);
	return before;
}

static const struct growth rows[] = {
	{"gopclntab: functions with one table", gopclntab_lines, 1024, GROWS},
	{"goruntime_file: words like a table's head", goruntime_words, 8192, GROWS},
	{"gosched: processors", gosched_procs, 128, GROWS},
	{"gounpacked: anonymous mappings", gounpacked_maps, 1024, GROWS},
	{"corefile: mappings", corefile_mappings_of, 2048, GROWS},
};

int main(void)
{
	return growth_main(rows, array_size(rows));
}
