// SPDX-License-Identifier: Apache-2.0
/* Unwind rows: agent/unwind, agent/codescan and agent/unwindtable. */
#include "support/test.h"

#include <string.h>

#include "codescan/codescan.h"
#include "complexity/count.h"
#include "complexity/elf.h"
#include "complexity/growth.h"
#include "elf/elffile.h"
#include "support/elfworst.h"
#include "unwind/coderanges.h"
#include "unwind/ehframe.h"
#include "unwind/gorows.h"
#include "unwind/synthetic.h"
#include "unwindtable/table.h"

#define TEXT ELFWORST_TEXT

/* ---------------------------------------------------------------- the code scan */

static uint64_t run_codescan(struct elfmake *m)
{
	struct elffile *file = open_made(m);
	uint64_t before, start, end;
	struct rows *known, *rows;
	struct codescan_stats stats;

	assert_int_equal(ehframe_text(file, &start, &end), 0);
	assert_int_equal(rows_new(start, end, &known), 0);
	assert_int_equal(rows_new(start, end, &rows), 0);
	assert_int_equal(rows_finish(known), 0);
	before = count_now();
	assert_int_equal(codescan_add(file, known, rows, &stats), 0);
	before = count_now() - before;
	rows_free(known);
	rows_free(rows);
	elffile_free(file);
	elfmake_deinit(m);
	return before;
}

/* All symbols with the same name, as long as the table. */
static uint64_t codeentries_name(size_t n)
{
	struct elfmake m;

	elfworst_one_name(&m, n);
	return run_codescan(&m);
}

/* Names of parts of cold functions, in a single string. */
static uint64_t codeentries_cold(size_t n)
{
	Elf64_Sym *symbols = elfworst_functions(n);
	char *names = elfworst_name(8 * n);
	struct elfmake m;

	for (size_t i = 0; i < n; i++) {
		symbols[i].st_name = (Elf64_Word)(1 + i);
		if (i)
			memcpy(names + 8 * i, ".cold", 5);
	}
	elfworst_symbols(&m, ET_DYN, 4096, symbols, n, names, 8 * n);
	return run_codescan(&m);
}

/* Writable segments with the same bytes. */
static uint64_t codeentries_segments(size_t n)
{
	struct elfmake m;

	elfworst_segments(&m, n, 1024 * n);
	return run_codescan(&m);
}

/* Executable segments over each other, with small gaps. */
static uint64_t codescan_segments(size_t n)
{
	struct elfmake m;
	size_t code;

	elfmake_init(&m, ET_DYN, 64 * n);
	code = elfmake_bytes(&m, NULL, 64 * n);
	memset(m.data + code, 0xc3, 64 * n);
	for (size_t i = 0; i < n; i++)
		elfmake_segment(&m, PT_LOAD, PF_R | PF_X, TEXT + i, code + i, 64 * n - i);
	return run_codescan(&m);
}

