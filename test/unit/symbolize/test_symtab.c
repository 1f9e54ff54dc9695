// SPDX-License-Identifier: Apache-2.0
/*
 * The truth comes from readelf, over all functions of real files; the odd cases from an assembly
 * file of our own.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/nsec.h"
#include "base/work_budget.h"
#include "elf/elffile.h"
#include "support/allocfail.h"
#include "support/elfmake.h"
#include "support/fixture.h"
#include "symbolize/symname.h"
#include "symbolize/symtab.h"

/* ---------------------------------------------------------------- readelf's symbols */

struct truth_symbol {
	uint64_t vaddr;
	uint64_t size;
	bool function; /* FUNC or IFUNC */
	char name[SYMTAB_NAME_MAX];
};

struct truth {
	struct truth_symbol *items;
	size_t n;
};

static void truth_deinit(struct truth *t)
{
	free(t->items);
}

/* "   Num: Value Size Type Bind Vis Ndx Name", both tables */
static bool parse_symbol(char *line, struct truth_symbol *ret)
{
	char size[32], type[16], section[16], name[SYMTAB_NAME_MAX];
	unsigned long long vaddr;

	// NOLINTNEXTLINE(cert-err34-c): readelf, nm and the kernel write numbers
	if (sscanf(line, " %*u: %llx %31s %15s %*s %*s %15s %4095s", &vaddr, size, type, section,
		   name) != 5 ||
	    strcmp(section, "UND") == 0 || strcmp(section, "ABS") == 0)
		return false;
	ret->vaddr = vaddr;
	ret->size = strtoull(size, NULL, 0);
	ret->function = strcmp(type, "FUNC") == 0 || strcmp(type, "IFUNC") == 0;
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	symname_cut_version(ret->name);
	return ret->function || strcmp(type, "NOTYPE") == 0;
}

static int compare(const void *a, const void *b)
{
	const struct truth_symbol *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void ask_readelf(const char *path, struct truth *t)
{
	char command[FIXTURE_PATH_MAX + 64], line[2 * SYMTAB_NAME_MAX];
	size_t cap = 0;
	FILE *out;

	snprintf(command, sizeof(command), "LC_ALL=C readelf -sW '%s' 2>/dev/null", path);
	out = popen(command, "re");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out)) {
		if (t->n == cap) {
			cap = cap ? 2 * cap : 64;
			t->items = reallocarray(t->items, cap, sizeof(*t->items));
			assert_non_null(t->items);
		}
		t->n += parse_symbol(line, &t->items[t->n]);
	}
	assert_int_equal(pclose(out), 0);
	qsort(t->items, t->n, sizeof(*t->items), compare);
}

/* The number of symbols with a start at or before @vaddr. */
static size_t count_up_to(const struct truth *t, uint64_t vaddr)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->items[mid].vaddr <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The last start of a sized function around @vaddr. */
static bool innermost(const struct truth *t, uint64_t vaddr, uint64_t *ret)
{
	size_t end = count_up_to(t, vaddr), stop = end > 4096 ? end - 4096 : 0;

	for (size_t i = end; i > stop; i--) {
		const struct truth_symbol *s = &t->items[i - 1];

		*ret = s->vaddr;
		if (s->function && vaddr - s->vaddr < s->size)
			return true;
	}
	return false;
}

static bool has_name(const struct truth *t, const struct symtab_symbol *symbol)
{
	for (size_t i = count_up_to(t, symbol->vaddr);
	     i > 0 && t->items[i - 1].vaddr == symbol->vaddr; i--)
		if (strcmp(t->items[i - 1].name, symbol->name) == 0)
			return true;
	return false;
}

/* ---------------------------------------------------------------- real files */

static struct elffile *open_file(const char *path)
{
	struct elffile *file;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elffile_open(fd, &file), 0);
	return file;
}

/* The result at @vaddr agrees with readelf: the innermost function around the address, under any
 * name of the function; without such a function, only an unsized symbol, near and before. */
