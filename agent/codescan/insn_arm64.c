// SPDX-License-Identifier: Apache-2.0
/*
 * AArch64, by the encoding tables of Arm's manual (C4.1). All instructions have four bytes. Few of
 * them write the stack pointer: add and sub with immediates, loads and stores that move their base,
 * and forms that lose it.
 */
#include "codescan/insn.h"

#include <string.h>

#define FP 29u
#define LR 30u
#define SP 31u

/* How far behind the first half of an address (adrp) the second is looked for (add). */
#define HALVES 4

static uint32_t field(uint32_t w, unsigned int at, unsigned int n)
{
	return w >> at & ((1u << n) - 1);
}

static int32_t signed_field(uint32_t w, unsigned int at, unsigned int n)
{
	return (int32_t)(w << (32 - at - n)) >> (32 - n);
}

static uint64_t relative(uint64_t vaddr, int32_t words)
{
	return vaddr + (uint64_t)((int64_t)words * 4);
}

static void branch(uint32_t w, uint64_t vaddr, struct insn *ret)
{
	if (field(w, 26, 6) == 0x05 || field(w, 26, 6) == 0x25) { /* b, bl */
		ret->flow = field(w, 31, 1) ? INSN_CALL : INSN_JUMP;
		ret->target = relative(vaddr, signed_field(w, 0, 26));
	} else if ((w & 0xff000010) == 0x54000000 || (w & 0x7e000000) == 0x34000000) {
		ret->flow = INSN_BRANCH; /* b.cond, cbz, cbnz */
		ret->target = relative(vaddr, signed_field(w, 5, 19));
	} else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		ret->flow = INSN_BRANCH;
		ret->target = relative(vaddr, signed_field(w, 5, 14));
	} else if ((w & 0xfffffc1f) == 0xd65f0000 || (w & 0xfffffbff) == 0xd65f0bff) {
		ret->flow = INSN_RETURN;
	} else if ((w & 0xfffffc1f) == 0xd61f0000 || (w & 0xfefff800) == 0xd61f0800) {
		ret->flow = INSN_INDIRECT;
	} else if ((w & 0xfffffc1f) == 0xd63f0000 || (w & 0xfefff800) == 0xd63f0800) {
		ret->flow = INSN_CALL;
	} else if ((w & 0xffe0001f) == 0xd4200000 || (w & 0xffe0001f) == 0xd4400000) {
		ret->flow = INSN_END; /* brk, hlt */
	} else if (w == 0xd503201f) {
		ret->flow = INSN_PADDING;
	}
}

/* add and sub of 64 bits with an immediate; mov to and from sp is an add. */
static bool add_insn(uint32_t w, struct insn *ret)
{
	uint32_t to = field(w, 0, 5), from = field(w, 5, 5);
	int32_t imm = (int32_t)(field(w, 10, 12) << (field(w, 22, 1) ? 12 : 0));

	if ((w & 0xbf800000) != 0x91000000)
		return false;
	if (field(w, 30, 1))
		imm = -imm;
	if (to == SP) {
		ret->sp = from == SP ? INSN_SP_ADD : from == FP ? INSN_SP_FROM_FP : INSN_SP_LOST;
		ret->sp_add = ret->sp == INSN_SP_LOST ? 0 : imm;
	} else if (to == FP) {
		ret->fp = from == SP ? INSN_FP_FROM_SP : INSN_FP_OTHER;
		ret->fp_at = from == SP ? imm : 0;
	}
	return true;
}

/* Stores or loads a general register of 64 bits at a place on the stack. */
static void transfer(uint32_t reg, bool load, bool on_stack, int32_t at, struct insn *ret)
{
	if (reg == FP && (on_stack || load)) {
		ret->fp = !on_stack ? INSN_FP_OTHER : load ? INSN_FP_LOADED : INSN_FP_SAVED;
		ret->fp_at = on_stack ? at : 0;
	}
	if (reg == LR && on_stack) {
		ret->ra = load ? INSN_RA_LOADED : INSN_RA_SAVED;
		ret->ra_at = at;
	}
}

enum { MODE_NONE, MODE_POST, MODE_OFFSET, MODE_PRE };

/* The place of a transfer, relative to sp before a load and after a store. */
static int32_t place(bool load, unsigned int mode, int32_t imm)
{
	if (mode == MODE_POST)
		return load ? 0 : -imm;
	return mode == MODE_PRE && !load ? 0 : imm;
}

