// SPDX-License-Identifier: Apache-2.0
/* Names of code: agent/symbolize without DWARF. */
#include "support/test.h"

#include <fcntl.h>
#include <lzma.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/root.h"
#include "base/work_budget.h"
#include "complexity/count.h"
#include "complexity/elf.h"
#include "complexity/growth.h"
#include "elf/elffile.h"
#include "support/elfworst.h"
#include "support/jitmake.h"
#include "symbolize/debugdata.h"
#include "symbolize/demangle.h"
#include "symbolize/jitdump.h"
#include "symbolize/perf_map.h"
#include "symbolize/plt.h"
#include "symbolize/rustname.h"
#include "symbolize/source.h"
#include "symbolize/ksyms.h"
#include "symbolize/lookup.h"
#include "symbolize/symtab.h"

#define TEXT ELFWORST_TEXT

/* ---------------------------------------------------------------- symbols */

static uint64_t run_symtab(struct elfmake *m, uint64_t vaddr)
{
	struct symtab_symbol symbol;
	struct elffile *file = open_made(m);
	uint64_t before = count_now();
	struct symtab *t;

	assert_int_equal(symtab_open(file, &t), 0);
	for (int i = 0; i < 64; i++)
		(void)symtab_find(t, vaddr + (uint64_t)i, &symbol);
	symtab_free(t);
	before = count_now() - before;
	elffile_free(file);
	elfmake_deinit(m);
	return before;
}

/* A function, and labels without a size at the same address. */
static uint64_t symtab_labels(size_t n)
{
	struct elfmake m;

	elfworst_labels(&m, n);
	return run_symtab(&m, TEXT);
}

/* All symbols at the same address, with the same name. */
static uint64_t symtab_aliases(size_t n)
{
	Elf64_Sym *symbols = elfworst_functions(n);
	struct elfmake m;

	for (size_t i = 0; i < n; i++)
		symbols[i].st_size = i;
	elfworst_symbols(&m, ET_DYN, 4096, symbols, n, elfworst_name(8 * n), 8 * n);
	return run_symtab(&m, TEXT);
}

/* Untyped symbols, each with another long name. */
static uint64_t symtab_untyped(size_t n)
{
	Elf64_Sym *symbols = elfworst_functions(n);
	struct elfmake m;

	for (size_t i = 0; i < n; i++) {
		symbols[i].st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE);
		symbols[i].st_name = (Elf64_Word)(1 + i);
		symbols[i].st_value = TEXT + i;
	}
	elfworst_symbols(&m, ET_DYN, n, symbols, n, elfworst_name(8 * n), 8 * n);
	return run_symtab(&m, TEXT);
}

/* Mangled names with arguments in each other, and the same again by substitution. */
static uint64_t symtab_mangled(size_t n)
{
	static const char cxx[] = "_Z1fI1tIS0_IS1_IS2_IS3_IiEEEEEEvv", rust[] = "_RINvC1a1bTB4_EE";
	const size_t size = sizeof(cxx) > sizeof(rust) ? sizeof(cxx) : sizeof(rust);
	Elf64_Sym *symbols = elfworst_functions(n);
	char *names = calloc(n + 1, size);
	struct symbol_lines lines;
	struct elffile *file;
	struct elfmake m;
	struct arena memory;
	uint64_t before;
	void *opened;

	assert_non_null(names);
	for (size_t i = 0; i < n; i++) {
		strcpy(names + 1 + i * size, i % 2 ? cxx : rust);
		symbols[i].st_name = (Elf64_Word)(1 + i * size);
		symbols[i].st_value = TEXT + 16 * i;
		symbols[i].st_size = 16;
	}
	elfworst_symbols(&m, ET_DYN, 16 * n, symbols, n, names, (n + 1) * size);
	file = open_made(&m);
	arena_init(&memory, SIZE_MAX);
	before = count_now();
	assert_int_equal(source_symtab.open(&(struct source_file){.elf = file}, &opened), 0);
	for (size_t i = 0; i < n; i++) {
		lines = (struct symbol_lines){.memory = &memory};
		assert_int_equal(source_symtab.find(opened, TEXT + 16 * i, &lines), 0);
		assert_int_equal(lines.n, 1);
	}
	source_symtab.free(opened);
	before = count_now() - before;
	arena_deinit(&memory);
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* Nested types, repeated. */
static uint64_t rustname_types(size_t n)
{
	char name[RUSTNAME_MAX + 2] = "_RINvC1a1bT", readable[DEMANGLE_NAME_MAX];
	struct rustname found;
	uint64_t before;

	memset(name + strlen(name), 'h', n);
	strcat(name, "EE");
	before = count_now();
	assert_true(rustname_check(name, &found));
	(void)demangle(name, readable);
	return count_now() - before;
}

/* A readable name. */
static uint64_t run_demangle(const char *name)
{
	char readable[DEMANGLE_NAME_MAX];
	uint64_t before = count_now();

	assert_true(demangle(name, readable));
	return count_now() - before;
}

/* Types of two references to the type before: @n of them stand for 2^n. */
static uint64_t rustname_references(size_t n)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	struct buf name = BUF_INIT(RUSTNAME_MAX);
	size_t last = 0;
	uint64_t work;

	assert_int_equal(buf_puts(&name, "_RINvC1a1bThE"), 0);
	last = name.len - 3 - 2; /* behind "_R" */
	for (size_t i = 0; i < n; i++) {
		const size_t here = name.len - 2, to = last - 1;

		assert_int_equal(buf_puts(&name, "T"), 0);
		for (int k = 0; k < 2; k++)
			assert_int_equal(to < 62 ? buf_printf(&name, "B%c_", digits[to])
						 : buf_printf(&name, "B%c%c_", digits[to / 62],
							      digits[to % 62]),
					 0);
		assert_int_equal(buf_puts(&name, "E"), 0);
		last = here;
	}
	assert_int_equal(buf_puts(&name, "E"), 0);
	work = run_demangle(name.data);
	buf_deinit(&name);
	return work;
}

