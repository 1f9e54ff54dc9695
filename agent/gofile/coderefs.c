// SPDX-License-Identifier: Apache-2.0
#include "gofile/coderefs.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

/* ---- x86-64 */

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
static size_t x86_read(const uint8_t *code, size_t n, uint64_t vaddr, struct coderef *ret)
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

static size_t x86_find(const uint8_t *code, size_t n, uint64_t vaddr, struct coderef *ret,
		       size_t max)
{
	size_t found = 0, step;
	struct coderef one;

	for (size_t i = 0; i < n; i += step ? step : 1) {
		step = x86_read(code + i, n - i, vaddr + i, &one);
		if (step && found++ < max)
			ret[found - 1] = one;
	}
	return found;
}

/* ---- AArch64 */

/*
 * On AArch64 an address takes two instructions. ADRP puts the address of a 4 KiB page near the
 * instruction into a register. Then ADD adds the offset in the page, or a load or store has the
 * offset. So the scan records the registers with the address of a page or a complete address, until
 * another value replaces the address. The scan ignores branches, because compilers put none between
 * the two instructions.
 *
 * Source: Arm Architecture Reference Manual for A-profile, C4.1 and C6.2.
 */

#define N_REGS 32

static const struct access {
	uint32_t mask;
	uint32_t value;
	enum coderef_kind kind;
	uint8_t bytes;
	bool has_offset; /* 12 bits, in units of @bytes */
} accesses[] = {
	{0xffc00000, 0xf9400000, CODEREF_LOAD, 8, true},  /* ldr x */
	{0xffc00000, 0xb9400000, CODEREF_LOAD, 4, true},  /* ldr w */
	{0xffc00000, 0x39400000, CODEREF_LOAD, 1, true},  /* ldrb */
	{0xffc00000, 0xf9000000, CODEREF_STORE, 8, true}, /* str x */
	{0xffc00000, 0xb9000000, CODEREF_STORE, 4, true},
	{0xffc00000, 0x39000000, CODEREF_STORE, 1, true},
	{0xfffffc00, 0xc8dffc00, CODEREF_LOAD, 8, false}, /* ldar x */
	{0xfffffc00, 0x88dffc00, CODEREF_LOAD, 4, false},
	{0xfffffc00, 0x08dffc00, CODEREF_LOAD, 1, false},
	{0xfffffc00, 0xc89ffc00, CODEREF_STORE, 8, false}, /* stlr x */
	{0xfffffc00, 0x889ffc00, CODEREF_STORE, 4, false},
	{0xfffffc00, 0x089ffc00, CODEREF_STORE, 1, false},
};

struct known {
	uint64_t value[N_REGS];
	uint32_t is_known; /* a bit for each register; always 0 for 31, which is not an ordinary
			      register */
};

static void learn(struct known *k, unsigned int reg, uint64_t value)
{
	k->value[reg] = value;
	k->is_known |= reg == 31 ? 0 : 1u << reg;
}

static bool is_known(const struct known *k, unsigned int reg)
{
	return k->is_known >> reg & 1;
}

/* The register number at bit @n. */
static unsigned int reg_at(uint32_t insn, unsigned int n)
{
	return insn >> n & 31;
}

static uint64_t adrp_page(uint32_t insn, uint64_t pc)
{
	uint64_t pages = (insn >> 5 & 0x7ffff) << 2 | (insn >> 29 & 3); /* 21 bits, signed */
	uint64_t sign = (uint64_t)1 << 20;

	return (pc & ~(uint64_t)4095) + ((pages ^ sign) - sign) * 4096;
}

static const struct access *find_access(uint32_t insn)
{
	for (size_t i = 0; i < array_size(accesses); i++)
		if ((insn & accesses[i].mask) == accesses[i].value)
			return &accesses[i];
	return NULL;
}

/* Whether the instruction references an address. Updates the registers. */
static bool arm64_read(struct known *k, uint32_t insn, uint64_t pc, struct coderef *ret)
{
	const struct access *a = find_access(insn);
	unsigned int to = reg_at(insn, 0), base = reg_at(insn, 5);
	/* add x, x, #imm12; addresses of variables never use the other form, shifted by 12 */
	bool names = (a || (insn & 0xffc00000) == 0x91000000) && is_known(k, base);
	uint64_t vaddr = k->value[base], offset = insn >> 10 & 4095;

	if (!a || a->kind == CODEREF_LOAD)
		k->is_known &= ~(1u << to);
	if ((insn & 0x9f000000) == 0x90000000) /* adrp */
		learn(k, to, adrp_page(insn, pc));
	if (!names)
		return false;
	if (!a) {
		learn(k, to, vaddr + offset);
		*ret = (struct coderef){vaddr + offset, CODEREF_ADDRESS, 0};
		return true;
	}
	*ret = (struct coderef){
		.vaddr = vaddr + (a->has_offset ? offset * a->bytes : 0),
		.kind = a->kind,
		.bytes = a->bytes,
	};
	return true;
}

static size_t arm64_find(const uint8_t *code, size_t n, uint64_t vaddr, struct coderef *ret,
			 size_t max)
{
	struct known known = {0};
	struct coderef one;
	size_t found = 0;

	for (size_t i = 0; i + sizeof(uint32_t) <= n; i += sizeof(uint32_t)) {
		uint32_t insn;

		memcpy(&insn, code + i, sizeof(insn));
		if (arm64_read(&known, insn, vaddr + i, &one) && found++ < max)
			ret[found - 1] = one;
	}
	return found;
}

size_t coderefs_find(unsigned int machine, const uint8_t *code, size_t n, uint64_t vaddr,
		     struct coderef *ret, size_t max)
{
	switch (machine) {
	case EM_X86_64:
		return x86_find(code, n, vaddr, ret, max);
	case EM_AARCH64:
		return arm64_find(code, n, vaddr, ret, max);
	default:
		return 0;
	}
}
