// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <elf.h>
#include <string.h>

#include "support/allocfail.h"
#include "support/ehimage.h"
#include "support/elfmake.h"
#include "unwindtable/compile.h"
#include "unwind/rowtext.h"
#include "unwind/synthetic.h"

static const char glibc_x86[] = "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05";
static const char musl_x86[] = "\xb8\x0f\x00\x00\x00\x0f\x05";
static const char vdso_arm64[] = "\x68\x11\x80\xd2\x01\x00\x00\xd4";

#define BYTES(s) (s), sizeof(s) - 1

struct synthetic_row {
	const char *name;
	uint16_t machine;
	const char *bytes;
	size_t n;
	size_t at; /* in the code */
	bool found;
};

static const struct synthetic_row synthetic_rows[] = {
	{"glibc's", EM_X86_64, BYTES(glibc_x86), 100, true},
	{"musl's", EM_X86_64, BYTES(musl_x86), 100, true},
	{"the vDSO's", EM_AARCH64, BYTES(vdso_arm64), 100, true},
	{"of the other architecture", EM_X86_64, BYTES(vdso_arm64), 100, false},
	{"across two pieces", EM_X86_64, BYTES(glibc_x86), (32 << 10) - 4, true},
	{"the last byte in the next piece", EM_X86_64, BYTES(glibc_x86), (32 << 10) - 8, true},
	{"the last place in the piece", EM_X86_64, BYTES(glibc_x86), (32 << 10) - 26, true},
	{"the first place in the next piece", EM_X86_64, BYTES(glibc_x86), (32 << 10) - 25, true},
	{"all in the next piece", EM_X86_64, BYTES(glibc_x86), 32 << 10, true},
	{"the last bytes of all", EM_X86_64, BYTES(glibc_x86), (40 << 10) - 9, true},
	{"cut", EM_X86_64, BYTES(glibc_x86), (40 << 10) - 8, false},
	{"where nobody returns to", EM_X86_64, BYTES(glibc_x86), 0, false},
};

static void *build(const struct synthetic_row *row, size_t *ret_n)
{
	static uint8_t text[40 << 10];
	struct ehimage image = {.machine = row->machine, .text = text, .n_text = sizeof(text)};

	/* the search looks for this byte first */
	memset(text, row->bytes[row->n - 1], sizeof(text));
	memcpy(text + row->at, row->bytes,
	       row->n < sizeof(text) - row->at ? row->n : sizeof(text) - row->at);
	return ehimage_build(&image, ret_n);
}

static void test_trampolines(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(synthetic_rows); i++) {
		const struct synthetic_row *row = &synthetic_rows[i];
		_cleanup_(elffile_freep) struct elffile *file = NULL;
		_cleanup_(rows_freep) struct rows *rows = NULL;
		_cleanup_(freep) void *bytes = NULL;
		struct ehframe_stats stats;
		size_t n;

		row_begin(row->name);
		bytes = build(row, &n);
		assert_non_null(bytes);
		assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
		assert_int_equal(compile_image(file, &stats, &rows), 0);
		assert_int_equal(rows_count(rows), row->found ? 2 : 0);
		if (!row->found)
			continue;
		assert_int_equal(rows_at(rows, 0).vaddr, EHIMAGE_TEXT + row->at - 1);
		assert_int_equal(rows_rule(rows, rows_at(rows, 0).rule)->cfa, UNWIND_CFA_SIGNAL);
		assert_int_equal(rows_at(rows, 1).vaddr, EHIMAGE_TEXT + row->at + row->n);
	}
}

/* A process's entry: no caller, unless a table describes one. */
static void test_entry(void **state)
{
	static const struct {
		const char *name;
		uint64_t entry;
		size_t trampoline; /* the described one */
		size_t n_rows;
	} table[] = {
		{"nothing is known of it", EHIMAGE_TEXT + 0x1000, 0x100, 4},
		{"what follows is known", EHIMAGE_TEXT + 0x1000, 0x1011, 4},
		{"it is known", EHIMAGE_TEXT + 0x1000, 0x1000, 2},
		{"none", 0, 0x100, 2},
		{"elsewhere", UINT64_MAX - 8, 0x100, 2},
	};

	(void)state;
	for (size_t i = 0; i < array_size(table); i++) {
		struct synthetic_row code = synthetic_rows[0];
		_cleanup_(elffile_freep) struct elffile *file = NULL;
		_cleanup_(rows_freep) struct rows *rows = NULL;
		_cleanup_(freep) void *bytes = NULL;
		struct ehframe_stats stats;
		size_t n, at;

		row_begin(table[i].name);
		code.at = table[i].trampoline;
		bytes = build(&code, &n);
		assert_non_null(bytes);
		((Elf64_Ehdr *)bytes)->e_entry = table[i].entry;
		assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
		assert_int_equal(compile_image(file, &stats, &rows), 0);
		assert_int_equal(rows_count(rows), table[i].n_rows);
		at = rows_find(rows, EHIMAGE_TEXT + 0x1000);
		assert_int_equal(rows_rule(rows, rows_at(rows, at).rule)->cfa == UNWIND_CFA_STOP,
				 table[i].n_rows > 2);
	}
}

