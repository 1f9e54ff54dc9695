// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fixture.h"
#include "codescan/insn.h"

#define VADDR	 0x1000
#define BYTES(s) (s), sizeof(s) - 1

struct insn_row {
	const char *name;
	const char *bytes;
	size_t n;
	struct insn is;
};

#define ADD(n)	.sp = INSN_SP_ADD, .sp_add = (n)
#define FROM(n) .sp = INSN_SP_FROM_FP, .sp_add = (n)

static const struct insn_row x86_rows[] = {
	{"push %rbp", BYTES("\x55"), {.length = 1, .fp = INSN_FP_SAVED, ADD(-8)}},
	{"push %r13", BYTES("\x41\x55"), {.length = 2, ADD(-8)}},
	{"push %ax", BYTES("\x66\x50"), {.length = 2, ADD(-2)}},
	{"push $1", BYTES("\x6a\x01"), {.length = 2, ADD(-8)}},
	{"push $0x12345", BYTES("\x68\x45\x23\x01\x00"), {.length = 5, ADD(-8)}},
	{"push -8(%r10)", BYTES("\x41\xff\x72\xf8"), {.length = 4, ADD(-8)}},
	{"push %fs", BYTES("\x0f\xa0"), {.length = 2, ADD(-8)}},
	{"pushf", BYTES("\x9c"), {.length = 1, ADD(-8)}},
	{"pop %rbp", BYTES("\x5d"), {.length = 1, .fp = INSN_FP_LOADED, ADD(8)}},
	{"pop %r12", BYTES("\x41\x5c"), {.length = 2, ADD(8)}},
	{"pop %rsp", BYTES("\x5c"), {.length = 1, .sp = INSN_SP_LOST, .sp_add = 8}},
	{"pop (%rax)", BYTES("\x8f\x00"), {.length = 2, ADD(8)}},
	{"leave", BYTES("\xc9"), {.length = 1, .fp = INSN_FP_POPPED, FROM(8)}},
	{"sub $0x18,%rsp", BYTES("\x48\x83\xec\x18"), {.length = 4, ADD(-0x18)}},
	{"add $0x1000,%rsp", BYTES("\x48\x81\xc4\x00\x10\x00\x00"), {.length = 7, ADD(0x1000)}},
	{"sub $0xffffffff80000000,%rsp",
	 BYTES("\x48\x81\xec\x00\x00\x00\x80"),
	 {.length = 7, .sp = INSN_SP_LOST}},
	{"cmp $1,%rsp", BYTES("\x48\x83\xfc\x01"), {.length = 4}},
	{"and $-16,%rsp", BYTES("\x48\x83\xe4\xf0"), {.length = 4, .sp = INSN_SP_LOST}},
	{"sub %rax,%rsp", BYTES("\x48\x29\xc4"), {.length = 3, .sp = INSN_SP_LOST}},
	{"cmp %rax,%rsp", BYTES("\x48\x39\xc4"), {.length = 3}},
	{"lea 8(%rsp),%rsp", BYTES("\x48\x8d\x64\x24\x08"), {.length = 5, ADD(8)}},
	{"lea -0x28(%rbp),%rsp", BYTES("\x48\x8d\x65\xd8"), {.length = 4, FROM(-0x28)}},
	{"lea 8(%rsp,%rax,1),%rsp",
	 BYTES("\x48\x8d\x64\x04\x08"),
	 {.length = 5, .sp = INSN_SP_LOST}},
	{"lea 8(%rsp),%r10", BYTES("\x4c\x8d\x54\x24\x08"), {.length = 5}},
	{"mov %rsp,%rbp", BYTES("\x48\x89\xe5"), {.length = 3, .fp = INSN_FP_FROM_SP}},
	{"mov %rsp,%rbp, the other way",
	 BYTES("\x48\x8b\xec"),
	 {.length = 3, .fp = INSN_FP_FROM_SP}},
	{"lea 0x20(%rsp),%rbp",
	 BYTES("\x48\x8d\x6c\x24\x20"),
	 {.length = 5, .fp = INSN_FP_FROM_SP, .fp_at = 0x20}},
	{"mov %rbp,%rsp", BYTES("\x48\x89\xec"), {.length = 3, FROM(0)}},
	{"mov %rsp,%rax", BYTES("\x48\x89\xe0"), {.length = 3}},
	{"mov %rax,%rsp", BYTES("\x48\x89\xc4"), {.length = 3, .sp = INSN_SP_LOST}},
	{"mov 0x30(%rdi),%rsp", BYTES("\x48\x8b\x67\x30"), {.length = 4, .sp = INSN_SP_LOST}},
	{"mov %rbp,0x10(%rsp)",
	 BYTES("\x48\x89\x6c\x24\x10"),
	 {.length = 5, .fp = INSN_FP_SAVED, .fp_at = 0x10}},
	{"mov 0x10(%rsp),%rbp",
	 BYTES("\x48\x8b\x6c\x24\x10"),
	 {.length = 5, .fp = INSN_FP_LOADED, .fp_at = 0x10}},
	{"mov %rbp,0x10(%rdi)", BYTES("\x48\x89\x6f\x10"), {.length = 4}},
	{"mov 8(%rdi),%rbp", BYTES("\x48\x8b\x6f\x08"), {.length = 4, .fp = INSN_FP_OTHER}},
	{"mov $1,%ebp",
	 BYTES("\xbd\x01\x00\x00\x00"),
	 {.length = 5, .fp = INSN_FP_OTHER, .constant = 1}},
	{"mov $1,%r13d", BYTES("\x41\xbd\x01\x00\x00\x00"), {.length = 6, .constant = 1}},
	{"xor %ebp,%ebp", BYTES("\x31\xed"), {.length = 2, .fp = INSN_FP_ZERO}},
	{"xor %rbp,%rbp", BYTES("\x48\x33\xed"), {.length = 3, .fp = INSN_FP_ZERO}},
	{"xor %r13d,%r13d", BYTES("\x45\x31\xed"), {.length = 3}},
	{"mov %al,%ch: no stack pointer", BYTES("\x88\xc5"), {.length = 2}},
	{"mov %al,%bpl", BYTES("\x40\x88\xc5"), {.length = 3, .fp = INSN_FP_OTHER}},
	{"movzbl (%rdi),%ebp", BYTES("\x0f\xb6\x2f"), {.length = 3, .fp = INSN_FP_OTHER}},
	{"movabs $0x1122334455667788,%rax",
	 BYTES("\x48\xb8\x88\x77\x66\x55\x44\x33\x22\x11"),
	 {.length = 10, .constant = 0x1122334455667788}},
	{"movabs 0x1122334455667788,%al",
	 BYTES("\xa0\x88\x77\x66\x55\x44\x33\x22\x11"),
	 {.length = 9}},
	{"mov $0x1234,%ax", BYTES("\x66\xb8\x34\x12"), {.length = 4, .constant = 0x1234}},
	{"lea 0x10(%rip),%rdi",
	 BYTES("\x48\x8d\x3d\x10\x00\x00\x00"),
	 {.length = 7, .points = VADDR + 7 + 0x10}},
	{"test $1,%al", BYTES("\xf6\xc0\x01"), {.length = 3}},
	{"not %al", BYTES("\xf6\xd0"), {.length = 2}},
	{"testl $1,(%rax)", BYTES("\xf7\x00\x01\x00\x00\x00"), {.length = 6}},
	{"mov 8(%rax,%rbx,4),%ecx", BYTES("\x8b\x4c\x98\x08"), {.length = 4}},
	{"mov 0x11223344(,%rbx,4),%ecx", BYTES("\x8b\x0c\x9d\x44\x33\x22\x11"), {.length = 7}},
	{"cmp %eax,%fs:0x28", BYTES("\x64\x39\x04\x25\x28\x00\x00\x00"), {.length = 8}},
	{"lea -1(%ecx),%edx", BYTES("\x67\x8d\x51\xff"), {.length = 4}},
	{"enter: unknown", BYTES("\xc8\x00\x00\x00"), {.length = 0}},
	{"call",
	 BYTES("\xe8\x10\x00\x00\x00"),
	 {.length = 5, .flow = INSN_CALL, .target = VADDR + 0x15}},
	{"call *%rax", BYTES("\xff\xd0"), {.length = 2, .flow = INSN_CALL}},
	{"call *8(%rax)", BYTES("\xff\x50\x08"), {.length = 3, .flow = INSN_CALL}},
	{"jmp backwards",
	 BYTES("\xeb\xf0"),
	 {.length = 2, .flow = INSN_JUMP, .target = VADDR + 2 - 0x10}},
	{"jmp far away",
	 BYTES("\xe9\x00\x01\x00\x00"),
	 {.length = 5, .flow = INSN_JUMP, .target = VADDR + 0x105}},
	{"je", BYTES("\x74\x10"), {.length = 2, .flow = INSN_BRANCH, .target = VADDR + 0x12}},
	{"je, long",
	 BYTES("\x0f\x84\x10\x00\x00\x00"),
	 {.length = 6, .flow = INSN_BRANCH, .target = VADDR + 0x16}},
	{"loop", BYTES("\xe2\xfe"), {.length = 2, .flow = INSN_BRANCH, .target = VADDR}},
	{"jmp *%rax", BYTES("\xff\xe0"), {.length = 2, .flow = INSN_INDIRECT}},
	{"notrack jmp *%rax", BYTES("\x3e\xff\xe0"), {.length = 3, .flow = INSN_INDIRECT}},
	{"ret", BYTES("\xc3"), {.length = 1, .flow = INSN_RETURN}},
	{"rep ret", BYTES("\xf3\xc3"), {.length = 2, .flow = INSN_RETURN}},
	{"ret $8", BYTES("\xc2\x08\x00"), {.length = 3, .flow = INSN_RETURN}},
	{"ud2", BYTES("\x0f\x0b"), {.length = 2, .flow = INSN_END}},
	{"hlt", BYTES("\xf4"), {.length = 1, .flow = INSN_END}},
	{"nop", BYTES("\x90"), {.length = 1, .flow = INSN_PADDING}},
	{"pause", BYTES("\xf3\x90"), {.length = 2}},
	{"xchg %r8,%rax", BYTES("\x49\x90"), {.length = 2}},
	{"nopw",
	 BYTES("\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"),
	 {.length = 10, .flow = INSN_PADDING}},
	{"int3", BYTES("\xcc"), {.length = 1, .flow = INSN_PADDING}},
	{"endbr64", BYTES("\xf3\x0f\x1e\xfa"), {.length = 4}},
	{"syscall", BYTES("\x0f\x05"), {.length = 2}},
	{"bswap %ebp", BYTES("\x0f\xcd"), {.length = 2}},
	{"movaps %xmm0,(%rsp)", BYTES("\x0f\x29\x04\x24"), {.length = 4}},
	{"pshufd $0,%xmm0,%xmm0", BYTES("\x66\x0f\x70\xc0\x00"), {.length = 5}},
	{"pshufb %xmm1,%xmm0", BYTES("\x66\x0f\x38\x00\xc1"), {.length = 5}},
	{"palignr $8,%xmm1,%xmm0", BYTES("\x66\x0f\x3a\x0f\xc1\x08"), {.length = 6}},
	{"vzeroupper", BYTES("\xc5\xf8\x77"), {.length = 3}},
	{"vmovdqu (%rsi),%ymm0", BYTES("\xc5\xfe\x6f\x06"), {.length = 4}},
	{"vpcmpeqb with three bytes of prefix", BYTES("\xc4\x41\x7d\x74\xc8"), {.length = 5}},
	{"vpalignr", BYTES("\xc4\xe3\x7d\x0f\xc1\x08"), {.length = 6}},
	{"vmovdqu64 0x40(%rsi),%zmm16", BYTES("\x62\xe1\xfe\x48\x6f\x46\x01"), {.length = 7}},
	{"vpternlogd", BYTES("\x62\xf3\x7d\x48\x25\xc0\xff"), {.length = 7}},
	{"only prefixes",
	 BYTES("\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90"),
	 {.length = 0}},
	{"invalid", BYTES("\x06"), {.length = 0}},
	{"invalid, two bytes", BYTES("\x0f\x04"), {.length = 0}},
	{"far jump of 32-bit code", BYTES("\xea\x00\x00\x00\x00\x00\x00"), {.length = 0}},
};

