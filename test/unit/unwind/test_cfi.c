// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "unwind/cfi.h"
#include "unwind/rowtext.h"

#define START 0x1000
#define SIZE  0x100

/* Bytes as a string literal, with NULs allowed. */
#define BYTES(s) (s), sizeof(s) - 1

/* The beginning of every CIE of x86-64: CFA = rsp + 8, return address at CFA - 8. */
#define CIE_X86	  "\x0c\x07\x08\x90\x01"
/* AArch64: CFA = sp. */
#define CIE_ARM64 "\x0c\x1f\x00"

struct program {
	const char *name;
	const char *cie;
	size_t n_cie;
	const char *fde;
	size_t n_fde;
	int outcome;
	const char *expected; /* "0 RULE | OFFSET RULE": hex from START on; without the last gap */
};

static void print_rows(enum cfi_machine machine, const struct rows *rows, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i + 1 < rows_count(rows); i++) {
		struct row row = rows_at(rows, i);
		char text[ROWTEXT_MAX];

		n += (size_t)snprintf(ret + n, size - n, "%s%llx %s", i ? " | " : "",
				      (unsigned long long)row.vaddr - START,
				      rowtext_print(machine, rows_rule(rows, row.rule), text));
		assert_true(n < size);
	}
}

static int run(struct cfi_common *common, const struct program *p, struct rows *rows)
{
	struct cursor c;
	int r;

	cursor_init(&c, p->cie, p->n_cie);
	r = cfi_run_initial(common, c);
	if (r)
		return r;
	assert_int_equal(rows_begin(rows, ROWS_EH_FRAME, START, START + SIZE), 0);
	cursor_init(&c, p->fde, p->n_fde);
	r = cfi_run(common, c, 0x400, START, rows);
	if (r)
		rows_drop(rows);
	else
		assert_int_equal(rows_end(rows), 0);
	return r;
}

static void check(const struct cfi_common *template, const struct program *p)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct cfi_common common = *template;
	char text[1024];

	row_begin(p->name);
	assert_int_equal(rows_new(START, START + SIZE, &rows), 0);
	assert_string_equal(cfi_outcome_name(run(&common, p, rows)), cfi_outcome_name(p->outcome));
	assert_int_equal(rows_finish(rows), 0);
	print_rows(common.machine, rows, text, sizeof(text));
	assert_string_equal(text, p->expected);
}

static const struct cfi_common x86 = {
	.machine = CFI_X86_64, .code_align = 1, .data_align = -8, .ra_reg = 16};
static const struct cfi_common arm64 = {
	.machine = CFI_ARM64, .code_align = 4, .data_align = -8, .ra_reg = 30};

#define ENTRY "cfa=rsp+8 fp=same ra=cfa-8"

