// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/allocfail.h"
#include "support/ehimage.h"
#include "support/fixture.h"
#include "codescan/codescan.h"
#include "unwind/ehframe.h"
#include "unwind/rowtext.h"

#define BYTES(s)  (s), sizeof(s) - 1
#define ENTRY	  "cfa=rsp+8 fp=same ra=cfa-8"
#define SP(n)	  "cfa=rsp+" #n " fp=same ra=cfa-8"
#define KEPT(reg) "cfa=" reg "+8 fp=same ra=cfa-8"
#define NOPS8	  "\x90\x90\x90\x90\x90\x90\x90\x90"
/* Large enough for a scan of the image. */
#define TEXT_SIZE 0x400

struct code_row {
	const char *name;
	const char *code;
	size_t n;
	const char *expected; /* "OFFSET RULE;" each, from the first function on */
};

/* The program's entry is the first byte; offsets are hex. Bytes between two near functions belong
 * to the first. */
static const struct code_row code_rows[] = {
	{"ret", BYTES("\xc3"), "0 " ENTRY ";1 gap;"},
	{"push %rbx; call; pop %rbx; ret", BYTES("\x53\xe8\x00\x10\x00\x00\x5b\xc3"),
	 "0 " ENTRY ";1 " SP(16) ";7 " ENTRY ";8 gap;"},
	{"sub; add", BYTES("\x48\x83\xec\x18\x48\x83\xc4\x18\xc3"),
	 "0 " ENTRY ";4 " SP(32) ";8 " ENTRY ";9 gap;"},
	{"push %rbp as any register", BYTES("\x55\x53\x31\xed\x5b\x5d\xc3"),
	 "0 " ENTRY ";1 cfa=rsp+16 fp=cfa-16 ra=cfa-8;2 cfa=rsp+24 fp=cfa-16 ra=cfa-8;"
	 "5 cfa=rsp+16 fp=cfa-16 ra=cfa-8;6 " ENTRY ";7 gap;"},
	{"a frame, alloca, leave", BYTES("\x55\x48\x89\xe5\x48\x29\xc4\xc9\xc3"),
	 "0 " ENTRY ";1 cfa=rsp+16 fp=cfa-16 ra=cfa-8;4 cfa=rbp+16 fp=cfa-16 ra=cfa-8;"
	 "8 " ENTRY ";9 gap;"},
	{"a frame, lea back", BYTES("\x55\x48\x89\xe5\x53\x48\x8d\x65\xf8\x5b\x5d\xc3"),
	 "0 " ENTRY ";1 cfa=rsp+16 fp=cfa-16 ra=cfa-8;4 cfa=rbp+16 fp=cfa-16 ra=cfa-8;"
	 "b " ENTRY ";c gap;"},
	{"rbp stored later",
	 BYTES("\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x31\xed\x48\x8b\x6c\x24\x10"
	       "\x48\x83\xc4\x18\xc3"),
	 "0 " ENTRY ";4 " SP(32) ";9 cfa=rsp+32 fp=cfa-16 ra=cfa-8;10 " SP(32) ";14 " ENTRY
									       ";15 gap;"},
	{"two ends", BYTES("\x53\x85\xc0\x74\x02\x5b\xc3\x5b\xc3"),
	 "0 " ENTRY ";1 " SP(16) ";6 " ENTRY ";7 " SP(16) ";8 " ENTRY ";9 gap;"},
	{"a loop", BYTES("\x53\x85\xc0\x75\xfc\x5b\xc3"),
	 "0 " ENTRY ";1 " SP(16) ";6 " ENTRY ";7 gap;"},
	{"a loop that pushes", BYTES("\x53\x85\xc0\x75\xfb\x5b\xc3"), ""},
	{"an aligned stack",
	 BYTES("\x48\x89\xe1\x48\x83\xe4\xe0\x48\x83\xec\x60\xe8\x10\x00\x00\x00"
	       "\x48\x89\xcc\xc3" NOPS8 "\x90\x90\x90\x90\xc3"),
	 "0 " ENTRY ";3 " KEPT("rcx") ";13 " ENTRY ";21 gap;"},
	{"an aligned stack with an argument below",
	 BYTES("\x50\x4c\x8b\xd4\x48\x81\xe4\x00\xff\xff\xff\x50\x49\x8b\xe2\x58\xc3"),
	 "0 " ENTRY ";1 " SP(16) ";4 cfa=r10+16 fp=same ra=cfa-8;f " SP(16) ";10 " ENTRY
									    ";11 gap;"},
	{"an aligned stack with room below, as in the matrix kernels of OpenBLAS",
	 BYTES("\x48\x89\xe3\x48\x81\xec\x80\x70\x00\x00\x48\x81\xe4\x00\xf0\xff\xff"
	       "\x48\x89\xdc\xc3"),
	 "0 " ENTRY ";3 " KEPT("rbx") ";14 " ENTRY ";15 gap;"},
	{"a copy of rsp and room, without an alignment",
	 BYTES("\x48\x89\xe3\x48\x83\xec\x10\x48\x83\xc4\x10\xc3"),
	 "0 " ENTRY ";7 " SP(24) ";b " ENTRY ";c gap;"},
	{"a copy of rsp and twice room",
	 BYTES("\x48\x89\xe3\x48\x83\xec\x10\x48\x83\xec\x10\x48\x83\xe4\xe0"
	       "\x48\x89\xdc\xc3"),
	 "0 " ENTRY ";7 " SP(24) ";b " SP(40) ";f gap;"},
	{"an aligned stack, kept over a call that may change the register",
	 BYTES("\x48\x89\xe1\x48\x83\xe4\xe0\xe8\x00\x10\x00\x00\x48\x89\xcc\xc3"),
	 "0 " ENTRY ";3 " KEPT("rcx") ";c gap;"},
	{"an aligned stack, kept over a call that leaves the register",
	 BYTES("\x48\x89\xe3\x48\x83\xe4\xe0\xe8\x00\x10\x00\x00\x48\x89\xdc\xc3"),
	 "0 " ENTRY ";3 " KEPT("rbx") ";f " ENTRY ";10 gap;"},
	{"an aligned stack, and the register has another value",
	 BYTES("\x48\x89\xe1\x48\x83\xe4\xe0\x89\xc1\x48\x89\xcc\xc3"),
	 "0 " ENTRY ";3 " KEPT("rcx") ";9 gap;"},
	{"an aligned stack, given back by another register",
	 BYTES("\x48\x89\xe1\x48\x83\xe4\xe0\x48\x89\xd4\xc3"), ""},
	{"a copy of rsp without an alignment", BYTES("\x48\x89\xe1\x85\xc0\x74\x02\x31\xc9\xc3"),
	 "0 " ENTRY ";a gap;"},
	{"returns too early", BYTES("\x53\xc3"), ""},
	{"returns too late", BYTES("\x5b\xc3"), ""},
	{"rbp is used and not saved", BYTES("\xbd\x01\x00\x00\x00\xc3"), "0 " ENTRY ";6 gap;"},
	{"rbp is not saved, and no return follows", BYTES("\xbd\x01\x00\x00\x00\xff\x67\x38"), ""},
	{"a routine that uses rbp",
	 BYTES("\x55\xe8\x0a\x00\x00\x00\x5d\xc3" NOPS8 "\xbd\x01\x00\x00\x00\xc3"),
	 "0 " ENTRY ";1 cfa=rsp+16 fp=cfa-16 ra=cfa-8;7 " ENTRY ";16 gap;"},
	{"a routine with two entries",
	 BYTES("\x53\xe8\x0a\x00\x00\x00\xe8\x07\x00\x00\x00\x5b\xc3\x90\x90\x90"
	       "\xff\xc3\xff\xc3\xc3"),
	 "0 " ENTRY ";1 " SP(16) ";c " ENTRY ";15 gap;"},
	{"a routine that ends in an earlier one",
	 BYTES("\x53\xe8\x0a\x00\x00\x00\xe8\x15\x00\x00\x00\x5b\xc3\x90\x90\x90"
	       "\xff\xc3\xff\xc3\xc3" NOPS8 "\x90\x90\x90\xbd\x01\x00\x00\x00\xeb\xeb"),
	 "0 " ENTRY ";1 " SP(16) ";c " ENTRY ";27 gap;"},
	{"no code", BYTES("\x53\x06\x5b\xc3"), ""},
	{"an instruction in another one", BYTES("\x85\xc0\x74\xfd\xc3"), ""},
	{"to another function",
	 BYTES("\x53\xe8\x1a\x00\x00\x00\x5b\xeb\x17" NOPS8 NOPS8
	       "\x90\x90\x90\x90\x90\x90\x90\xc3"),
	 "0 " ENTRY ";1 " SP(16) ";7 " ENTRY ";9 gap;20 " ENTRY ";21 gap;"},
	{"to another function, with the stack as it is",
	 BYTES("\x53\xe8\x1a\x00\x00\x00\xeb\x18" NOPS8 NOPS8 NOPS8 "\xc3"),
	 "20 " ENTRY ";21 gap;"},
	/* calls a function that ends with hlt; another function's code follows the call */
	{"a call that does not return",
	 BYTES("\x53\xe8\x0a\x00\x00\x00\x5b\x5b\x5b\xc3\xcc\xcc"
	       "\xcc\xcc\xcc\xcc\xf4"),
	 "0 " ENTRY ";1 " SP(16) ";10 " ENTRY ";11 gap;"},
	{"a table of jumps", BYTES("\x53\xff\xe0\x90\x31\xc0\x5b\xc3\xb0\x01\x5b\xc3"),
	 "0 " ENTRY ";1 " SP(16) ";7 " ENTRY ";8 " SP(16) ";b " ENTRY ";c gap;"},
	{"a table, and what cannot be of it", BYTES("\x53\xff\xe0\x31\xc0\x5b\xc3\xc3"),
	 "0 " ENTRY ";1 " SP(16) ";6 " ENTRY ";7 gap;"},
	{"the first of all", BYTES("\x31\xed\x48\x89\xe7\x48\x83\xe4\xf0\xe8\x00\x10\x00\x00\xf4"),
	 "0 " ENTRY ";2 stop;f gap;"},
	{"a thread's first", BYTES("\x0f\x05\x85\xc0\x75\x06\x31\xed\x5f\xff\xd0\xf4\xc3"),
	 "0 " ENTRY ";8 stop;c " ENTRY ";d gap;"},
	{"longjmp", BYTES("\x48\x8b\x67\x30\xff\x67\x38"), "0 " ENTRY ";4 gap;"},
	{"a pointer to code", BYTES("\x48\x8d\x3d\x02\x00\x00\x00\xc3\xcc\x53\x5b\xc3"),
	 "0 " ENTRY ";a " SP(16) ";b " ENTRY ";c gap;"},
	{"nobody tells of the second",
	 BYTES("\xc3" NOPS8 "\x90\x90\x90\x90\x90\x90\x90\x53\x5b\xc3"),
	 "0 " ENTRY ";11 " SP(16) ";12 " ENTRY ";13 gap;"},
	{"nor of what is no function", BYTES("\xc3" NOPS8 "\x90\x90\x90\x90\x90\x90\x90\x5b\xc3"),
	 "0 " ENTRY ";1 gap;"},
	{"a linkage table",
	 BYTES("\xff\x25\x00\x10\x00\x00\x66\x90\xf3\x0f\x1e\xfa\xff\x25\x00\x10\x00\x00"
	       "\x66\x90\x66\x90\x66\x90\xff\x25\x00\x10\x00\x00"),
	 "0 " ENTRY ";1e gap;"},
	{"what no linkage table has", BYTES("\xc3\x66\x90\x66\x90\x66\x66\x90\xff\xe0"),
	 "0 " ENTRY ";1 gap;"},
	/* most functions that save rbp make a frame: frame pointers are then reliable */
	{"code with frame pointers",
	 BYTES("\x55\x48\x89\xe5\xe8\x17\x00\x00\x00\xe8\x22\x00\x00\x00\xe8\x2d\x00\x00\x00\x5d"
	       "\xc3" NOPS8 "\x90\x90\x90"
	       "\x55\x48\x89\xe5\x5d\xc3" NOPS8 "\x90\x90"
	       "\x55\x48\x89\xe5\x5d\xc3" NOPS8 "\x90\x90"
	       "\x55\x48\x89\xe5\x5d\xc3"),
	 ""},
};

