// SPDX-License-Identifier: Apache-2.0
/* Names of code: agent/symbolize without DWARF. */
#include "support/test.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/work_budget.h"
#include "complexity/count.h"
#include "complexity/elf.h"
#include "complexity/growth.h"
#include "elf/elffile.h"
#include "support/elfworst.h"
#include "support/jitmake.h"
#include "symbolize/demangle.h"
#include "symbolize/jitdump.h"
#include "symbolize/perf_map.h"
#include "symbolize/rustname.h"
#include "symbolize/source.h"
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
};

int main(void)
{
	return growth_main(rows, array_size(rows));
}
