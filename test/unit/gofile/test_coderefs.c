// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "gofile/coderefs.h"

#define AT 0x401000u

struct row {
	const char *name;
	unsigned int machine;
	size_t n; /* bytes of code */
	uint8_t code[24];
	size_t n_refs;
	struct coderef refs[3];
};

/* A word of AArch64. */
#define W(x) (uint8_t)(x), (uint8_t)((x) >> 8), (uint8_t)((x) >> 16), (uint8_t)((x) >> 24)

static const struct row rows[] = {
	{"mov 8",
	 EM_X86_64,
	 7,
	 {0x48, 0x8b, 0x05, 0xf9, 0x0f, 0, 0},
	 1,
	 {{0x402000, CODEREF_LOAD, 8}}},
	{"mov 8, r9",
	 EM_X86_64,
	 7,
	 {0x4c, 0x8b, 0x0d, 0xf9, 0x0f, 0, 0},
	 1,
	 {{0x402000, CODEREF_LOAD, 8}}},
	{"mov 4", EM_X86_64, 6, {0x8b, 0x15, 0xfa, 0x0f, 0, 0}, 1, {{0x402000, CODEREF_LOAD, 4}}},
	{"mov 4, r9d",
	 EM_X86_64,
	 7,
	 {0x44, 0x8b, 0x0d, 0xf9, 0x0f, 0, 0},
	 1,
	 {{0x402000, CODEREF_LOAD, 4}}},
	{"backwards",
	 EM_X86_64,
	 7,
	 {0x48, 0x8b, 0x05, 0xf9, 0xef, 0xff, 0xff},
	 1,
	 {{0x400000, CODEREF_LOAD, 8}}},
	{"store 8",
	 EM_X86_64,
	 7,
	 {0x48, 0x89, 0x05, 0xf9, 0x0f, 0, 0},
	 1,
	 {{0x402000, CODEREF_STORE, 8}}},
	{"store imm",
	 EM_X86_64,
	 11,
	 {0x48, 0xc7, 0x05, 0xf5, 0x0f, 0, 0, 0, 0, 8, 0},
	 1,
	 {{0x402000, CODEREF_STORE, 8}}},
	{"lea",
	 EM_X86_64,
	 7,
	 {0x48, 0x8d, 0x3d, 0xf9, 0x0f, 0, 0},
	 1,
	 {{0x402000, CODEREF_ADDRESS, 0}}},
	{"cmp imm8",
	 EM_X86_64,
	 8,
	 {0x48, 0x83, 0x3d, 0xf8, 0x0f, 0, 0, 0},
	 1,
	 {{0x402000, CODEREF_LOAD, 8}}},
	{"behind a call whose distance looks like a comparison",
	 EM_X86_64,
	 12,
	 {0xe8, 0x3b, 0x1d, 0x01, 0, 0x48, 0x8b, 0x15, 0xf4, 0x0f, 0, 0},
	 2,
	 {{0xffffffff8b881008, CODEREF_LOAD, 4}, {0x402000, CODEREF_LOAD, 8}}},
	{"add imm8", EM_X86_64, 8, {0x48, 0x83, 0x05, 0xf8, 0x0f, 0, 0, 0}, 0, {{0}}},
	{"cmp byte",
	 EM_X86_64,
	 7,
	 {0x80, 0x3d, 0xf9, 0x0f, 0, 0, 0},
	 1,
	 {{0x402000, CODEREF_LOAD, 1}}},
	{"movzx",
	 EM_X86_64,
	 7,
	 {0x0f, 0xb6, 0x05, 0xf9, 0x0f, 0, 0},
	 1,
	 {{0x402000, CODEREF_LOAD, 1}}},
	{"register operand", EM_X86_64, 3, {0x48, 0x8b, 0xc5}, 0, {{0}}},
	{"by a register", EM_X86_64, 7, {0x48, 0x8b, 0x85, 0xf9, 0x0f, 0, 0}, 0, {{0}}},
	{"two",
	 EM_X86_64,
	 15,
	 {0x90, 0x48, 0x8b, 0x05, 0xf8, 0x0f, 0, 0, 0x48, 0x8b, 0x0d, 0xf1, 0x0f, 0, 0},
	 2,
	 {{0x402000, CODEREF_LOAD, 8}, {0x402000, CODEREF_LOAD, 8}}},
	{"cut", EM_X86_64, 6, {0x48, 0x8b, 0x05, 0xf9, 0x0f, 0}, 0, {{0}}},
	{"cut in the immediate",
	 EM_X86_64,
	 10,
	 {0x48, 0xc7, 0x05, 0xf5, 0x0f, 0, 0, 0, 0, 8},
	 0,
	 {{0}}},
	{"nothing", EM_X86_64, 0, {0}, 0, {{0}}},

	/* adrp x0, 0x402000; ldr x1, [x0, #8] */
	{"ldr", EM_AARCH64, 8, {W(0xb0000000), W(0xf9400401)}, 1, {{0x402008, CODEREF_LOAD, 8}}},
	{"ldr w", EM_AARCH64, 8, {W(0xb0000000), W(0xb9400401)}, 1, {{0x402004, CODEREF_LOAD, 4}}},
	{"ldrb", EM_AARCH64, 8, {W(0xb0000000), W(0x39400401)}, 1, {{0x402001, CODEREF_LOAD, 1}}},
	{"str", EM_AARCH64, 8, {W(0xb0000000), W(0xf9000401)}, 1, {{0x402008, CODEREF_STORE, 8}}},
	{"page before",
	 EM_AARCH64,
	 8,
	 {W(0xf0ffffe0), W(0xf9400401)},
	 1,
	 {{0x400008, CODEREF_LOAD, 8}}},
	{"add, ldar",
	 EM_AARCH64,
	 12,
	 {W(0xb0000000), W(0x91004000), W(0xc8dffc01)},
	 2,
	 {{0x402010, CODEREF_ADDRESS, 0}, {0x402010, CODEREF_LOAD, 8}}},
	{"base overwritten",
	 EM_AARCH64,
	 12,
	 {W(0xb0000000), W(0xaa0503e0), W(0xf9400401)},
	 0,
	 {{0}}},
	{"base loaded",
	 EM_AARCH64,
	 12,
	 {W(0xb0000000), W(0xf9400400), W(0xf9400401)},
	 1,
	 {{0x402008, CODEREF_LOAD, 8}}},
	{"store keeps the base",
	 EM_AARCH64,
	 12,
	 {W(0xb0000000), W(0xf9000020), W(0xf9400401)},
	 1,
	 {{0x402008, CODEREF_LOAD, 8}}},
	{"xzr is no base", EM_AARCH64, 8, {W(0xb000001f), W(0xf94007e1)}, 0, {{0}}},
	{"cut", EM_AARCH64, 7, {W(0xb0000000), W(0xf9400401)}, 0, {{0}}},

	{"another machine", EM_RISCV, 7, {0x48, 0x8b, 0x05, 0xf9, 0x0f, 0, 0}, 0, {{0}}},
};