static const struct code_row arm64_rows[] = {
	{"ret", BYTES("\xc0\x03\x5f\xd6"), "0 cfa=sp+0 fp=same ra=x30;4 gap;"},
	{"stp x29, x30, [sp, #-32]!; bl; ldp x29, x30, [sp], #32; ret",
	 BYTES("\xfd\x7b\xbe\xa9\x00\x04\x00\x94\xfd\x7b\xc2\xa8\xc0\x03\x5f\xd6"),
	 "0 cfa=sp+0 fp=same ra=x30;4 cfa=sp+32 fp=cfa-32 ra=cfa-24;"
	 "c cfa=sp+0 fp=same ra=x30;10 gap;"},
	{"str x30, [sp, #-16]!; ret without it",
	 BYTES("\xfe\x0f\x1f\xf8\xff\x43\x00\x91\xc0\x03\x5f\xd6"), ""},
	{"bl without having stored x30: it does not return",
	 BYTES("\x00\x04\x00\x94\xff\x43\x00\x91\xc0\x03\x5f\xd6"),
	 "0 cfa=sp+0 fp=same ra=x30;4 gap;"},
	{"the first of all: mov x29, #0; mov x30, #0; bl",
	 BYTES("\x1d\x00\x80\xd2\x1e\x00\x80\xd2\x00\x04\x00\x94\x00\x00\x20\xd4"),
	 "0 cfa=sp+0 fp=same ra=x30;4 stop;10 gap;"},
};