/* Sections that are all in the first segment, backwards; each next segment has fewer of them. */
static uint64_t coderanges_sections(size_t n)
{
	const size_t n_sections = 4 * n, n_bytes = 32 * n_sections;
	struct coderanges code;
	struct elffile *file;
	struct elfmake m;
	uint64_t before;
	size_t at, table;
	Elf64_Shdr *sections;
	Elf64_Ehdr *head;

	elfmake_init(&m, ET_DYN, n_bytes + n_sections * sizeof(*sections));
	at = elfmake_bytes(&m, NULL, n_bytes);
	table = elfmake_bytes(&m, NULL, n_sections * sizeof(*sections));
	for (size_t i = 0; i < n; i++)
		elfmake_segment(&m, PT_LOAD, PF_R | PF_X, TEXT + 128 * i, at + 128 * i,
				n_bytes - 128 * i);
	elfmake_finish(&m);
	head = (Elf64_Ehdr *)m.data;
	head->e_shoff = table;
	head->e_shnum = (uint16_t)n_sections;
	head->e_shstrndx = SHN_UNDEF;
	sections = (Elf64_Shdr *)(m.data + table);
	for (size_t i = 0; i < n_sections; i++)
		sections[i] = (Elf64_Shdr){
			.sh_type = SHT_PROGBITS,
			.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_addr = TEXT + 32 * (n_sections - 1 - i),
			.sh_offset = at + 32 * (n_sections - 1 - i),
			.sh_size = 16,
		};
	assert_int_equal(elffile_open_memory(m.data, m.n, &file), 0);
	before = count_now();
	assert_int_equal(coderanges_find(file, &code), 0);
	before = count_now() - before;
	coderanges_deinit(&code);
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* Guessed functions of 16 bytes. Each calls another function, found only by this call. */
static uint64_t codescan_calls(size_t n)
{
	struct elfmake m;
	size_t code;

	elfmake_init(&m, ET_DYN, 32 * n);
	code = elfmake_bytes(&m, NULL, 32 * n);
	memset(m.data + code, 0xcc, 32 * n);
	for (size_t i = 0; i < n; i++) {
		int32_t distance = (int32_t)(16 * n + 8 - 6);

		memcpy(m.data + code + 16 * i, "\x53\xe8", 2);
		memcpy(m.data + code + 16 * i + 2, &distance, sizeof(distance));
		memcpy(m.data + code + 16 * i + 6, "\x5b\xc3", 2);
		m.data[code + 16 * (n + i) + 8] = 0xc3;
	}
	elfmake_segment(&m, PT_LOAD, PF_R | PF_X, TEXT, code, 32 * n);
	return run_codescan(&m);
}

/* A single function of branches. */
static uint64_t codescan_branches(size_t n)
{
	struct elfmake m;
	size_t code;

	elfmake_init(&m, ET_DYN, 8 * n);
	code = elfmake_bytes(&m, NULL, 8 * n);
	for (size_t i = 0; i + 1 < 4 * n; i++)
		memcpy(m.data + code + 2 * i, "\x74\x10", 2);
	m.data[code + 8 * n - 2] = 0xc3;
	elfmake_segment(&m, PT_LOAD, PF_R | PF_X, TEXT, code, 8 * n);
	return run_codescan(&m);
}

/* ---------------------------------------------------------------- .eh_frame */

/* Rows of FDEs. fill() sets start, size and program of each FDE. */
static uint64_t run_ehframe(size_t n, void (*fill)(struct elfworst_fde *f, size_t i, size_t n),
			    size_t n_code)
{
	struct ehframe_stats stats = {0};
	struct elffile *file;
	struct rows *rows;
	struct table *table;
	struct elfmake m;
	uint64_t before;
	int r;

	elfworst_fdes(&m, n, fill, n_code);
	file = open_made(&m);
	assert_int_equal(rows_new(TEXT, TEXT + n_code, &rows), 0);
	before = count_now();
	assert_int_equal(ehframe_add(file, rows, &stats), 0);
	assert_int_equal(rows_finish(rows), 0);
	r = table_pack(rows, &table);
	assert_true(r >= 0);
	before = count_now() - before;
	assert_true(stats.fdes > n / 2);
	if (!r)
		table_free(table);
	rows_free(rows);
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* Each function inside the previous function. */
static uint64_t ehframe_nested(size_t n)
{
	return run_ehframe(n, elfworst_fill_nested, 2 * n);
}

/* From the end to the begin, each up to the end. */
static void fill_backwards(struct elfworst_fde *f, size_t i, size_t n)
{
	f->start = (uint32_t)(n - 1 - i);
	f->size = (uint32_t)(i + 1);
}

static uint64_t ehframe_backwards(size_t n)
{
	return run_ehframe(n, fill_backwards, n);
}

/* A rule for each function, up to the largest number of rules in a file. */
static void fill_rules(struct elfworst_fde *f, size_t i, size_t n)
{
	uint32_t value = (uint32_t)i;

	(void)n;
	f->start = (uint32_t)(32 * i);
	f->size = 32;
	f->program[0] = 0x0e;
	f->program[1] = (uint8_t)(value | 0x80);
	f->program[2] = (uint8_t)(value >> 7 | 0x80);
	f->program[3] = (uint8_t)(value >> 14 & 0x7f);
}

static uint64_t ehframe_rules(size_t n)
{
	return run_ehframe(n, fill_rules, 32 * n);
}

/* The functions around @n addresses, as for early rules. */
static uint64_t run_functions(size_t n, void (*fill)(struct elfworst_fde *f, size_t i, size_t n))
{
	struct ehframe_stats stats = {0};
	struct elffile *file;
	struct rows *rows;
	struct elfmake m;
	uint64_t before, *vaddrs = calloc(n, sizeof(*vaddrs));

	assert_non_null(vaddrs);
	elfworst_fdes(&m, n, fill, 32 * n);
	elfworst_index(&m, n);
	file = open_made(&m);
	for (size_t i = 0; i < n; i++)
		vaddrs[i] = TEXT + 32 * i;
	assert_int_equal(rows_new(TEXT, TEXT + 32 * n, &rows), 0);
	before = count_now();
	assert_int_equal(ehframe_add_functions(file, vaddrs, n, rows, &stats), 0);
	assert_int_equal(rows_finish(rows), 0);
	before = count_now() - before;
	assert_true(stats.fdes > 0);
	rows_free(rows);
	elffile_free(file);
	elfmake_deinit(&m);
	free(vaddrs);
	return before;
}

static uint64_t functions_rules(size_t n)
{
	return run_functions(n, fill_rules);
}

static uint64_t functions_growing(size_t n)
{
	return run_functions(n, elfworst_fill_growing);
}

/* glibc's function, again and again. */
static uint64_t synthetic_mpn(size_t n)
{
	static const char code[] = "\x53\x55\x48\x8d\x1a\x48\xf7\xdb\x48\x8b\x06\x4c\x8b\x17\x48"
				   "\x8d\x7c\xd7\xf0\x48\x8d\x34\xd6\x48\xf7\xe1\x5d\x5b\xc3";
	const size_t size = sizeof(code) - 1;
	struct elffile *file;
	struct elfmake m;
	struct rows *rows;
	uint64_t before;

	elfmake_init(&m, ET_DYN, n * size);
	for (size_t i = 0; i < n; i++)
		elfmake_bytes(&m, code, size);
	elfmake_segment(&m, PT_LOAD, PF_R | PF_X, TEXT, m.n - n * size, n * size);
	file = open_made(&m);
	assert_int_equal(rows_new(TEXT, TEXT + n * size, &rows), 0);
	before = count_now();
	assert_int_equal(synthetic_add(file, rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	before = count_now() - before;
	assert_true(rows_count(rows) > n);
	rows_free(rows);
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* ---------------------------------------------------------------- Go */

static uint64_t run_gorows(size_t n, bool over)
{
	struct gorows_stats stats;
	struct elffile *file;
	struct elfmake m;
	struct rows *rows;
	uint64_t before;

	elfworst_go(&m, n, over);
	file = open_made(&m);
	assert_int_equal(rows_new(TEXT, TEXT + 16 * n, &rows), 0);
	before = count_now();
	assert_int_equal(gorows_add_file(file, rows, &stats), 0);
	assert_int_equal(rows_finish(rows), 0);
	before = count_now() - before;
	assert_int_equal(stats.n_funcs, n);
	rows_free(rows);
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

static uint64_t gorows_functions(size_t n)
{
	return run_gorows(n, false);
}

static uint64_t gorows_over(size_t n)
{
	return run_gorows(n, true);
}

static const struct growth rows[] = {
	{"codeentries: symbols with one long name", codeentries_name, 2048, GROWS},
	{"codeentries: cold names in one string", codeentries_cold, 2048, GROWS},
	{"codeentries: segments of the same bytes", codeentries_segments, 64, GROWS},
	{"codescan: segments over each other", codescan_segments, 128, GROWS},
	{"coderanges: sections in all segments", coderanges_sections, 128, GROWS},
	{"codescan: calls of unknown functions", codescan_calls, 1024, GROWS},
	{"codescan: branches", codescan_branches, 2048, GROWS},
	{"ehframe: functions inside functions", ehframe_nested, 2048, GROWS},
	{"ehframe: functions backwards", ehframe_backwards, 2048, GROWS},
	{"ehframe: rules", ehframe_rules, 2048, GROWS},
	{"ehframe: functions of addresses", functions_rules, 2048, GROWS},
	{"ehframe: functions of addresses, FDEs inside FDEs", functions_growing, 512, GROWS},
	{"synthetic: repeated code", synthetic_mpn, 2048, GROWS},
	{"gorows: functions with one table", gorows_functions, 1024, GROWS},
	{"gorows: functions over the same code", gorows_over, 1024, GROWS},
};

int main(void)
{
	return growth_main(rows, array_size(rows));
}