/* The same in C++. */
static uint64_t cxx_references(size_t n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	struct buf name = BUF_INIT(RUSTNAME_MAX);
	uint64_t work;

	assert_int_equal(buf_puts(&name, "_Z1fI1tIiiE"), 0);
	for (size_t i = 1; i <= n; i++)
		assert_int_equal(i < 36 ? buf_printf(&name, "S0_IS%c_S%c_E", digits[i], digits[i])
					: buf_printf(&name, "S0_IS1%c_S1%c_E", digits[i - 36],
						     digits[i - 36]),
				 0);
	assert_int_equal(buf_puts(&name, "Evv"), 0);
	work = run_demangle(name.data);
	buf_deinit(&name);
	return work;
}

/* The ends of many clones. */
static uint64_t demangle_clones(size_t n)
{
	struct buf name = BUF_INIT(RUSTNAME_MAX);
	uint64_t work;

	assert_int_equal(buf_puts(&name, "f"), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_puts(&name, ".cold.1"), 0);
	work = run_demangle(name.data);
	buf_deinit(&name);
	return work;
}

/* ---------------------------------------------------------------- stubs, debug data */

/* Slots from the last to the first, each with two relocations, and stubs that jump through them. */
static uint64_t plt_slots(size_t n)
{
	const uint64_t got = TEXT + 0x10000000;
	Elf64_Rela *relas = calloc(2 * n, sizeof(*relas));
	Elf64_Sym *symbols = elfworst_functions(n + 1);
	char *names = elfworst_name(64), name[PLT_NAME_MAX];
	struct elffile *file;
	struct elfmake m;
	size_t at, strings, dynsym;
	uint64_t before;
	struct plt *plt;

	assert_non_null(relas);
	for (size_t i = 0; i < 2 * n; i++)
		relas[i] = (Elf64_Rela){.r_offset = got + 8 * ((2 * n - 1 - i) / 2),
					.r_info = ELF64_R_INFO(1 + i / 2, R_X86_64_JUMP_SLOT)};
	elfmake_init(&m, ET_DYN, 16 * n + 2 * n * sizeof(*relas) + (n + 1) * sizeof(*symbols) + 64);
	at = elfmake_bytes(&m, NULL, 16 * n);
	for (size_t i = 0; i < n; i++) {
		const int32_t distance = (int32_t)(got + 8 * i - (TEXT + 16 * i + 6));

		memcpy(m.data + at + 16 * i, "\xff\x25", 2);
		memcpy(m.data + at + 16 * i + 2, &distance, sizeof(distance));
	}
	elfmake_section(&m, ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, at, 16 * n);
	elfmake_segment(&m, PT_LOAD, PF_R | PF_X, TEXT, at, 16 * n);
	at = elfmake_bytes(&m, names, 64);
	strings = elfmake_section(&m, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0, at, 64);
	at = elfmake_bytes(&m, symbols, (n + 1) * sizeof(*symbols));
	dynsym = elfmake_section(&m, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, at,
				 (n + 1) * sizeof(*symbols));
	m.sh[dynsym].sh_link = (Elf64_Word)strings;
	m.sh[dynsym].sh_entsize = sizeof(*symbols);
	at = elfmake_bytes(&m, relas, 2 * n * sizeof(*relas));
	at = elfmake_section(&m, ".rela.plt", SHT_RELA, SHF_ALLOC, 0, at, 2 * n * sizeof(*relas));
	m.sh[at].sh_entsize = sizeof(*relas);
	file = open_made(&m);
	before = count_now();
	assert_int_equal(plt_open(file, &plt), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(plt_find(plt, TEXT + 16 * i, name), 0);
	plt_free(plt);
	before = count_now() - before;
	elffile_free(file);
	elfmake_deinit(&m);
	free(relas);
	free(symbols);
	free(names);
	return before;
}

/* @n pieces of @n_piece zeros, each compressed as a block of its own. */
static uint64_t run_debugdata(size_t n, size_t n_piece)
{
	lzma_filter filters[] = {
		{LZMA_FILTER_LZMA2, &(lzma_options_lzma){0}},
		{LZMA_VLI_UNKNOWN, NULL},
	};
	const size_t room = n * (n_piece / 64 + 256) + 4096;
	uint8_t *packed = malloc(room), *piece = calloc(1, n_piece);
	lzma_stream xz = LZMA_STREAM_INIT;
	struct elffile *file;
	struct elfmake m;
	uint64_t before;
	void *bytes = NULL;
	size_t n_bytes = 0, at;

	assert_true(packed && piece);
	assert_false(lzma_lzma_preset(filters[0].options, 0));
	assert_int_equal(lzma_stream_encoder(&xz, filters, LZMA_CHECK_CRC32), LZMA_OK);
	xz.next_out = packed;
	xz.avail_out = room;
	for (size_t i = 0; i < n; i++) {
		xz.next_in = piece;
		xz.avail_in = n_piece;
		while (lzma_code(&xz, LZMA_FULL_FLUSH) != LZMA_STREAM_END)
			;
	}
	while (lzma_code(&xz, LZMA_FINISH) != LZMA_STREAM_END)
		;
	elfmake_init(&m, ET_DYN, xz.total_out);
	at = elfmake_bytes(&m, packed, xz.total_out);
	elfmake_section(&m, ".gnu_debugdata", SHT_PROGBITS, 0, 0, at, xz.total_out);
	file = open_made(&m);
	before = count_now();
	assert_int_equal(debugdata_read(file, &bytes, &n_bytes), 0);
	before = count_now() - before;
	assert_int_equal(n_bytes, n * n_piece);
	lzma_end(&xz);
	free(bytes);
	free(packed);
	free(piece);
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

static uint64_t debugdata_zeros(size_t n)
{
	return run_debugdata(1, n);
}

static uint64_t debugdata_blocks(size_t n)
{
	return run_debugdata(n, 1);
}

/* ---------------------------------------------------------------- the kernel */

/* A /proc/kallsyms of our own. */
static uint64_t run_ksyms(struct buf *text, size_t n)
{
	char dir[] = "/tmp/podprof-test-XXXXXX";
	struct ksyms_name name;
	struct root proc;
	struct ksyms *k;
	uint64_t before, start;
	int fd;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(root_open(dir, &proc), 0);
	fd = openat(proc.fd, "kallsyms", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text->data, text->len), text->len);
	close(fd);
	before = count_now();
	assert_int_equal(ksyms_load(&proc, &k), 0);
	for (size_t i = 0; i < n; i++)
		(void)ksyms_find(k, 0xffff000000000000u + 16 * i, &name, &start);
	ksyms_free(k);
	before = count_now() - before;
	assert_int_equal(unlinkat(proc.fd, "kallsyms", 0), 0);
	assert_int_equal(rmdir(dir), 0);
	root_deinit(&proc);
	buf_deinit(text);
	return before;
}

/* Functions of modules from the last to the first, in names without a common word. */
static uint64_t ksyms_backwards(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = n; i-- > 0;)
		assert_int_equal(buf_printf(&text, "%zx t f%zu_%zu\t[m%zu]\n",
					    (size_t)0xffff000000000000u + 16 * i, i, i * i, i),
				 0);
	return run_ksyms(&text, n);
}