/* glibc's __start_context(), with and without endbr64 in front. */
static void test_start_context(void **state)
{
	static const char code[] = "\xf3\x0f\x1e\xfa\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff";

	(void)state;
	for (size_t skip = 0; skip <= 4; skip += 4) {
		const struct synthetic_row row = {
			"context", EM_X86_64, code + skip, sizeof(code) - 1 - skip, 0x100, true};
		_cleanup_(elffile_freep) struct elffile *file = NULL;
		_cleanup_(rows_freep) struct rows *rows = NULL;
		_cleanup_(freep) void *bytes = NULL;
		size_t n;

		bytes = build(&row, &n);
		assert_non_null(bytes);
		assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
		assert_int_equal(rows_new(EHIMAGE_TEXT, EHIMAGE_TEXT_END, &rows), 0);
		assert_int_equal(synthetic_add(file, rows), 0);
		assert_int_equal(rows_finish(rows), 0);
		assert_int_equal(rows_count(rows), 2);
		assert_int_equal(rows_at(rows, 0).vaddr, EHIMAGE_TEXT + row.at - 1);
		assert_int_equal(rows_rule(rows, rows_at(rows, 0).rule)->cfa, UNWIND_CFA_STOP);
		assert_int_equal(rows_at(rows, 1).vaddr, EHIMAGE_TEXT + row.at + row.n);
	}
}