static const struct insn_row arm64_rows[] = {
	{"stp x29, x30, [sp, #-32]!",
	 BYTES("\xfd\x7b\xbe\xa9"),
	 {.length = 4, .fp = INSN_FP_SAVED, .ra = INSN_RA_SAVED, .ra_at = 8, ADD(-32)}},
	{"ldp x29, x30, [sp], #32",
	 BYTES("\xfd\x7b\xc2\xa8"),
	 {.length = 4, .fp = INSN_FP_LOADED, .ra = INSN_RA_LOADED, .ra_at = 8, ADD(32)}},
	{"stp x29, x30, [sp, #16]",
	 BYTES("\xfd\x7b\x01\xa9"),
	 {.length = 4, .fp = INSN_FP_SAVED, .fp_at = 16, .ra = INSN_RA_SAVED, .ra_at = 24}},
	{"ldp x29, x30, [sp, #16]",
	 BYTES("\xfd\x7b\x41\xa9"),
	 {.length = 4, .fp = INSN_FP_LOADED, .fp_at = 16, .ra = INSN_RA_LOADED, .ra_at = 24}},
	{"stp x19, x20, [sp, #-16]!", BYTES("\xf3\x53\xbf\xa9"), {.length = 4, ADD(-16)}},
	{"stp d8, d9, [sp, #-16]!", BYTES("\xe8\x27\xbf\x6d"), {.length = 4, ADD(-16)}},
	{"str x30, [sp, #-16]!",
	 BYTES("\xfe\x0f\x1f\xf8"),
	 {.length = 4, .ra = INSN_RA_SAVED, ADD(-16)}},
	{"ldr x30, [sp], #16",
	 BYTES("\xfe\x07\x41\xf8"),
	 {.length = 4, .ra = INSN_RA_LOADED, ADD(16)}},
	{"str x30, [sp, #24]",
	 BYTES("\xfe\x0f\x00\xf9"),
	 {.length = 4, .ra = INSN_RA_SAVED, .ra_at = 24}},
	{"ldr x29, [x0, #8]", BYTES("\x1d\x04\x40\xf9"), {.length = 4, .fp = INSN_FP_OTHER}},
	{"sub sp, sp, #0x20", BYTES("\xff\x83\x00\xd1"), {.length = 4, ADD(-0x20)}},
	{"add sp, sp, #0x1000", BYTES("\xff\x07\x40\x91"), {.length = 4, ADD(0x1000)}},
	{"mov x29, sp", BYTES("\xfd\x03\x00\x91"), {.length = 4, .fp = INSN_FP_FROM_SP}},
	{"add x29, sp, #0x10",
	 BYTES("\xfd\x43\x00\x91"),
	 {.length = 4, .fp = INSN_FP_FROM_SP, .fp_at = 0x10}},
	{"mov sp, x29", BYTES("\xbf\x03\x00\x91"), {.length = 4, FROM(0)}},
	{"sub sp, x29, #0x10", BYTES("\xbf\x43\x00\xd1"), {.length = 4, FROM(-0x10)}},
	{"mov sp, x2", BYTES("\x5f\x00\x00\x91"), {.length = 4, .sp = INSN_SP_LOST}},
	{"sub sp, sp, x1", BYTES("\xff\x63\x21\xcb"), {.length = 4, .sp = INSN_SP_LOST}},
	{"and sp, x0, #-16", BYTES("\x1f\xec\x7c\x92"), {.length = 4, .sp = INSN_SP_LOST}},
	{"mov x29, #0", BYTES("\x1d\x00\x80\xd2"), {.length = 4, .fp = INSN_FP_ZERO}},
	{"mov x29, x1", BYTES("\xfd\x03\x01\xaa"), {.length = 4, .fp = INSN_FP_OTHER}},
	{"ldrb w0, [x1], #1", BYTES("\x20\x14\x40\x38"), {.length = 4}},
	{"add x0, x0, #1", BYTES("\x00\x04\x00\x91"), {.length = 4}},
	{"cmp sp, x0", BYTES("\xff\x63\x20\xeb"), {.length = 4}},
	{"paciasp", BYTES("\x3f\x23\x03\xd5"), {.length = 4}},
	{"b", BYTES("\x04\x00\x00\x14"), {.length = 4, .flow = INSN_JUMP, .target = VADDR + 16}},
	{"b backwards",
	 BYTES("\xff\xff\xff\x17"),
	 {.length = 4, .flow = INSN_JUMP, .target = VADDR - 4}},
	{"bl", BYTES("\x04\x00\x00\x94"), {.length = 4, .flow = INSN_CALL, .target = VADDR + 16}},
	{"blr x1", BYTES("\x20\x00\x3f\xd6"), {.length = 4, .flow = INSN_CALL}},
	{"b.ne",
	 BYTES("\x41\x00\x00\x54"),
	 {.length = 4, .flow = INSN_BRANCH, .target = VADDR + 8}},
	{"cbz x0",
	 BYTES("\x40\x00\x00\xb4"),
	 {.length = 4, .flow = INSN_BRANCH, .target = VADDR + 8}},
	{"tbnz w0, #3",
	 BYTES("\x40\x00\x18\x37"),
	 {.length = 4, .flow = INSN_BRANCH, .target = VADDR + 8}},
	{"br x16", BYTES("\x00\x02\x1f\xd6"), {.length = 4, .flow = INSN_INDIRECT}},
	{"ret", BYTES("\xc0\x03\x5f\xd6"), {.length = 4, .flow = INSN_RETURN}},
	{"retaa", BYTES("\xff\x0b\x5f\xd6"), {.length = 4, .flow = INSN_RETURN}},
	{"brk #1", BYTES("\x20\x00\x20\xd4"), {.length = 4, .flow = INSN_END}},
	{"nop", BYTES("\x1f\x20\x03\xd5"), {.length = 4, .flow = INSN_PADDING}},
	{"adr x0, . + 8", BYTES("\x40\x00\x00\x10"), {.length = 4, .points = VADDR + 8}},
	{"zeros", BYTES("\x00\x00\x00\x00"), {.length = 0}},
	{"adrp x0, . + 0x1000; mov x1, x2; add x0, x0, #0x20",
	 BYTES("\x00\x00\x00\xb0\xe1\x03\x02\xaa\x00\x80\x00\x91"),
	 {.length = 4, .points = 0x2020}},
};