static void *build(const struct code_row *row, uint16_t machine, size_t *ret_n)
{
	static uint8_t text[TEXT_SIZE];
	struct ehimage image = {
		.machine = machine, .text = text, .n_text = sizeof(text), .entry = EHIMAGE_TEXT};

	memset(text, machine == EM_X86_64 ? 0xcc : 0, sizeof(text));
	memcpy(text, row->code, row->n);
	return ehimage_build(&image, ret_n);
}

static void print_rows(enum cfi_machine machine, const struct rows *rows, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < rows_count(rows); i++) {
		struct row row = rows_at(rows, i);
		char text[ROWTEXT_MAX];

		n += (size_t)snprintf(ret + n, size - n, "%llx %s;",
				      (unsigned long long)(row.vaddr - EHIMAGE_TEXT),
				      rowtext_print(machine, rows_rule(rows, row.rule), text));
		assert_true(n < size);
	}
}

/* Of a file without other knowledge. */
static int scan(const struct elffile *file, struct codescan_stats *stats, struct rows **ret)
{
	_cleanup_(rows_freep) struct rows *nothing = NULL;
	uint64_t start, end;
	int r = ehframe_text(file, &start, &end);

	if (!r)
		r = rows_new(start, end, &nothing);
	if (!r)
		r = rows_finish(nothing);
	if (!r)
		r = rows_new(start, end, ret);
	if (!r)
		r = codescan_add(file, nothing, *ret, stats);
	return r ? r : rows_finish(*ret);
}