static void check_address(const struct truth *truth, const struct symtab *t, uint64_t vaddr)
{
	struct symtab_symbol symbol;
	uint64_t start;
	bool known = innermost(truth, vaddr, &start);
	int r = symtab_find(t, vaddr, &symbol);

	if (known && (r != 0 || symbol.vaddr != start))
		fail_msg("at %#llx: got %s, want the function at %#llx", (unsigned long long)vaddr,
			 r ? "nothing" : symbol.name, (unsigned long long)start);
	if (r)
		return;
	if (!has_name(truth, &symbol))
		fail_msg("at %#llx: %s is no name of it", (unsigned long long)vaddr, symbol.name);
	if (symbol.size ? vaddr - symbol.vaddr >= symbol.size : vaddr - symbol.vaddr >= 4096)
		fail_msg("at %#llx: %s ends before", (unsigned long long)vaddr, symbol.name);
}

static void check_file(const char *path, size_t n_min)
{
	_cleanup_(truth_deinit) struct truth truth = {0};
	struct elffile *file = open_file(path);
	struct symtab *t;
	size_t n = 0, bytes;

	row_begin(path);
	ask_readelf(path, &truth);
	assert_int_equal(symtab_open(file, &t), 0);
	for (size_t i = 0; i < truth.n; i++) {
		const struct truth_symbol *s = &truth.items[i];

		if (!s->function || !s->size)
			continue;
		n++;
		check_address(&truth, t, s->vaddr);
		check_address(&truth, t, s->vaddr + s->size / 2);
		check_address(&truth, t, s->vaddr + s->size - 1);
		check_address(&truth, t, s->vaddr + s->size);
		if (s->vaddr)
			check_address(&truth, t, s->vaddr - 1);
	}
	print_message("%zu functions, %zu bytes each\n", n, symtab_bytes(t) / n);
	assert_true(n >= n_min);
	bytes = symtab_bytes(t);
	symtab_drop_blocks(t);
	assert_true(symtab_bytes(t) < bytes);
	bytes = symtab_bytes(t);
	for (size_t i = 0; i < truth.n; i++)
		if (truth.items[i].function && truth.items[i].size)
			check_address(&truth, t, truth.items[i].vaddr);
	assert_true(n < 32 || symtab_bytes(t) > bytes); /* read again */
	symtab_free(t);
	elffile_free(file);
}

/* The path of a library, by the compiler. */
static void find_library(const char *name, char ret[FIXTURE_PATH_MAX])
{
	char command[128];
	FILE *out;

	snprintf(command, sizeof(command), "g++ -print-file-name=%s", name);
	out = popen(command, "re");
	assert_non_null(out);
	assert_non_null(fgets(ret, FIXTURE_PATH_MAX, out));
	assert_int_equal(pclose(out), 0);
	ret[strcspn(ret, "\n")] = '\0';
}

static void test_real_files(void **state)
{
	char path[FIXTURE_PATH_MAX];

	(void)state;
	assert_non_null(realpath("/proc/self/exe", path));
	check_file(path, 80);
	find_library("libc.so.6", path);
	check_file(path, 2000);
	find_library("libstdc++.so.6", path);
	check_file(path, 3000);
	check_file(fixture_path("plain-pie", path), 3);
	check_file(fixture_path("plain-fixed", path), 3);
	check_file(fixture_path("plain-static", path), 500);
	check_file(fixture_path("cxx", path), 4);
}

static void test_without_functions(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct elffile *file = open_file(fixture_path("plain-stripped", path));
	struct symtab *t;

	(void)state;
	assert_int_equal(symtab_open(file, &t), SYMTAB_ABSENT);
	elffile_free(file);
}

/* ---------------------------------------------------------------- odd cases */

struct asm_row {
	const char *name;
	const char *from;
	unsigned int nops; /* behind @from */
	const char *want;  /* NULL: nothing */
};

static const struct asm_row asm_rows[] = {
	{"first", "sized", 0, "sized"},
	{"last", "sized", 3, "sized"},
	{"behind the end", "sized", 4, NULL},
	{"no size, first", "unsized", 0, "unsized"},
	{"no size, far from its code", "unsized", 15, "unsized"},
	{"no type", "untyped", 1, "untyped"},
	{"no size, local", "local_unsized", 1, "local_unsized"},
	{"outer", "around", 3, "around"},
	{"inner, first", "inside", 0, "inside"},
	{"inner, last", "inside", 1, "inside"},
	{"outer again, at a label", "inner_label", 0, "around"},
	{"outer again, last", "inner_label", 7, "around"},
	{"outer, behind the end", "inner_label", 8, NULL},
	{"no size, near", "far", 1, "far"},
	{"start", "_start", 0, "_start"},
	{"behind the section", "_start", 4096, NULL},
	{"data", "data_function", 0, NULL},
};

