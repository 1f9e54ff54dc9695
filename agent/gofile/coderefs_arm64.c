// SPDX-License-Identifier: Apache-2.0
/*
 * On AArch64 an address takes two instructions. ADRP puts the address of a 4 KiB page near the
 * instruction into a register. Then ADD adds the offset in the page, or a load or store has the
 * offset. So the scan records the registers with the address of a page or a complete address, until
 * another value replaces the address. The scan ignores branches, because compilers put none between
 * the two instructions.
 *
 * Source: Arm Architecture Reference Manual for A-profile, C4.1 and C6.2.
 */
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "gofile/coderefs.h"

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

static bool is_adrp(uint32_t insn)
{
	return (insn & 0x9f000000) == 0x90000000;
}

static uint64_t adrp_page(uint32_t insn, uint64_t pc)
{
	uint64_t pages = (insn >> 5 & 0x7ffff) << 2 | (insn >> 29 & 3); /* 21 bits, signed */
	uint64_t sign = (uint64_t)1 << 20;

	return (pc & ~(uint64_t)4095) + ((pages ^ sign) - sign) * 4096;
}

/* add x, x, #imm12; addresses of variables never use the other form, shifted by 12 */
static bool is_add(uint32_t insn)
{
	return (insn & 0xffc00000) == 0x91000000;
}

static const struct access *find_access(uint32_t insn)
{
	for (size_t i = 0; i < array_size(accesses); i++)
		if ((insn & accesses[i].mask) == accesses[i].value)
			return &accesses[i];
	return NULL;
}

/* Whether the instruction references an address. Updates the registers. */
static bool read_one(struct known *k, uint32_t insn, uint64_t pc, struct coderef *ret)
{
	const struct access *a = find_access(insn);
	unsigned int to = reg_at(insn, 0), base = reg_at(insn, 5);
	bool names = (a || is_add(insn)) && is_known(k, base);
	uint64_t vaddr = k->value[base], offset = insn >> 10 & 4095;

	if (!a || a->kind == CODEREF_LOAD)
		k->is_known &= ~(1u << to);
	if (is_adrp(insn))
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

size_t coderefs_find_arm64(const uint8_t *code, size_t n, uint64_t vaddr, struct coderef *ret,
			   size_t max)
{
	struct known known = {0};
	struct coderef one;
	size_t found = 0;

	for (size_t i = 0; i + sizeof(uint32_t) <= n; i += sizeof(uint32_t)) {
		uint32_t insn;

		memcpy(&insn, code + i, sizeof(insn));
		if (read_one(&known, insn, vaddr + i, &one) && found++ < max)
			ret[found - 1] = one;
	}
	return found;
}