static void check(const struct code_row *rows_of, size_t n_rows, uint16_t machine)
{
	for (size_t i = 0; i < n_rows; i++) {
		_cleanup_(elffile_freep) struct elffile *file = NULL;
		_cleanup_(rows_freep) struct rows *rows = NULL;
		_cleanup_(freep) void *bytes = NULL;
		struct codescan_stats stats;
		char text[2048];
		size_t n;

		row_begin(rows_of[i].name);
		bytes = build(&rows_of[i], machine, &n);
		assert_non_null(bytes);
		assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
		assert_int_equal(scan(file, &stats, &rows), 0);
		print_rows(machine == EM_X86_64 ? CFI_X86_64 : CFI_ARM64, rows, text, sizeof(text));
		assert_string_equal(text, rows_of[i].expected);
	}
}

static void test_code(void **state)
{
	(void)state;
	check(code_rows, array_size(code_rows), EM_X86_64);
	check(arm64_rows, array_size(arm64_rows), EM_AARCH64);
}

/* Described code leads to three functions at places that no guess tries: 39, 3e and 45. A guess
 * finds the second one's return at 40. */
#define HIDDEN                                                             \
	NOPS8 NOPS8 NOPS8 NOPS8 "\xcc\xcc\xcc\xcc\xcc\xcc\xcc"             \
				"\x53\x5b\xc3\xcc\xcc\x53\x5b\xc3\xcc\xcc" \
				"\xcc\xcc\x53\x5b\xc3"
#define DESCRIBED_ROWS 3