static void check(insn_decode_fn *decode, const struct insn_row *row)
{
	struct insn insn = {.length = 99};

	row_begin(row->name);
	if (!row->is.length) {
		assert_false(decode((const uint8_t *)row->bytes, row->n, VADDR, &insn));
		assert_int_equal(insn.length, 99);
		return;
	}
	assert_true(decode((const uint8_t *)row->bytes, row->n, VADDR, &insn));
	assert_int_equal(insn.length, row->is.length);
	assert_int_equal(insn.flow, row->is.flow);
	assert_int_equal(insn.sp, row->is.sp);
	assert_int_equal(insn.fp, row->is.fp);
	assert_int_equal(insn.ra, row->is.ra);
	assert_int_equal(insn.fp_at, row->is.fp_at);
	assert_int_equal(insn.ra_at, row->is.ra_at);
	assert_int_equal(insn.target, row->is.target);
	assert_int_equal(insn.points, row->is.points);
	assert_int_equal(insn.constant, row->is.constant);
	if (insn.sp != INSN_SP_LOST)
		assert_int_equal(insn.sp_add, row->is.sp_add);
}

/* Whole, and cut anywhere. */
static void test_x86(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(x86_rows); i++) {
		const struct insn_row *row = &x86_rows[i];
		struct insn insn;

		check(insn_decode_x86, row);
		for (size_t n = 0; n < row->n && row->is.length; n++)
			assert_false(insn_decode_x86((const uint8_t *)row->bytes, n, VADDR, &insn));
	}
}