static void move_base(uint32_t base, unsigned int mode, int32_t imm, struct insn *ret)
{
	if (mode != MODE_POST && mode != MODE_PRE)
		return;
	if (base == SP) {
		ret->sp = INSN_SP_ADD;
		ret->sp_add = imm;
	} else if (base == FP) {
		ret->fp = INSN_FP_OTHER;
	}
}

static bool pair_insn(uint32_t w, struct insn *ret)
{
	uint32_t size = field(w, 30, 2), base = field(w, 5, 5), mode = field(w, 23, 2);
	bool vector = field(w, 26, 1), load = field(w, 22, 1);
	int32_t scale = vector ? 4 << size : size & 2 ? 8 : 4;
	int32_t imm, at;

	if ((w & 0x3a000000) != 0x28000000)
		return false;
	imm = signed_field(w, 15, 7) * scale;
	at = place(load, mode, imm);
	if (!vector && size == 2) {
		transfer(field(w, 0, 5), load, base == SP, at, ret);
		transfer(field(w, 10, 5), load, base == SP, at + 8, ret);
	}
	move_base(base, mode, imm, ret);
	return true;
}

/* ldr and str of any size, with an immediate. */
static bool single_insn(uint32_t w, struct insn *ret)
{
	uint32_t base = field(w, 5, 5), mode = MODE_OFFSET;
	bool vector = field(w, 26, 1), load = field(w, 22, 2) != 0;
	int32_t imm;

	if ((w & 0x3b000000) == 0x39000000) {
		imm = (int32_t)(field(w, 10, 12) << field(w, 30, 2));
	} else if ((w & 0x3b200000) == 0x38000000) {
		imm = signed_field(w, 12, 9);
		mode = field(w, 10, 2) == 1   ? MODE_POST
		       : field(w, 10, 2) == 3 ? MODE_PRE
					      : MODE_OFFSET;
	} else {
		return false;
	}
	if (!vector && field(w, 30, 2) == 3)
		transfer(field(w, 0, 5), load, base == SP, place(load, mode, imm), ret);
	move_base(base, mode, imm, ret);
	return true;
}

/* Other instructions that write x29 or sp, as far as assembly uses them. */
static void other_insn(uint32_t w, struct insn *ret)
{
	bool immediate = (w & 0x1c000000) == 0x10000000, registers = (w & 0x0e000000) == 0x0a000000;
	uint32_t to = field(w, 0, 5);

	/* mov x29, xzr; mov x29, #0; mov w29, #0 */
	if (w == 0xaa1f03fd || w == 0xd280001d || w == 0x5280001d)
		ret->fp = INSN_FP_ZERO;
	else if (to == FP && (immediate || registers))
		ret->fp = INSN_FP_OTHER;
	/* add and sub of an extended register, and of an immediate */
	if (to == SP && ((w & 0xbfe00000) == 0x8b200000 || (w & 0xff800000) == 0x92000000))
		ret->sp = INSN_SP_LOST;
}

static uint32_t word(const uint8_t *bytes)
{
	uint32_t w;

	memcpy(&w, bytes, sizeof(w));
	return w;
}

/* adr; or adrp, and an add that completes the address. */
static uint64_t points_to(const uint8_t *bytes, size_t n, uint64_t vaddr)
{
	uint32_t w = word(bytes), to = field(w, 0, 5);
	uint64_t imm = (uint64_t)((int64_t)signed_field(w, 5, 19) * 4 + field(w, 29, 2));

	if ((w & 0x9f000000) == 0x10000000)
		return vaddr + imm;
	if ((w & 0x9f000000) != 0x90000000)
		return 0;
	for (size_t i = 1; i <= HALVES && n >= 4 * i + 4; i++) {
		uint32_t next = word(bytes + 4 * i);

		if ((next & 0xffc00000) == 0x91000000 && field(next, 5, 5) == to)
			return (vaddr & ~0xfffull) + (imm << 12) + field(next, 10, 12);
	}
	return 0;
}

bool insn_decode_arm64(const uint8_t *bytes, size_t n, uint64_t vaddr, struct insn *ret)
{
	struct insn insn = {.length = 4};
	uint32_t w;

	if (n < 4)
		return false;
	w = word(bytes);
	/* unallocated encodings, such as zeros */
	if ((w & 0x1e000000) == 0)
		return false;
	branch(w, vaddr, &insn);
	if (!insn.flow && !add_insn(w, &insn) && !pair_insn(w, &insn) && !single_insn(w, &insn))
		other_insn(w, &insn);
	insn.points = points_to(bytes, n, vaddr);
	*ret = insn;
	return true;
}