static uint64_t vaddr_of(const struct truth *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->items[i].name, name) == 0)
			return t->items[i].vaddr;
	fail_msg("no symbol %s", name);
	return 0;
}

static void check_row(const struct symtab *t, uint64_t vaddr, const char *want)
{
	struct symtab_symbol symbol;
	int r = symtab_find(t, vaddr, &symbol);

	assert_int_equal(r, want ? 0 : SYMTAB_NOT_FOUND);
	if (want)
		assert_string_equal(symbol.name, want);
}

static void test_assembly(void **state)
{
	_cleanup_(truth_deinit) struct truth truth = {0};
	char path[FIXTURE_PATH_MAX];
	struct elffile *file = open_file(fixture_path("asm", path));
	struct symtab *t;
	uint64_t nop;

	(void)state;
	ask_readelf(path, &truth);
	assert_int_equal(symtab_open(file, &t), 0);
	nop = (vaddr_of(&truth, "inside") - vaddr_of(&truth, "around")) / 4;
	for (size_t i = 0; i < array_size(asm_rows); i++) {
		const struct asm_row *row = &asm_rows[i];

		row_begin(row->name);
		check_row(t, vaddr_of(&truth, row->from) + row->nops * nop, row->want);
	}
	check_row(t, vaddr_of(&truth, "far") + 4095, "far");
	check_row(t, vaddr_of(&truth, "far") + 4096, NULL);
	check_row(t, 0, NULL);
	check_row(t, UINT64_MAX, NULL);
	symtab_free(t);
	elffile_free(file);
}

static void test_aliases(void **state)
{
	_cleanup_(truth_deinit) struct truth truth = {0};
	char path[FIXTURE_PATH_MAX];
	struct elffile *file = open_file(fixture_path("plain-pie", path));
	struct symtab *t;

	(void)state;
	ask_readelf(path, &truth);
	assert_int_equal(symtab_open(file, &t), 0);
	check_row(t, vaddr_of(&truth, "weak_alias"), "global_function");
	check_row(t, vaddr_of(&truth, "local_function"), "local_function");
	symtab_free(t);
	elffile_free(file);
}

/* One function with a global name and so many local ones, which sort behind it. */
static struct elffile *many_names(size_t n, struct elfmake *m)
{
	_cleanup_(freep) Elf64_Sym *symbols = calloc(n + 2, sizeof(*symbols));
	_cleanup_(freep) char *strings = calloc(n + 2, 8);
	const uint64_t vaddr = 0x1000, bytes = 64;
	size_t off, strtab, symtab, at = 1;
	struct elffile *file;
	int fd;

	for (size_t i = 1; i < n + 2; i++) {
		symbols[i] = (Elf64_Sym){
			.st_name = (uint32_t)at,
			.st_info = ELF64_ST_INFO(i == 1 ? STB_GLOBAL : STB_LOCAL, STT_FUNC),
			.st_shndx = 1,
			.st_value = vaddr,
			.st_size = bytes,
		};
		at += (size_t)sprintf(strings + at, i == 1 ? "global" : "l%04zu", i) + 1;
	}
	elfmake_init(m, ET_EXEC, 0x8000 + n * 64);
	off = elfmake_bytes(m, NULL, bytes);
	elfmake_section(m, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, vaddr, off, bytes);
	elfmake_segment(m, PT_LOAD, PF_R | PF_X, vaddr, off, bytes);
	off = elfmake_bytes(m, strings, at);
	strtab = elfmake_section(m, ".strtab", SHT_STRTAB, 0, 0, off, at);
	off = elfmake_bytes(m, symbols, (n + 2) * sizeof(*symbols));
	symtab = elfmake_section(m, ".symtab", SHT_SYMTAB, 0, 0, off, (n + 2) * sizeof(*symbols));
	m->sh[symtab].sh_link = (uint32_t)strtab;
	m->sh[symtab].sh_entsize = sizeof(*symbols);
	elfmake_finish(m);
	fd = memfd_create("many", MFD_CLOEXEC);
	assert_int_equal(write(fd, m->data, m->n), m->n);
	assert_int_equal(elffile_open(fd, &file), 0);
	return file;
}