struct writes_row {
	const char *name;
	const char *bytes;
	size_t n;
	bool is;
};

static void check_writes(const struct writes_row *rows, size_t n, uint8_t reg)
{
	for (size_t i = 0; i < n; i++) {
		row_begin(rows[i].name);
		assert_int_equal(insn_x86_writes((const uint8_t *)rows[i].bytes, rows[i].n, reg),
				 rows[i].is);
	}
}

/* Whether an instruction writes rcx, DWARF's register 2. */
static void test_writes(void **state)
{
	static const struct writes_row rows[] = {
		{"mov %eax,%ecx", BYTES("\x89\xc1"), true},
		{"mov %ecx,%eax", BYTES("\x89\xc8"), false},
		{"mov (%rax),%ecx", BYTES("\x8b\x08"), true},
		{"mov %ecx,(%rcx)", BYTES("\x89\x09"), false},
		{"mov %eax,%r9d", BYTES("\x41\x89\xc1"), false},
		{"pop %rcx", BYTES("\x59"), true},
		{"pop %r9", BYTES("\x41\x59"), false},
		{"mov $1,%ecx", BYTES("\xb9\x01\x00\x00\x00"), true},
		{"xchg %rcx,%rax", BYTES("\x48\x91"), true},
		{"bswap %ecx", BYTES("\x0f\xc9"), true},
		{"cmp %eax,%ecx", BYTES("\x39\xc1"), false},
		{"mul %edx", BYTES("\xf7\xe2"), true},
		{"not %edx", BYTES("\xf7\xd2"), false},
		{"rep movsb", BYTES("\xf3\xa4"), true},
		{"syscall", BYTES("\x0f\x05"), true},
		{"movzbl %al,%ecx", BYTES("\x0f\xb6\xc8"), true},
		{"pmovmskb %xmm0,%ecx", BYTES("\x66\x0f\xd7\xc8"), true},
		{"vmovd %xmm0,%ecx", BYTES("\xc5\xf9\x7e\xc1"), true},
		{"vmovd %xmm1,%eax", BYTES("\xc5\xf9\x7e\xc8"), false},
		{"vmovdqa %ymm1,0x28(%rsp)", BYTES("\xc5\xfd\x7f\x4c\x24\x28"), false},
		{"vpaddw %ymm1,%ymm1,%ymm1", BYTES("\xc5\xf5\xfd\xc9"), false},
		{"rorx $1,%eax,%ecx", BYTES("\xc4\xe3\x7b\xf0\xc8\x01"), true},
		{"blsr %eax,%ecx", BYTES("\xc4\xe2\x70\xf3\xc8"), true},
		{"vpextrd $1,%xmm0,%ecx", BYTES("\xc4\xe3\x79\x16\xc1\x01"), true},
		{"vpermq $5,%ymm1,%ymm1", BYTES("\xc4\xe3\xfd\x00\xc9\x05"), false},
		{"mov $1,%cl", BYTES("\xb1\x01"), true},
		{"mov $1,%ch", BYTES("\xb5\x01"), true},
		{"mov $1,%bpl", BYTES("\x40\xb5\x01"), false},
		{"mov (%rax),%cl", BYTES("\x8a\x08"), true},
		{"mov (%rax),%ch", BYTES("\x8a\x28"), true},
		{"mov %cl,(%rax)", BYTES("\x88\x08"), false},
		{"setne %cl", BYTES("\x0f\x95\xc1"), true},
		{"sete %r9b", BYTES("\x41\x0f\x94\xc1"), false},
		{"cmp %al,%cl", BYTES("\x38\xc1"), false},
		{"fld %st(1)", BYTES("\xd9\xc1"), false},
		{"add $1,%eax", BYTES("\x05\x01\x00\x00\x00"), false},
		{"test $1,%al", BYTES("\xa8\x01"), false},
		{"lock cmpxchg %ecx,(%rdx)", BYTES("\xf0\x0f\xb1\x0a"), false},
		{"a cut one", BYTES("\x89"), true},
	};

	(void)state;
	check_writes(rows, array_size(rows), 2);
}

