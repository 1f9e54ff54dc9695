// SPDX-License-Identifier: Apache-2.0
/*
 * On x86-64 code addresses data relative to the next instruction: ModRM with mod 00 and rm 101,
 * then 4 bytes of distance, then the immediate if there is one. Instructions have no fixed length,
 * and all lengths would take a table of all instructions. But references to data have only a few
 * forms, so the scan tries these at each byte. A false match inside another instruction gives an
 * address that is almost certainly outside of the program. A false match may extend into the next
 * instruction, so the scan does not skip the bytes of a match.
 *
 * Source: Intel's Software Developer's Manual, volume 2.
 */
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "gofile/coderefs.h"

#define REX_FIRST  0x40 /* to 0x4f */
#define REX_W	   0x08
#define MODRM_MASK 0xc7 /* mod and rm; the bits between are a register or a part of the opcode */
#define MODRM_RIP  0x05
#define ANY_REG	   0xff

/* An operation with an operand in memory. */
static const struct form {
	uint8_t opcode[2]; /* second byte 0: a single byte */
	uint8_t reg;	   /* this part of the opcode, or ANY_REG */
	uint8_t immediate; /* bytes */
	uint8_t bytes;	   /* of the operand; 4 becomes 8 with REX.W */
	enum coderef_kind kind;
} forms[] = {
	{{0x8b}, ANY_REG, 0, 4, CODEREF_LOAD},	     /* mov m, r */
	{{0x89}, ANY_REG, 0, 4, CODEREF_STORE},	     /* mov r, m */
	{{0xc7}, 0, 4, 4, CODEREF_STORE},	     /* mov imm, m */
	{{0x8d}, ANY_REG, 0, 0, CODEREF_ADDRESS},    /* lea */
	{{0x39}, ANY_REG, 0, 4, CODEREF_LOAD},	     /* cmp r, m */
	{{0x3b}, ANY_REG, 0, 4, CODEREF_LOAD},	     /* cmp m, r */
	{{0x83}, 7, 1, 4, CODEREF_LOAD},	     /* cmp imm8, m */
	{{0x81}, 7, 4, 4, CODEREF_LOAD},	     /* cmp imm32, m */
	{{0x80}, 7, 1, 1, CODEREF_LOAD},	     /* cmp imm8, byte */
	{{0x0f, 0xb6}, ANY_REG, 0, 1, CODEREF_LOAD}, /* movzx */
};

static const struct form *find_form(const uint8_t *code, size_t n, size_t *ret_bytes)
{
	for (size_t i = 0; i < array_size(forms); i++) {
		const struct form *f = &forms[i];
		size_t k = f->opcode[1] ? 2 : 1;

		if (n < k + 1 + sizeof(int32_t) + f->immediate || memcmp(code, f->opcode, k) != 0)
			continue;
		if ((code[k] & MODRM_MASK) != MODRM_RIP)
			continue;
		if (f->reg != ANY_REG && ((code[k] >> 3) & 7) != f->reg)
			continue;
		*ret_bytes = k + 1;
		return f;
	}
	return NULL;
}

/* Decode the instruction at @code. Returns the length of prefix and first opcode byte, 0 for an
 * instruction of no known form. */
static size_t read_one(const uint8_t *code, size_t n, uint64_t vaddr, struct coderef *ret)
{
	size_t i = 0, opcode, prefix;
	bool wide = false;
	int32_t distance;
	const struct form *f;

	if (n && (code[0] & 0xf0) == REX_FIRST)
		wide = code[i++] & REX_W;
	prefix = i;
	f = find_form(code + i, n - i, &opcode);
	if (!f)
		return 0;
	memcpy(&distance, code + i + opcode, sizeof(distance));
	i += opcode + sizeof(distance) + f->immediate;
	*ret = (struct coderef){
		.vaddr = vaddr + i + (uint64_t)(int64_t)distance,
		.kind = f->kind,
		.bytes = wide && f->bytes == 4 ? 8 : f->bytes,
	};
	return prefix + 1;
}

size_t coderefs_find_x86(const uint8_t *code, size_t n, uint64_t vaddr, struct coderef *ret,
			 size_t max)
{
	size_t found = 0, step;
	struct coderef one;

	for (size_t i = 0; i < n; i += step ? step : 1) {
		step = read_one(code + i, n - i, vaddr + i, &one);
		if (step && found++ < max)
			ret[found - 1] = one;
	}
	return found;
}