/* All at one address, in long names that differ at the end. */
static uint64_t ksyms_aliases(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(
			buf_printf(&text, "%zx t %0200zu\n", (size_t)0xffff000000000000u, n - i),
			0);
	return run_ksyms(&text, n);
}

/* ---------------------------------------------------------------- perf maps */

static uint64_t run_perf_map(struct buf *text)
{
	uint64_t events[PERF_MAP_EVENT_MAX] = {0}, before;
	int fd = memfd_create("map", MFD_CLOEXEC);
	struct work_budget work;
	struct perf_map *m;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text->data, text->len), text->len);
	assert_int_equal(perf_map_new(events, &m), 0);
	work_budget_init(&work, UINT64_MAX, UINT64_MAX / 2, NULL);
	before = count_now();
	assert_int_equal(perf_map_read(m, fd, &work), 0);
	before = count_now() - before;
	assert_int_equal(events[PERF_MAP_FULL], 0);
	assert_true(perf_map_n(m) > 0);
	perf_map_free(m);
	close(fd);
	buf_deinit(text);
	return before;
}

/* Each function replaces the middle of the one before. */
static uint64_t perf_map_nested(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&text, "%zx %zx f\n", 0x1000 + i, 2 * (n - i)), 0);
	return run_perf_map(&text);
}