/* The same of rbx: of the instructions that write registers without naming them, few write rbx. */
static void test_writes_rbx(void **state)
{
	static const struct writes_row rows[] = {
		{"div %rdi", BYTES("\x48\xf7\xf7"), false},
		{"div %rbx", BYTES("\x48\xf7\xf3"), false},
		{"mul %rcx", BYTES("\x48\xf7\xe1"), false},
		{"not %rbx", BYTES("\x48\xf7\xd3"), true},
		{"cqo", BYTES("\x48\x99"), false},
		{"rep stos", BYTES("\xf3\x48\xab"), false},
		{"cpuid", BYTES("\x0f\xa2"), true},
		{"rdrand %rbx", BYTES("\x48\x0f\xc7\xf3"), true},
		{"mov %rax,%rbx", BYTES("\x48\x89\xc3"), true},
		{"mov %rbx,%rax", BYTES("\x48\x89\xd8"), false},
	};

	(void)state;
	check_writes(rows, array_size(rows), 3);
}

/* The same of rax. */
static void test_writes_accumulator(void **state)
{
	static const struct writes_row rows[] = {
		{"add $1,%eax", BYTES("\x05\x01\x00\x00\x00"), true},
		{"add $1,%al", BYTES("\x04\x01"), true},
		{"cmp $1,%al", BYTES("\x3c\x01"), false},
		{"test $1,%al", BYTES("\xa8\x01"), false},
		{"in (%dx),%al", BYTES("\xec"), true},
		{"xlat", BYTES("\xd7"), true},
		{"lock cmpxchg %ecx,(%rdx)", BYTES("\xf0\x0f\xb1\x0a"), true},
		{"add $1,%ecx", BYTES("\x83\xc1\x01"), false},
	};

	(void)state;
	check_writes(rows, array_size(rows), 0);
}