/* The best of very many names is found, as linkers make them that fold equal functions. */
static void test_many_aliases(void **state)
{
	static const size_t rows[] = {1, 63, 64, 65, 1000};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_(elfmake_deinit) struct elfmake m;
		struct elffile *file = many_names(rows[i], &m);
		struct symtab *t;

		assert_int_equal(symtab_open(file, &t), 0);
		check_row(t, 0x1000, "global");
		check_row(t, 0x103f, "global");
		symtab_free(t);
		elffile_free(file);
	}
}

/* ---------------------------------------------------------------- budget */

static void give(struct work_budget *work, uint64_t units)
{
	work_budget_init(work, units, 100 * NSEC_PER_SEC, NULL);
}

/* The table for dynamic linking is within the budget, the other one is not. */
static void test_part(void **state)
{
	_cleanup_(truth_deinit) struct truth truth = {0};
	char path[FIXTURE_PATH_MAX];
	struct elffile *file = open_file(fixture_path("plugin_ant", path)), *budgeted;
	struct work_budget work;
	struct symtab *t = NULL;
	uint64_t all;

	(void)state;
	ask_readelf(path, &truth);
	give(&work, UINT64_MAX);
	assert_int_equal(elffile_budgeted(file, &work, &budgeted), 0);
	assert_int_equal(symtab_open(budgeted, &t), 0);
	all = work.spent;
	check_row(t, vaddr_of(&truth, "frame_dummy"), "frame_dummy");
	symtab_free(take_ptr(t));
	give(&work, all - 1);
	assert_int_equal(symtab_open(budgeted, &t), SYMTAB_ABANDONED);
	assert_non_null(t);
	give(&work, UINT64_MAX);
	check_row(t, vaddr_of(&truth, "frame_dummy"), NULL);
	check_row(t, vaddr_of(&truth, "plugin_work"), "plugin_work");
	symtab_free(take_ptr(t));
	give(&work, 1);
	assert_int_equal(symtab_open(budgeted, &t), SYMTAB_ABANDONED);
	assert_null(t);
	elffile_free(budgeted);
	elffile_free(file);
}

/* ---------------------------------------------------------------- names */

static void test_versions(void **state)
{
	static const char *const rows[][2] = {
		{"memcpy", "memcpy"},
		{"memcpy@@GLIBC_2.14", "memcpy"},
		{"memcpy@GLIBC_2.2.5", "memcpy"},
		{"f@V-1_x.y", "f"},
		{"a@b c", "a@b c"},
		{"a@", "a@"},
		{"a@@", "a@@"},
		{"@x", "@x"},
		{"a@b@c", "a@b@c"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		char name[64];

		row_begin(rows[i][0]);
		snprintf(name, sizeof(name), "%s", rows[i][0]);
		symname_cut_version(name);
		assert_string_equal(name, rows[i][1]);
	}
}

static void test_marks_and_choice(void **state)
{
	(void)state;
	assert_true(symname_is_mark("$x") && symname_is_mark("$d.12") && symname_is_mark(".L3"));
	assert_false(symname_is_mark("$") || symname_is_mark("$dx") || symname_is_mark("x") ||
		     symname_is_mark(".text") || symname_is_mark(""));
	assert_true(symname_is_better("read", "__read"));
	assert_true(symname_is_better("read", "read_it"));
	assert_true(symname_is_better("longer_name", "_x"));
	assert_true(symname_is_better("a", "b"));
	assert_false(symname_is_better("a", "a"));
}

static int open_and_close(void *ctx)
{
	struct symtab *t = NULL;
	int r = symtab_open(ctx, &t);

	symtab_free(t);
	return r;
}

static void test_out_of_memory(void **state)
{
	char path[FIXTURE_PATH_MAX];
	struct elffile *file = open_file(fixture_path("cxx", path));

	(void)state;
	allocfail_survive(open_and_close, file); /* shrinking may fail */
	elffile_free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_files),    cmocka_unit_test(test_without_functions),
		cmocka_unit_test(test_assembly),      cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_many_aliases),  cmocka_unit_test(test_part),
		cmocka_unit_test(test_versions),      cmocka_unit_test(test_marks_and_choice),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