/* Each replaces all before. */
static uint64_t perf_map_growing(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&text, "%zx %zx f\n", 0x100000 - i, 2 * i + 1), 0);
	return run_perf_map(&text);
}

/* The newest lie over each other's ends, the oldest below all. */
static uint64_t perf_map_backwards(size_t n)
{
	struct buf text = BUF_INIT(64u << 20);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&text, "%zx %zx f\n", 0x1000 + 8 * (n - i), n), 0);
	return run_perf_map(&text);
}

static uint64_t run_jitdump(struct buf *bytes)
{
	uint64_t events[JITDUMP_EVENT_MAX] = {0}, before;
	int fd = memfd_create("dump", MFD_CLOEXEC);
	struct work_budget work;
	struct jitdump *j;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes->data, bytes->len), bytes->len);
	assert_int_equal(jitdump_new(events, &j), 0);
	work_budget_init(&work, UINT64_MAX, UINT64_MAX / 2, NULL);
	before = count_now();
	assert_int_equal(jitdump_read(j, fd, &work), 0);
	before = count_now() - before;
	assert_int_equal(events[JITDUMP_FULL] + events[JITDUMP_CUT], 0);
	assert_true(jitdump_n(j) > 0);
	jitdump_free(j);
	close(fd);
	buf_deinit(bytes);
	return before;
}

/* A function with lines is cut by others, so that each part has the lines. */
static uint64_t jitdump_lines(size_t n)
{
	const struct jitmake_line line = {0x1000, 10, "/a/b.js"};
	const struct jitmake_header header = jitmake_this();
	struct buf bytes = BUF_INIT(64u << 20);

	jitmake_header(&bytes, &header);
	jitmake_lines(&bytes, 0x1000, &line, 1);
	jitmake_load(&bytes, 0x1000, 16 * n, "f", 0);
	for (size_t i = 0; i < n; i++)
		jitmake_load(&bytes, 0x1000 + 16 * i, 8, "g", 0);
	return run_jitdump(&bytes);
}

static const struct growth rows[] = {
	{"perf_map: functions inside functions", perf_map_nested, 4096, GROWS},
	{"perf_map: functions over functions", perf_map_growing, 4096, GROWS},
	{"perf_map: functions backwards", perf_map_backwards, 4096, GROWS},
	{"jitdump: parts of a function with lines", jitdump_lines, 4096, GROWS},
	{"symtab: labels inside a function", symtab_labels, 4096, GROWS},
	{"symtab: aliases", symtab_aliases, 16384, GROWS},
	{"symtab: untyped symbols with long names", symtab_untyped, 4096, GROWS},
	{"symtab: mangled names", symtab_mangled, 1024, GROWS},
	{"rustname: types", rustname_types, 100, GROWS},
	{"rustname: references to references", rustname_references, 12, ENDS},
	{"demangle: references to references", cxx_references, 12, ENDS},
	{"demangle: ends of clones", demangle_clones, 16, GROWS},
	{"plt: slots backwards", plt_slots, 1024, GROWS},
	{"debugdata: zeros", debugdata_zeros, 1 << 18, GROWS},
	{"debugdata: blocks of one byte", debugdata_blocks, 256, GROWS},
	{"ksyms: functions backwards", ksyms_backwards, 2048, GROWS},
	{"ksyms: aliases", ksyms_aliases, 1024, GROWS},
};

int main(void)
{
	return growth_main(rows, array_size(rows));
}