static void test_arm64(void **state)
{
	struct insn insn;

	(void)state;
	for (size_t i = 0; i < array_size(arm64_rows); i++)
		check(insn_decode_arm64, &arm64_rows[i]);
	assert_false(insn_decode_arm64((const uint8_t *)arm64_rows[0].bytes, 3, VADDR, &insn));
}

/* A line of objdump -d: " 401000:\t48 83 ec 08 \tsub ...". Returns the number of bytes, 0 without
 * bytes. */
static size_t parse_line(const char *line, uint64_t *ret_vaddr, uint8_t ret[32])
{
	char *at;
	size_t n = 0;

	*ret_vaddr = strtoull(line, &at, 16);
	if (at == line || *at != ':' || strstr(line, "(bad)"))
		return 0;
	/* "48 " each; two blanks or the line's end follow the last byte */
	for (at += 2; n < 32; n++, at += 3) {
		if (strspn(at, "0123456789abcdef") != 2 || !strchr(" \t\n", at[2]))
			break;
		ret[n] = (uint8_t)strtoul(at, NULL, 16);
	}
	return n;
}

/* Instruction lengths by objdump, for a program with a whole C library. */
static void test_lengths(void **state)
{
	char path[FIXTURE_PATH_MAX], command[FIXTURE_PATH_MAX + 64], line[512];
	size_t n_all = 0, n_wrong = 0;
	FILE *f;

	(void)state;
	snprintf(command, sizeof(command), "objdump -d --insn-width=16 %s",
		 fixture_path("plain-static", path));
	f = popen(command, "re"); // NOLINT(cert-env33-c)
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		uint8_t bytes[48] = {0};
		struct insn insn;
		uint64_t vaddr;
		size_t n = parse_line(line, &vaddr, bytes);

		if (!n)
			continue;
		n_all++;
		/* objdump joins fwait with the next instruction */
		if (bytes[0] == 0x9b)
			continue;
		if (insn_decode_x86(bytes, sizeof(bytes), vaddr, &insn) && insn.length == n)
			continue;
		if (n_wrong++ < 3)
			print_message("%s", line);
	}
	assert_int_equal(pclose(f), 0);
	print_message("%zu instructions, %zu of another length\n", n_all, n_wrong);
	assert_true(n_all > 50000);
	assert_true(n_wrong * 5000 < n_all);
}