static void reads_instructions(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		const struct row *row = &rows[i];
		struct coderef refs[3];
		/* a separate block, so ASan sees reads beyond the end */
		uint8_t *code = malloc(row->n ? row->n : 1);

		row_begin(row->name);
		memcpy(code, row->code, row->n);
		/* arm64's page is the page of the instruction */
		assert_int_equal(
			coderefs_find(row->machine, code, row->n, AT, refs, array_size(refs)),
			row->n_refs);
		for (size_t k = 0; k < row->n_refs; k++) {
			assert_true(refs[k].vaddr == row->refs[k].vaddr);
			assert_int_equal(refs[k].kind, row->refs[k].kind);
			assert_int_equal(refs[k].bytes, row->refs[k].bytes);
		}
		free(code);
	}
}

static void counts_what_finds_no_room(void **state)
{
	static const uint8_t code[] = {0x48, 0x8b, 0x05, 0xf9, 0x0f, 0, 0,
				       0x48, 0x8b, 0x0d, 0xf9, 0x0f, 0, 0};
	struct coderef one;

	(void)state;
	assert_int_equal(coderefs_find(EM_X86_64, code, sizeof(code), AT, &one, 1), 2);
	assert_true(one.vaddr == 0x402000);
	assert_int_equal(coderefs_find(EM_X86_64, code, sizeof(code), AT, NULL, 0), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_instructions),
		cmocka_unit_test(counts_what_finds_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