/* glibc's __mpn_addmul_1(): its pushes. */
static void test_mpn(void **state)
{
	static const char code[] =
		"\x53\x55\x48\x8d\x1a\x48\xf7\xdb\x48\x8b\x06\x4c\x8b\x17\x48\x8d\x7c\xd7"
		"\xf0\x48\x8d\x34\xd6\x48\xf7\xe1\x90\x5d\x5b\xc3";
	static const struct {
		uint64_t at;
		const char *rule;
	} expected[] = {{0, "cfa=rsp+8 fp=same ra=cfa-8"},    {1, "cfa=rsp+16 fp=same ra=cfa-8"},
			{2, "cfa=rsp+24 fp=cfa-24 ra=cfa-8"}, {28, "cfa=rsp+16 fp=same ra=cfa-8"},
			{29, "cfa=rsp+8 fp=same ra=cfa-8"},   {30, "gap"}};
	const struct synthetic_row row = {"mpn", EM_X86_64, BYTES(code), 0x100, true};
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	_cleanup_(freep) void *bytes = NULL;
	size_t n;

	(void)state;
	bytes = build(&row, &n);
	assert_non_null(bytes);
	assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
	assert_int_equal(rows_new(EHIMAGE_TEXT, EHIMAGE_TEXT_END, &rows), 0);
	assert_int_equal(synthetic_add(file, rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	assert_int_equal(rows_count(rows), array_size(expected));
	for (size_t i = 0; i < array_size(expected); i++) {
		char text[ROWTEXT_MAX];

		assert_int_equal(rows_at(rows, i).vaddr, EHIMAGE_TEXT + row.at + expected[i].at);
		assert_string_equal(
			rowtext_print(CFI_X86_64, rows_rule(rows, rows_at(rows, i).rule), text),
			expected[i].rule);
	}
}

struct linkage_row {
	const char *name;
	uint16_t machine;
	const char *section;
	const char *bytes;
	size_t n;
	uint64_t vaddr;
	const char *rules[4]; /* NULL: no more */
	size_t at[4];
};

#define LAZY                                                               \
	"\xff\x35\x00\x00\x00\x00\xff\x25\x00\x00\x00\x00\x0f\x1f\x40\x00" \
	"\xff\x25\x00\x00\x00\x00\x68\x00\x00\x00\x00\xe9\xe0\xff\xff\xff"
#define TRACKED                                                            \
	"\xff\x35\x00\x00\x00\x00\xf2\xff\x25\x00\x00\x00\x00\x0f\x1f\x00" \
	"\xf3\x0f\x1e\xfa\x68\x00\x00\x00\x00\xf2\xe9\xe1\xff\xff\xff\x90"
#define SECOND	     "\xf3\x0f\x1e\xfa\xf2\xff\x25\x00\x00\x00\x00\x0f\x1f\x44\x00\x00"
#define DIRECT	     "\xff\x25\x00\x00\x00\x00\x66\x90"
#define A64_STORE    "\xf0\x7b\xbf\xa9"
#define A64_WORD     "\x90\x00\x00\x90\x11\x0e\x47\xf9\x10\x62\x38\x91\x20\x02\x1f\xd6"
#define A64_NOP	     "\x1f\x20\x03\xd5"
#define A64_BTI	     "\x5f\x24\x03\xd5"
#define A64	     A64_STORE A64_WORD A64_NOP A64_NOP A64_NOP A64_WORD
#define A64_TRACKED  A64_BTI A64_STORE A64_WORD A64_NOP A64_NOP A64_BTI A64_WORD A64_NOP
#define KEPT	     "cfa=sp+0 fp=same ra=x30"
#define STORED	     "cfa=sp+16 fp=same ra=cfa-8"
#define LINKAGE	     EHIMAGE_TEXT
#define SP(distance) "cfa=rsp+" distance " fp=same ra=cfa-8"

static const struct linkage_row linkage_rows[] = {
	{"lazy",
	 EM_X86_64,
	 ".plt",
	 BYTES(LAZY),
	 LINKAGE,
	 {SP("16"), SP("24"), "cfa=plt11 fp=same ra=cfa-8", "gap"},
	 {0, 6, 16, 32}},
	{"with indirect branch tracking",
	 EM_X86_64,
	 ".plt",
	 BYTES(TRACKED),
	 LINKAGE,
	 {SP("16"), SP("24"), "cfa=plt9 fp=same ra=cfa-8", "gap"},
	 {0, 6, 16, 32}},
	{"its second table",
	 EM_X86_64,
	 ".plt.sec",
	 BYTES(SECOND),
	 LINKAGE,
	 {SP("8"), "gap"},
	 {0, 16}},
	{"not lazy", EM_X86_64, ".plt.got", BYTES(DIRECT), LINKAGE, {SP("8"), "gap"}, {0, 8}},
	{"not lazy, with tracking",
	 EM_X86_64,
	 ".plt.got",
	 BYTES(SECOND),
	 LINKAGE,
	 {SP("8"), "gap"},
	 {0, 16}},
	{"without a stub", EM_X86_64, ".plt", LAZY, 31, LINKAGE, {NULL}, {0}},
	{"of another form",
	 EM_X86_64,
	 ".plt",
	 BYTES(DIRECT DIRECT DIRECT DIRECT),
	 LINKAGE,
	 {NULL},
	 {0}},
	{"another section", EM_X86_64, ".pls", BYTES(LAZY), LINKAGE, {NULL}, {0}},
	{"another machine", EM_AARCH64, ".plt", BYTES(LAZY), LINKAGE, {NULL}, {0}},
	{"AArch64",
	 EM_AARCH64,
	 ".plt",
	 BYTES(A64),
	 LINKAGE,
	 {KEPT, STORED, KEPT, "gap"},
	 {0, 4, 32, 48}},
	{"AArch64 with tracking",
	 EM_AARCH64,
	 ".plt",
	 BYTES(A64_TRACKED),
	 LINKAGE,
	 {KEPT, STORED, KEPT, "gap"},
	 {0, 8, 32, 56}},
	{"AArch64 without the jump", EM_AARCH64, ".plt", A64, 31, LINKAGE, {NULL}, {0}},
	{"AArch64's on another machine", EM_X86_64, ".plt", BYTES(A64), LINKAGE, {NULL}, {0}},
	{"at an odd place", EM_X86_64, ".plt", BYTES(LAZY), LINKAGE + 8, {NULL}, {0}},
	{"outside of the code", EM_X86_64, ".plt", BYTES(LAZY), LINKAGE - 16, {NULL}, {0}},
	{"beyond all addresses", EM_X86_64, ".plt", BYTES(LAZY), -16ull, {NULL}, {0}},
};

static void check_linkage(const struct linkage_row *row)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct elfmake m;
	size_t off, n = 0;

	elfmake_init(&m, ET_DYN, 4096);
	m.eh.e_machine = row->machine;
	off = elfmake_bytes(&m, row->bytes, row->n);
	elfmake_section(&m, row->section, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, row->vaddr, off,
			row->n);
	elfmake_segment(&m, PT_LOAD, PF_R | PF_X, row->vaddr, off, row->n);
	elfmake_finish(&m);
	assert_int_equal(elffile_open_memory(m.data, m.n, &file), 0);
	assert_int_equal(rows_new(EHIMAGE_TEXT, EHIMAGE_TEXT_END, &rows), 0);
	assert_int_equal(synthetic_add_linkage(file, rows), 0);
	assert_int_equal(rows_finish(rows), 0);
	while (n < array_size(row->rules) && row->rules[n])
		n++;
	assert_int_equal(rows_count(rows), n);
	for (size_t i = 0; i < n; i++) {
		char text[ROWTEXT_MAX];

		assert_int_equal(rows_at(rows, i).vaddr, row->vaddr + row->at[i]);
		assert_string_equal(
			rowtext_print(row->machine == EM_AARCH64 ? CFI_ARM64 : CFI_X86_64,
				      rows_rule(rows, rows_at(rows, i).rule), text),
			row->rules[i]);
	}
	elfmake_deinit(&m);
}

static void test_linkage(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(linkage_rows); i++) {
		row_begin(linkage_rows[i].name);
		check_linkage(&linkage_rows[i]);
	}
}

static int compile(void *ctx)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct ehframe_stats stats;

	return compile_image(ctx, &stats, &rows);
}

static void test_no_memory(void **state)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(freep) void *bytes = NULL;
	size_t n;

	(void)state;
	bytes = build(&synthetic_rows[0], &n);
	assert_non_null(bytes);
	assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
	assert_true(allocfail_survive(compile, file) > 3);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trampolines),   cmocka_unit_test(test_mpn),
		cmocka_unit_test(test_start_context), cmocka_unit_test(test_entry),
		cmocka_unit_test(test_linkage),	      cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