/* Looks at one form of an instruction, with all ModRM bytes and three SIB bytes. *@n_plain counts
 * the plain ones. */
static void check_plain(const char *before, size_t n_before, uint8_t opcode, size_t *n_plain)
{
	static const uint8_t sibs[] = {0x00, 0x25, 0x64};

	for (unsigned int modrm = 0; modrm < 256; modrm++)
		for (size_t i = 0; i < array_size(sibs); i++) {
			uint8_t bytes[48] = {0};
			struct insn insn;
			uint8_t length;

			memcpy(bytes, before, n_before);
			bytes[n_before] = opcode;
			bytes[n_before + 1] = (uint8_t)modrm;
			bytes[n_before + 2] = sibs[i];
			length = insn_x86_plain(bytes, sizeof(bytes));
			if (!length)
				continue;
			assert_true(insn_decode_x86(bytes, sizeof(bytes), VADDR, &insn));
			assert_int_equal(insn.length, length);
			insn.length = 0;
			/* vector registers have the same numbers */
			insn.names_sp &= bytes[0] != 0xc4 && bytes[0] != 0xc5 && bytes[0] != 0x62;
			assert_memory_equal(&insn, &(struct insn){0}, sizeof(insn));
			++*n_plain;
		}
}

/* A plain instruction has no effect by the decoder either; and most forms are recognised. */
static void test_plain(void **state)
{
	static const char *const prefixes[] = {"", "\x66", "\xf2", "\xf3", "\xf0", "\x66\xf2"};
	static const char *const rexes[] = {"", "\x40", "\x41", "\x44", "\x48", "\x4d"};
	static const char *const maps[] = {"", "\x0f", "\x0f\x38", "\x0f\x3a"};
	static const char *const vectors[] = {
		"\xc5\xf9",	    "\xc5\x79",	       "\xc4\xe1\x79",	   "\xc4\x42\xfd",
		"\xc4\xe3\x7d",	    "\xc4\xe4\x79",    "\x62\xf1\x7d\x48", "\x62\x72\xfd\x08",
		"\x62\xf3\x7d\x28", "\x62\xf4\x7d\x48"};
	size_t n_plain = 0;
	char before[8];

	(void)state;
	for (size_t p = 0; p < array_size(prefixes); p++)
		for (size_t x = 0; x < array_size(rexes); x++)
			for (size_t m = 0; m < array_size(maps); m++)
				for (unsigned int opcode = 0; opcode < 256; opcode++) {
					snprintf(before, sizeof(before), "%s%s%s", prefixes[p],
						 rexes[x], maps[m]);
					check_plain(before, strlen(before), (uint8_t)opcode,
						    &n_plain);
				}
	for (size_t v = 0; v < array_size(vectors); v++)
		for (unsigned int opcode = 0; opcode < 256; opcode++)
			check_plain(vectors[v], strlen(vectors[v]), (uint8_t)opcode, &n_plain);
	print_message("%zu plain forms\n", n_plain);
	assert_true(n_plain > 1000000);
	/* not at the end of the code */
	assert_int_equal(insn_x86_plain((const uint8_t *)"\x01\xc8", 2), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86),	   cmocka_unit_test(test_plain),
		cmocka_unit_test(test_writes),	   cmocka_unit_test(test_writes_accumulator),
		cmocka_unit_test(test_writes_rbx), cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