static const struct calls_row {
	struct code_row code;
	uint64_t starts[DESCRIBED_ROWS]; /* of the described rows */
} calls_rows[] = {
	{{"call, lea, mov",
	  BYTES("\xe8\x34\x00\x00\x00\x48\x8d\x3d\x32\x00\x00\x00\xb8\x45\x00\x01\x00"
		"\xc3" HIDDEN),
	  "39 " ENTRY ";3a " SP(16) ";3b " ENTRY ";3f " SP(16) ";40 " ENTRY ";46 " SP(
		  16) ";47 " ENTRY ";48 gap;"},
	 {0, 5, 0xc}},
	{{"in one row, behind a constant",
	  BYTES("\xb8\x01\x00\x00\x00\xe8\x2f\x00\x00\x00\xc3\x90\x90\x90\x90\x90\x90"
		"\x90" HIDDEN),
	  "39 " ENTRY ";3a " SP(16) ";3b " ENTRY ";41 gap;"},
	 {0}},
	{{"in the second sixteen bytes",
	  BYTES("\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		"\xe8\x23\x00\x00\x00\x90\x90\x90" NOPS8 NOPS8 NOPS8
		"\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\x53\x5b\xc3"),
	  "39 " ENTRY ";3a " SP(16) ";3b " ENTRY ";3c gap;"},
	 {0}},
	{{"the distance in the next row",
	  BYTES("\x90\x90\x90\x90\x90\xe8\x2f\x00\x00\x00\xc3\x90\x90\x90\x90\x90\x90"
		"\x90" HIDDEN),
	  "40 " ENTRY ";41 gap;"},
	 {0, 6}},
};

/* Described rows of @size bytes altogether. */
static void add_described(const struct calls_row *row, uint64_t size, struct rows *known)
{
	struct unwind_rule rule = {.cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_X86_SP, .ra_off = -8};

	assert_int_equal(rows_begin(known, ROWS_EH_FRAME, EHIMAGE_TEXT, EHIMAGE_TEXT + size), 0);
	for (size_t i = 0; i < DESCRIBED_ROWS && (!i || row->starts[i]); i++) {
		rule.cfa_off += 8;
		assert_int_equal(rows_add(known, EHIMAGE_TEXT + row->starts[i], &rule), 0);
	}
	assert_int_equal(rows_end(known), 0);
	assert_int_equal(rows_finish(known), 0);
}

/* The rows of @bytes behind its described rows. */
static void check_calls(const struct calls_row *row, uint64_t size, const void *bytes, size_t n)
{
	_cleanup_(rows_freep) struct rows *known = NULL, *rows = NULL;
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	struct codescan_stats stats;
	uint64_t start, end;
	char text[2048];

	assert_non_null(bytes);
	assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
	assert_int_equal(ehframe_text(file, &start, &end), 0);
	assert_int_equal(rows_new(start, end, &known), 0);
	add_described(row, size, known);
	assert_int_equal(rows_new(start, end, &rows), 0);
	assert_int_equal(codescan_add(file, known, rows, &stats), 0);
	assert_int_equal(rows_finish(rows), 0);
	print_rows(CFI_X86_64, rows, text, sizeof(text));
	assert_string_equal(text, row->code.expected);
}

static void test_calls_of_described(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(calls_rows); i++) {
		_cleanup_(freep) void *bytes = NULL;
		size_t n;

		row_begin(calls_rows[i].code.name);
		bytes = build(&calls_rows[i].code, EM_X86_64, &n);
		check_calls(&calls_rows[i], 0x20, bytes, n);
	}
}

/* A row of more bytes than are read at a time, with a call at the end of these, or none. */
#define LARGE_ROW 0x9000
#define READ	  0x8000

static void test_calls_of_large_row(void **state)
{
	static const struct calls_row calls[] = {
		{{"a call", BYTES("\xe8\x06\x10\x00\x00"),
		  "9009 " ENTRY ";900a " SP(16) ";900b " ENTRY ";900c gap;"},
		 {0}},
		{{"a call elsewhere", BYTES("\xe8\x08\x00\x00\x00"), ""}, {0}},
	};
	static uint8_t text[LARGE_ROW + TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < array_size(calls); i++) {
		const struct ehimage image = {.machine = EM_X86_64,
					      .text = text,
					      .n_text = sizeof(text),
					      .entry = EHIMAGE_TEXT};
		_cleanup_(freep) void *bytes = NULL;
		size_t n;

		row_begin(calls[i].code.name);
		memset(text, 0x90, LARGE_ROW);
		memset(text + LARGE_ROW, 0xcc, TEXT_SIZE);
		memcpy(text + READ - 2, calls[i].code.code, calls[i].code.n);
		memcpy(text + LARGE_ROW + 9, "\x53\x5b\xc3", 3);
		bytes = ehimage_build(&image, &n);
		check_calls(&calls[i], LARGE_ROW, bytes, n);
	}
}