static const struct program x86_programs[] = {
	{"empty", BYTES(CIE_X86), BYTES(""), 0, "0 " ENTRY},
	{"nops", BYTES(CIE_X86), BYTES("\0\0\0\0\0\0\0"), 0, "0 " ENTRY},
	{"push rbp; mov; pop; ret", BYTES(CIE_X86),
	 BYTES("\x41\x0e\x10\x86\x02\x43\x0d\x06\x4a\x0c\x07\x08"), 0,
	 "0 " ENTRY " | 1 cfa=rsp+16 fp=cfa-16 ra=cfa-8 | 4 cfa=rbp+16 fp=cfa-16 ra=cfa-8 | "
	 "e cfa=rsp+8 fp=cfa-16 ra=cfa-8"},
	{"advance by 1, 2, 4 and 8 bytes", BYTES(CIE_X86),
	 BYTES("\x02\x10\x0e\x10\x03\x10\x00\x0e\x18\x04\x10\x00\x00\x00\x0e\x20"
	       "\x1d\x10\x00\x00\x00\x00\x00\x00\x00\x0e\x28"),
	 0,
	 "0 " ENTRY " | 10 cfa=rsp+16 fp=same ra=cfa-8 | 20 cfa=rsp+24 fp=same ra=cfa-8 | "
	 "30 cfa=rsp+32 fp=same ra=cfa-8 | 40 cfa=rsp+40 fp=same ra=cfa-8"},
	{"beyond the end", BYTES(CIE_X86), BYTES("\x03\x00\x02\x0e\x10"), 0, "0 " ENTRY},
	{"advance by 0", BYTES(CIE_X86), BYTES("\x40\x0e\x10\x40\x0e\x18"), 0,
	 "0 cfa=rsp+24 fp=same ra=cfa-8"},
	{"there and back at one address", BYTES(CIE_X86), BYTES("\x41\x0e\x10\x0e\x08"), 0,
	 "0 " ENTRY},
	{"restore: the CIE's rule, not none", BYTES(CIE_X86 "\x86\x02"),
	 BYTES("\x41\x07\x06\x41\xc6\x41\x86\x03\x41\x06\x06"), 0,
	 "0 cfa=rsp+8 fp=cfa-16 ra=cfa-8 | 1 " ENTRY " | 2 cfa=rsp+8 fp=cfa-16 ra=cfa-8 | "
	 "3 cfa=rsp+8 fp=cfa-24 ra=cfa-8 | 4 cfa=rsp+8 fp=cfa-16 ra=cfa-8"},
	{"remember and restore bring the CFA back", BYTES(CIE_X86),
	 BYTES("\x41\x0e\x10\x86\x02\x0a\x44\x0c\x07\x08\xc6\x41\x0b"), 0,
	 "0 " ENTRY " | 1 cfa=rsp+16 fp=cfa-16 ra=cfa-8 | 5 " ENTRY
	 " | 6 cfa=rsp+16 fp=cfa-16 ra=cfa-8"},
	{"remembered 8 deep", BYTES(CIE_X86), BYTES("\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a"), 0,
	 "0 " ENTRY},
	{"remembered 9 deep", BYTES(CIE_X86), BYTES("\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a"),
	 CFI_TOO_DEEP, ""},
	{"restored what was not remembered", BYTES(CIE_X86), BYTES("\x0a\x0b\x0b"), CFI_UNBALANCED,
	 ""},
	{"offset_extended, of a register that is not followed too", BYTES(CIE_X86),
	 BYTES("\x05\x06\x02\x05\x80\x01\x02"), 0, "0 cfa=rsp+8 fp=cfa-16 ra=cfa-8"},
	{"offset_extended_sf, negative", BYTES(CIE_X86), BYTES("\x11\x06\x7e"), 0,
	 "0 cfa=rsp+8 fp=cfa+16 ra=cfa-8"},
	{"GNU_negative_offset_extended", BYTES(CIE_X86), BYTES("\x2f\x06\x02"), 0,
	 "0 cfa=rsp+8 fp=cfa+16 ra=cfa-8"},
	{"def_cfa_sf, def_cfa_offset_sf", BYTES(CIE_X86), BYTES("\x12\x06\x7e\x41\x13\x7d"), 0,
	 "0 cfa=rbp+16 fp=same ra=cfa-8 | 1 cfa=rbp+24 fp=same ra=cfa-8"},
	{"def_cfa_register keeps the offset", BYTES(CIE_X86), BYTES("\x0e\x20\x41\x0d\x0a"), 0,
	 "0 cfa=rsp+32 fp=same ra=cfa-8 | 1 cfa=r10+32 fp=same ra=cfa-8"},
	{"def_cfa_register after an expression: the offset from before it", BYTES(CIE_X86),
	 BYTES("\x0e\x20\x0f\x03\x76\x78\x06\x41\x0d\x06"), 0,
	 "0 cfa=deref(rbp-8)+0 fp=same ra=cfa-8 | 1 cfa=rbp+32 fp=same ra=cfa-8"},
	{"def_cfa_offset within an expression", BYTES(CIE_X86),
	 BYTES("\x0f\x03\x76\x78\x06\x0e\x30\x41\x0d\x07"), 0,
	 "0 cfa=deref(rbp-8)+0 fp=same ra=cfa-8 | 1 cfa=rsp+48 fp=same ra=cfa-8"},
	{"register's number is a byte's limit", BYTES(CIE_X86), BYTES("\x0d\x10\x41\x0d\x0f"), 0,
	 "0 unsupported=cfa_register | 1 cfa=r15+8 fp=same ra=cfa-8"},
	{"offset of 31 bits, of 32", BYTES(CIE_X86),
	 BYTES("\x0e\xff\xff\xff\xff\x07\x41\x0e\x80\x80\x80\x80\x08"), 0,
	 "0 cfa=rsp+2147483647 fp=same ra=cfa-8 | 1 unsupported=cfa_offset"},
	{"an offset that is wrong only for a while", BYTES(CIE_X86),
	 BYTES("\x0e\x80\x80\x80\x80\x08\x41\x0e\x10"), 0,
	 "0 unsupported=cfa_offset | 1 cfa=rsp+16 fp=same ra=cfa-8"},
	{"same_value", BYTES(CIE_X86), BYTES("\x86\x02\x41\x08\x06"), 0,
	 "0 cfa=rsp+8 fp=cfa-16 ra=cfa-8 | 1 " ENTRY},
	{"undefined return address: no caller", BYTES(CIE_X86), BYTES("\x07\x10"), 0, "0 stop"},
	{"undefined frame pointer: as it is", BYTES(CIE_X86), BYTES("\x86\x02\x41\x07\x06"), 0,
	 "0 cfa=rsp+8 fp=cfa-16 ra=cfa-8 | 1 " ENTRY},
	{"return address in a register", BYTES(CIE_X86), BYTES("\x09\x10\x05"), 0,
	 "0 cfa=rsp+8 fp=same ra=rdi"},
	{"in a register that has none", BYTES(CIE_X86), BYTES("\x09\x10\x11"), 0,
	 "0 unsupported=ra_register"},
	{"return address far away", BYTES(CIE_X86), BYTES("\x05\x10\x80\x20\x41\x05\x10\x81\x20"),
	 0, "0 cfa=rsp+8 fp=same ra=cfa-32768 | 1 unsupported=ra_offset"},
	{"return address unknown", BYTES("\x0c\x07\x08"), BYTES(""), 0, "0 unsupported=ra_none"},
	{"return address computed", BYTES(CIE_X86), BYTES("\x14\x10\x01"), 0,
	 "0 unsupported=ra_value"},
	{"frame pointer in a register", BYTES(CIE_X86), BYTES("\x09\x06\x09\x41\x09\x06\x06"), 0,
	 "0 unsupported=fp_register | 1 " ENTRY},
	{"frame pointer computed", BYTES(CIE_X86), BYTES("\x14\x06\x02\x41\x15\x06\x02"), 0,
	 "0 unsupported=fp_value"},
	{"frame pointer by val_expression", BYTES(CIE_X86), BYTES("\x16\x06\x02\x76\x00"), 0,
	 "0 unsupported=fp_value"},
	{"frame pointer where the old one points", BYTES(CIE_X86), BYTES("\x10\x06\x02\x76\x70"), 0,
	 "0 cfa=rsp+8 fp=deref(rbp-16) ra=cfa-8"},
	{"frame pointer where rsp points", BYTES(CIE_X86), BYTES("\x10\x06\x02\x77\x70"), 0,
	 "0 unsupported=fp_expression"},
	{"frame pointer at CFA + 8 by expression", BYTES(CIE_X86), BYTES("\x10\x06\x02\x23\x08"), 0,
	 "0 cfa=rsp+8 fp=cfa+8 ra=cfa-8"},
	{"return address by expression", BYTES(CIE_X86), BYTES("\x10\x10\x02\x76\x00"), 0,
	 "0 unsupported=ra_expression"},
	{"the caller's sp saved: not the CFA", BYTES(CIE_X86), BYTES("\x87\x02\x41\xc7"), 0,
	 "0 unsupported=sp | 1 " ENTRY},
	{"the caller's sp in a register", BYTES(CIE_X86), BYTES("\x09\x07\x08\x0e\x10"), 0,
	 "0 unsupported=sp"},
	{"the caller's sp computed", BYTES(CIE_X86), BYTES("\x16\x07\x02\x77\x08"), 0,
	 "0 unsupported=sp"},
	{"the caller's sp is the CFA, and is not", BYTES(CIE_X86),
	 BYTES("\x14\x07\x00\x41\x14\x07\x01"), 0, "0 " ENTRY " | 1 unsupported=sp"},
	{"the caller's sp is told in the CIE", BYTES(CIE_X86 "\x14\x07\x00"),
	 BYTES("\x87\x02\x41\xc7"), 0, "0 unsupported=sp | 1 " ENTRY},
	{"no CFA", BYTES("\x90\x01"), BYTES("\x0e\x10\x41\x0c\x07\x08"), 0,
	 "0 unsupported=cfa_none | 1 " ENTRY},
	{"arguments' size is for others", BYTES(CIE_X86), BYTES("\x41\x2e\x10\x41\x0e\x10"), 0,
	 "0 " ENTRY " | 2 cfa=rsp+16 fp=same ra=cfa-8"},
	{"set_loc", BYTES(CIE_X86), BYTES("\x01\x10\x10\0\0\0\0\0\0\x0e\x10"), 0,
	 "0 " ENTRY " | 10 cfa=rsp+16 fp=same ra=cfa-8"},
	{"set_loc goes back", BYTES(CIE_X86), BYTES("\x41\x01\x00\x10\0\0\0\0\0\0"),
	 CFI_BAD_ADDRESS, ""},
	{"opcode 0x17", BYTES(CIE_X86), BYTES("\x17"), CFI_BAD_OPCODE, ""},
	{"opcode 0x3f", BYTES(CIE_X86), BYTES("\x41\x0e\x10\x3f"), CFI_BAD_OPCODE, ""},
	{"bad opcode in the CIE", BYTES(CIE_X86 "\x3f"), BYTES(""), CFI_BAD_OPCODE, ""},
	{"cut: advance_loc1", BYTES(CIE_X86), BYTES("\x02"), CFI_TRUNCATED, ""},
	{"cut: advance_loc4", BYTES(CIE_X86), BYTES("\x04\x01\x00\x00"), CFI_TRUNCATED, ""},
	{"cut: offset", BYTES(CIE_X86), BYTES("\x86"), CFI_TRUNCATED, ""},
	{"cut: a number that does not end", BYTES(CIE_X86), BYTES("\x0e\x80"), CFI_TRUNCATED, ""},
	{"cut: expression longer than what is left", BYTES(CIE_X86), BYTES("\x0f\x03\x76\x78"),
	 CFI_TRUNCATED, ""},
	{"cut: set_loc", BYTES(CIE_X86), BYTES("\x01\x10\x10\0\0\0\0\0"), CFI_TRUNCATED, ""},
	{"offset above 63 bits", BYTES(CIE_X86),
	 BYTES("\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), CFI_BAD_ADDRESS, ""},
	{"offset above 63 bits when scaled", BYTES(CIE_X86),
	 BYTES("\x86\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), CFI_BAD_ADDRESS, ""},
	{"address above 64 bits", BYTES(CIE_X86), BYTES("\x1d\xff\xff\xff\xff\xff\xff\xff\xff"),
	 CFI_BAD_ADDRESS, ""},
};

static const struct program arm64_programs[] = {
	{"leaf: in the link register", BYTES(CIE_ARM64), BYTES(""), 0, "0 cfa=sp+0 fp=same ra=x30"},
	{"frame record", BYTES(CIE_ARM64), BYTES("\x41\x0e\x20\x9d\x04\x9e\x03\x41\x0d\x1d"), 0,
	 "0 cfa=sp+0 fp=same ra=x30 | 4 cfa=sp+32 fp=cfa-32 ra=cfa-24 | "
	 "8 cfa=x29+32 fp=cfa-32 ra=cfa-24"},
	{"restored: in the link register again", BYTES(CIE_ARM64),
	 BYTES("\x41\x0e\x10\x9d\x02\x9e\x01\x44\x0e\x00\xdd\xde"), 0,
	 "0 cfa=sp+0 fp=same ra=x30 | 4 cfa=sp+16 fp=cfa-16 ra=cfa-8 | "
	 "14 cfa=sp+0 fp=same ra=x30"},
	{"signed return address", BYTES(CIE_ARM64), BYTES("\x41\x2d\x41\x2c\x41\x0e\x10"), 0,
	 "0 cfa=sp+0 fp=same ra=x30 | c cfa=sp+16 fp=same ra=x30"},
	{"undefined: no caller", BYTES(CIE_ARM64), BYTES("\x07\x1e"), 0, "0 stop"},
	{"return address in another register", BYTES(CIE_ARM64), BYTES("\x09\x1e\x09"), 0,
	 "0 cfa=sp+0 fp=same ra=x9"},
	{"CFA by scalable vectors", BYTES(CIE_ARM64),
	 BYTES("\x0f\x09\x8f\x10\x92\x2e\x00\x38\x1e\x22\x96"), 0, "0 unsupported=cfa_expression"},
	{"x86's stubs", BYTES(CIE_ARM64),
	 BYTES("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"), 0,
	 "0 unsupported=cfa_expression"},
};

static void test_programs(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(x86_programs); i++)
		check(&x86, &x86_programs[i]);
	for (size_t i = 0; i < array_size(arm64_programs); i++)
		check(&arm64, &arm64_programs[i]);
}

/* ---------------------------------------------------------------- variations of the CIE */

static void test_alignment(void **state)
{
	static const struct program scaled = {
		"code by 4, data by -4", BYTES(CIE_X86), BYTES("\x42\x86\x04\x41\x13\x7e"), 0,
		"0 cfa=rsp+8 fp=same ra=cfa-4 | 8 cfa=rsp+8 fp=cfa-16 ra=cfa-4 | "
		"c cfa=rsp+8 fp=cfa-16 ra=cfa-4"};
	static const struct program huge = {"code by 2^60", BYTES(CIE_X86), BYTES("\x50\x0e\x10"),
					    CFI_BAD_ADDRESS, ""};
	struct program joined = scaled;
	struct cfi_common common = x86;

	(void)state;
	common.code_align = 4;
	common.data_align = -4;
	/* -2 factored is CFA = rsp + 8, as before: no new row */
	joined.expected = "0 cfa=rsp+8 fp=same ra=cfa-4 | 8 cfa=rsp+8 fp=cfa-16 ra=cfa-4";
	check(&common, &joined);
	common.code_align = 1ull << 60;
	check(&common, &huge);
}

static void test_set_loc_relative(void **state)
{
	/* at 0x400 + 1: 0x1010 - 0x401 */
	static const struct program near = {"relative to itself", BYTES(CIE_X86),
					    BYTES("\x01\x0f\x0c\x00\x00\x0e\x10"), 0,
					    "0 " ENTRY " | 10 cfa=rsp+16 fp=same ra=cfa-8"};
	static const struct program indirect = {"indirect", BYTES(CIE_X86),
						BYTES("\x01\x0f\x0c\x00\x00\x0e\x10"),
						CFI_TRUNCATED, ""};
	struct cfi_common common = x86;

	(void)state;
	common.pointer_encoding = 0x1b;
	check(&common, &near);
	common.pointer_encoding = 0x9b;
	check(&common, &indirect);
}

static void test_signal(void **state)
{
	/* the C library's description: CFA = *(rsp + 160) */
	static const struct program kernel = {"the kernel's", BYTES(CIE_X86),
					      BYTES("\x0f\x04\x77\xa0\x01\x06"), 0, "0 signal"};
	static const struct program other = {"another one", BYTES(CIE_X86), BYTES("\x0e\x20"), 0,
					     "0 unsupported=signal"};
	static const struct program vdso = {"the vDSO's", BYTES(CIE_ARM64),
					    BYTES("\x0c\x1d\x00\x9d\x00\x9e\x7f"), 0, "0 signal"};
	struct cfi_common common = x86;

	(void)state;
	common.signal = true;
	check(&common, &kernel);
	check(&common, &other);
	common = arm64;
	common.signal = true;
	check(&common, &vdso);
}

/* ---------------------------------------------------------------- addresses */

static void test_addresses(void **state)
{
	static const struct {
		const char *name;
		uint8_t encoding;
		const char *bytes;
		size_t n;
		bool ok;
		uint64_t expected;
	} rows[] = {
		{"absptr", 0x00, BYTES("\1\2\3\4\5\6\7\x80"), true, 0x8007060504030201},
		{"absptr, cut", 0x00, BYTES("\1\2\3\4\5\6\7"), false, 0},
		{"udata2", 0x02, BYTES("\xff\xff"), true, 0xffff},
		{"udata4", 0x03, BYTES("\xff\xff\xff\xff"), true, 0xffffffff},
		{"udata8", 0x04, BYTES("\1\0\0\0\0\0\0\x80"), true, 0x8000000000000001},
		{"sdata2", 0x0a, BYTES("\xfe\xff"), true, (uint64_t)-2},
		{"sdata4", 0x0b, BYTES("\xfe\xff\xff\xff"), true, (uint64_t)-2},
		{"sdata8", 0x0c, BYTES("\xfe\xff\xff\xff\xff\xff\xff\xff"), true, (uint64_t)-2},
		{"uleb", 0x01, BYTES("\x80\x01"), true, 128},
		{"sleb", 0x09, BYTES("\x7f"), true, (uint64_t)-1},
		{"pcrel sdata4", 0x1b, BYTES("\xfe\xff\xff\xff"), true, 0x10000 - 2},
		{"pcrel sdata4, cut", 0x1b, BYTES("\xfe\xff\xff"), false, 0},
		{"pcrel udata2", 0x12, BYTES("\x02\x00"), true, 0x10002},
		{"pcrel absptr", 0x10, BYTES("\2\0\0\0\0\0\0\0"), true, 0x10002},
		{"textrel", 0x2b, BYTES("\0\0\0\0"), false, 0},
		{"datarel", 0x3b, BYTES("\0\0\0\0"), false, 0},
		{"indirect", 0x9b, BYTES("\0\0\0\0"), false, 0},
		{"format 5", 0x05, BYTES("\0\0\0\0\0\0\0\0"), false, 0},
		{"omit", 0xff, BYTES("\0\0\0\0\0\0\0\0"), false, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		uint64_t value = 0;
		struct cursor c;

		row_begin(rows[i].name);
		cursor_init(&c, rows[i].bytes, rows[i].n);
		assert_int_equal(cfi_address(&c, rows[i].encoding, 0x10000, &value), rows[i].ok);
		if (rows[i].ok)
			assert_true(value == rows[i].expected && cursor_left(&c) == 0);
	}
}

/* ---------------------------------------------------------------- expressions */

static void test_expressions(void **state)
{
	static const struct {
		const char *name;
		const char *code;
		size_t n;
		bool has_cfa;
		struct expr expected;
	} rows[] = {
		{"breg6 -8", BYTES("\x76\x78"), false, {EXPR_REG, 6, -8, 0}},
		{"bregx 17 1", BYTES("\x92\x11\x01"), false, {EXPR_REG, 17, 1, 0}},
		{"bregx 256: no such register", BYTES("\x92\x80\x02\x01"), false, {0}},
		{"deref", BYTES("\x77\x08\x06"), false, {EXPR_DEREF, 7, 8, 0}},
		{"deref, plus_uconst", BYTES("\x77\x08\x06\x23\x08"), false, {EXPR_DEREF, 7, 8, 8}},
		{"deref, lit, plus", BYTES("\x77\x08\x06\x38\x22"), false, {EXPR_DEREF, 7, 8, 8}},
		{"lit, breg, plus", BYTES("\x38\x77\x08\x22"), false, {EXPR_REG, 7, 16, 0}},
		{"const1s, minus", BYTES("\x77\x08\x09\xff\x1c"), false, {EXPR_REG, 7, 9, 0}},
		{"const2u", BYTES("\x77\x00\x0a\x00\x80\x22"), false, {EXPR_REG, 7, 0x8000, 0}},
		{"const4s", BYTES("\x77\x00\x0d\xff\xff\xff\xff\x22"), false, {EXPR_REG, 7, -1, 0}},
		{"const8u", BYTES("\x77\x00\x0e\1\0\0\0\0\0\0\0\x22"), false, {EXPR_REG, 7, 1, 0}},
		{"constu", BYTES("\x77\x00\x10\x80\x01\x22"), false, {EXPR_REG, 7, 128, 0}},
		{"consts", BYTES("\x77\x00\x11\x7f\x22"), false, {EXPR_REG, 7, -1, 0}},
		{"nop", BYTES("\x96\x77\x08\x96"), false, {EXPR_REG, 7, 8, 0}},
		{"on the CFA", BYTES("\x23\x10"), true, {EXPR_CFA, 0, 16, 0}},
		{"nothing but the CFA", BYTES(""), true, {EXPR_CFA, 0, 0, 0}},
		{"empty", BYTES(""), false, {0}},
		{"a constant alone", BYTES("\x38"), false, {0}},
		{"deref of a deref", BYTES("\x77\x08\x06\x06"), false, {0}},
		{"deref of the CFA", BYTES("\x06"), true, {0}},
		{"deref of nothing", BYTES("\x06"), false, {0}},
		{"plus of one", BYTES("\x77\x08\x22"), false, {0}},
		{"plus of two registers", BYTES("\x77\x08\x76\x08\x22"), false, {0}},
		{"constant minus register", BYTES("\x38\x77\x08\x1c"), false, {0}},
		{"mul", BYTES("\x77\x08\x38\x1e"), false, {0}},
		{"plus_uconst of nothing", BYTES("\x23\x08"), false, {0}},
		{"four items", BYTES("\x30\x30\x30\x77\x08"), false, {EXPR_REG, 7, 8, 0}},
		{"five items", BYTES("\x30\x30\x30\x30\x77\x08"), false, {0}},
		{"cut breg", BYTES("\x77"), false, {0}},
		{"cut const4u", BYTES("\x77\x08\x0c\x01\x01"), false, {0}},
		{"offset overflows",
		 BYTES("\x77\x01\x0f\xff\xff\xff\xff\xff\xff\xff\x7f\x22"),
		 false,
		 {0}},
		{"minus the smallest", BYTES("\x77\x01\x0f\0\0\0\0\0\0\0\x80\x1c"), false, {0}},
		{"plt 11",
		 BYTES("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"),
		 false,
		 {EXPR_PLT, 0, 11, 0}},
		{"plt 10",
		 BYTES("\x77\x08\x80\x00\x3f\x1a\x3a\x2a\x33\x24\x22"),
		 false,
		 {EXPR_PLT, 0, 10, 0}},
		{"plt 15",
		 BYTES("\x77\x08\x80\x00\x3f\x1a\x3f\x2a\x33\x24\x22"),
		 false,
		 {EXPR_PLT, 0, 15, 0}},
		{"plt 16", BYTES("\x77\x08\x80\x00\x3f\x1a\x40\x2a\x33\x24\x22"), false, {0}},
		{"plt with another step",
		 BYTES("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x32\x24\x22"),
		 false,
		 {0}},
		{"plt, cut", BYTES("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24"), false, {0}},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		struct cursor c;
		struct expr expr;

		row_begin(rows[i].name);
		cursor_init(&c, rows[i].code, rows[i].n);
		expr = expr_parse(c, rows[i].has_cfa);
		assert_int_equal(expr.form, rows[i].expected.form);
		if (expr.form == EXPR_OTHER)
			continue;
		assert_int_equal(expr.reg, rows[i].expected.reg);
		assert_true(expr.off == rows[i].expected.off);
		assert_true(expr.add == rows[i].expected.add);
	}
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(cfi_outcome_name(CFI_OK), "ok");
	for (int i = CFI_TRUNCATED; i < CFI_OUTCOME_MAX; i++)
		assert_string_not_equal(cfi_outcome_name(i), "error");
	assert_string_equal(cfi_outcome_name(-ENOMEM), "error");
	assert_string_equal(cfi_outcome_name(CFI_OUTCOME_MAX), "error");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_set_loc_relative),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