static int scan_once(void *ctx)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	struct codescan_stats stats;

	return scan(ctx, &stats, &rows);
}

static void test_no_memory(void **state)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(freep) void *bytes = NULL;
	size_t n;

	(void)state;
	bytes = build(&code_rows[1], EM_X86_64, &n);
	assert_non_null(bytes);
	assert_int_equal(elffile_open_memory(bytes, n, &file), 0);
	assert_true(allocfail_survive(scan_once, file) > 10);
}

/* ---------------------------------------------------------------- a C library */

struct verdict {
	uint64_t same, different, other, missing; /* bytes */
};

static bool is_plain(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_REG &&
	       (rule->cfa_reg == UNWIND_X86_SP || rule->cfa_reg == UNWIND_X86_FP);
}

/* If both registers are known, tables use either, and still describe the slot of rbp after its
 * restore. */
static void judge(const struct unwind_rule *theirs, const struct unwind_rule *ours, uint64_t n,
		  struct verdict *v)
{
	if (!theirs->cfa)
		return;
	if (!ours->cfa)
		v->missing += n;
	else if (is_plain(theirs) && is_plain(ours) && theirs->cfa_reg != ours->cfa_reg)
		v->other += n;
	else if (theirs->cfa == ours->cfa && theirs->cfa_reg == ours->cfa_reg &&
		 theirs->cfa_off == ours->cfa_off && theirs->ra_off == ours->ra_off)
		v->same += n;
	else
		v->different += n;
}

static struct unwind_rule rule_at(const struct rows *rows, uint64_t vaddr, uint64_t *end)
{
	size_t i = rows_find(rows, vaddr), next = i == (size_t)-1 ? 0 : i + 1;

	if (next < rows_count(rows) && rows_at(rows, next).vaddr < *end)
		*end = rows_at(rows, next).vaddr;
	return i == (size_t)-1 ? (struct unwind_rule){0} : *rows_rule(rows, rows_at(rows, i).rule);
}

static void compare(const struct rows *theirs, const struct rows *ours, uint64_t start,
		    uint64_t end, struct verdict *ret)
{
	for (uint64_t at = start, to = end; at < end; at = to, to = end) {
		struct unwind_rule a = rule_at(theirs, at, &to), b = rule_at(ours, at, &to);

		judge(&a, &b, to - at, ret);
	}
}

/* The results from code alone, compared with the tables of the same program. */
static void test_library(void **state)
{
	_cleanup_(rows_freep) struct rows *tables = NULL, *code = NULL;
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	struct codescan_stats codescan;
	struct ehframe_stats stats = {0};
	char path[FIXTURE_PATH_MAX];
	uint64_t start, end, all;
	struct verdict v = {0};

	(void)state;
	assert_int_equal(elffile_open(open(fixture_path("plain-static", path), O_RDONLY), &file),
			 0);
	assert_int_equal(ehframe_text(file, &start, &end), 0);
	assert_int_equal(rows_new(start, end, &tables), 0);
	assert_int_equal(ehframe_add(file, tables, &stats), 0);
	assert_int_equal(rows_finish(tables), 0);
	assert_int_equal(scan(file, &codescan, &code), 0);
	compare(tables, code, start, end, &v);
	all = v.same + v.different + v.other + v.missing;
	print_message("of %ju bytes: %ju the same, %ju from the other register, %ju different, "
		      "%ju not found; %ju functions, %ju dropped\n",
		      (uintmax_t)all, (uintmax_t)v.same, (uintmax_t)v.other, (uintmax_t)v.different,
		      (uintmax_t)v.missing, (uintmax_t)codescan.functions,
		      (uintmax_t)codescan.dropped);
	assert_true(all > 100000);
	assert_true(v.same > all / 2);
	assert_true(v.different < v.same / 100);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_calls_of_described),
		cmocka_unit_test(test_calls_of_large_row),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
