// SPDX-License-Identifier: Apache-2.0
/*
 * x86-64, by the opcode maps of Intel's manual (volume 2, appendix A): prefixes, opcode, ModRM
 * byte, SIB byte, displacement, immediate. Most instructions matter only for their length. Unusual
 * writes of the stack pointer lose it. Writes of the frame pointer are recognised, because
 * hand-written code uses the frame pointer for other things without saving it.
 *
 * Left out: encodings that are invalid in 64-bit mode, AMD's XOP and 3DNow. The decoder rejects
 * these, and code that contains such an instruction is not analysed.
 */
#include "codescan/insn.h"

#include <string.h>

#define RSP 4
#define RBP 5

#define REX_W 8
#define REX_R 4
#define REX_B 1

enum { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A };

/* How an opcode goes on. */
enum form {
	FORM_NONE = 0, /* nothing */
	FORM_M = 1,    /* ModRM */
	FORM_I8 = 2,   /* 8 bits immediate */
	FORM_I32 = 4,  /* 32 bits, 16 with the operand size prefix */
	FORM_BAD = 8,
};

struct x86 {
	const uint8_t *bytes;
	size_t n;
	size_t at;	    /* read so far */
	bool short_operand; /* prefix 66 */
	bool repeated;	    /* prefix f2 or f3 */
	uint8_t rex;
	uint8_t map;
	bool vector; /* VEX or EVEX */
	uint8_t opcode;
	/* with ModRM */
	bool has_modrm;
	uint8_t mod, reg, rm; /* registers with the bits of REX */
	bool has_base;	      /* the address has a base register, and no index */
	uint8_t base;
	bool relative; /* to the next instruction */
	int32_t disp;
	int64_t imm;
};

static bool take(struct x86 *x, void *ret, size_t n)
{
	if (n > x->n - x->at)
		return false;
	memcpy(ret, x->bytes + x->at, n);
	x->at += n;
	return true;
}

static bool take_signed(struct x86 *x, size_t n, int64_t *ret)
{
	uint8_t b = 0;
	int16_t w = 0;
	int32_t d = 0;

	switch (n) {
	case 1:
		if (!take(x, &b, 1))
			return false;
		*ret = b - (b & 0x80) * 2;
		return true;
	case 2:
		if (!take(x, &w, 2))
			return false;
		*ret = w;
		return true;
	case 4:
		if (!take(x, &d, 4))
			return false;
		*ret = d;
		return true;
	default:
		return take(x, ret, 8);
	}
}

/* ---------------------------------------------------------------- the opcode maps */

static unsigned int form_one(uint8_t op)
{
	static const uint8_t upper[0x60] = {
		/* a0 */ 8, 8, 8, 8, 0, 0, 0, 0, 2, 4, 0, 0, 0, 0, 0, 0,
		/* b0 */ 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4,
		/* c0 */ 3, 3, 8, 0, 8, 8, 3, 5, 8, 0, 8, 8, 0, 2, 8, 8,
		/* d0 */ 1, 1, 1, 1, 8, 8, 8, 0, 1, 1, 1, 1, 1, 1, 1, 1,
		/* e0 */ 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 8, 2, 0, 0, 0, 0,
		/* f0 */ 8, 0, 8, 8, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1,
	};
	static const uint8_t middle[0x40] = {
		/* 60 */ 8, 8, 8, 1, 8, 8, 8, 8, 4, 5, 2, 3, 0, 0, 0, 0,
		/* 70 */ 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
		/* 80 */ 3, 5, 8, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		/* 90 */ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0,
	};

	if (op < 0x40) /* the eight arithmetic ones, six forms each */
		return (op & 7) < 4    ? FORM_M
		       : (op & 7) == 4 ? FORM_I8
		       : (op & 7) == 5 ? FORM_I32
				       : FORM_BAD;
	if (op < 0x50)
		return FORM_BAD; /* REX, already consumed */
	if (op < 0x60)
		return FORM_NONE; /* push and pop */
	return op < 0xa0 ? middle[op - 0x60] : upper[op - 0xa0];
}

static unsigned int form_0f(uint8_t op)
{
	if (op >= 0x80 && op <= 0x8f)
		return FORM_I32;
	if ((op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
	    (op >= 0xc4 && op <= 0xc6))
		return FORM_M | FORM_I8;
	if ((op >= 0x05 && op <= 0x09) || op == 0x0b || (op >= 0x30 && op <= 0x37) || op == 0x77 ||
	    op == 0xa0 || op == 0xa1 || op == 0xa2 || (op >= 0xa8 && op <= 0xaa) || op >= 0xc8)
		return op >= 0xd0 ? FORM_M : FORM_NONE;
	if (op == 0x04 || op == 0x0a || op == 0x0c || op == 0x0e || op == 0x0f ||
	    (op >= 0x24 && op <= 0x27) || (op >= 0x36 && op <= 0x3f) || op == 0xa6 || op == 0xa7)
		return FORM_BAD;
	return FORM_M;
}

static unsigned int form_of(const struct x86 *x)
{
	switch (x->map) {
	case MAP_ONE:
		return form_one(x->opcode);
	case MAP_0F:
		return x->vector && x->opcode == 0x77 ? FORM_NONE : form_0f(x->opcode);
	case MAP_0F38:
		return FORM_M;
	default:
		return FORM_M | FORM_I8;
	}
}

/* ---------------------------------------------------------------- decoding */

static bool read_legacy_prefixes(struct x86 *x)
{
	for (; x->at < x->n && x->at < 14; x->at++)
		switch (x->bytes[x->at]) {
		case 0x66:
			x->short_operand = true;
			break;
		case 0xf2:
		case 0xf3:
			x->repeated = true;
			break;
		case 0xf0:
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0x67: /* addresses of 32 bits: not longer, not shorter */
			break;
		default:
			return true;
		}
	return false;
}

/* Behind c4, c5 or 62: the inverted bits of REX, and the map. */
static bool read_vector_prefix(struct x86 *x, uint8_t first)
{
	uint8_t p[3] = {0};
	size_t n = first == 0xc5 ? 1 : first == 0xc4 ? 2 : 3;

	if (!take(x, p, n))
		return false;
	x->vector = true;
	x->rex = (uint8_t)((~p[0] >> 5) & 7); /* R, X, B */
	x->map = first == 0xc5 ? MAP_0F : (p[0] & (first == 0x62 ? 7 : 31));
	if (first == 0xc5)
		x->rex &= REX_R;
	return x->map >= MAP_0F && x->map <= MAP_0F3A;
}

static bool read_opcode(struct x86 *x)
{
	uint8_t b;

	if (!read_legacy_prefixes(x) || !take(x, &b, 1))
		return false;
	if ((b & 0xf0) == 0x40) {
		x->rex = b; /* 0x40 stays in it: a REX prefix is present */
		if (!take(x, &b, 1))
			return false;
	}
	if (b == 0xc4 || b == 0xc5 || b == 0x62)
		return !x->rex && read_vector_prefix(x, b) && take(x, &x->opcode, 1);
	if (b == 0x0f) {
		x->map = MAP_0F;
		if (!take(x, &b, 1))
			return false;
		if (b == 0x38 || b == 0x3a) {
			x->map = b == 0x38 ? MAP_0F38 : MAP_0F3A;
			if (!take(x, &b, 1))
				return false;
		}
	}
	x->opcode = b;
	return true;
}

static bool read_sib(struct x86 *x, bool *ret_disp32)
{
	uint8_t sib;

	if (!take(x, &sib, 1))
		return false;
	*ret_disp32 = x->mod == 0 && (sib & 7) == 5;
	x->has_base = !*ret_disp32 && ((sib >> 3) & 7) == 4 && !(x->rex & 2);
	x->base = (uint8_t)((sib & 7) | (x->rex & REX_B) << 3);
	return true;
}

static bool read_modrm(struct x86 *x)
{
	bool disp32 = false;
	int64_t disp = 0;
	uint8_t b;

	if (!take(x, &b, 1))
		return false;
	x->has_modrm = true;
	x->mod = b >> 6;
	x->reg = (uint8_t)(((b >> 3) & 7) | (x->rex & REX_R) << 1);
	x->rm = (uint8_t)((b & 7) | (x->rex & REX_B) << 3);
	if (x->mod == 3)
		return true;
	x->has_base = true;
	x->base = x->rm;
	if ((b & 7) == 4 && !read_sib(x, &disp32))
		return false;
	if (x->mod == 0 && (b & 7) == 5) {
		x->relative = disp32 = true;
		x->has_base = false;
	}
	if ((x->mod == 2 || disp32) && !take_signed(x, 4, &disp))
		return false;
	if (x->mod == 1 && !take_signed(x, 1, &disp))
		return false;
	x->disp = (int32_t)disp;
	return true;
}

/* Sizes that depend on more than the opcode. */
static size_t immediate_size(const struct x86 *x, unsigned int form)
{
	if (x->map == MAP_ONE) {
		if (x->opcode >= 0xa0 && x->opcode <= 0xa3)
			return 8;
		if (x->opcode >= 0xb8 && x->opcode <= 0xbf && (x->rex & REX_W))
			return 8;
		if (x->opcode == 0xf6 || x->opcode == 0xf7) {
			if ((x->reg & 7) > 1)
				return 0;
			return x->opcode == 0xf6 ? 1 : x->short_operand ? 2 : 4;
		}
		if (x->opcode == 0xc2)
			return 2;
		if (x->opcode == 0xe8 || x->opcode == 0xe9)
			return 4;
	}
	if (form & FORM_I8)
		return 1;
	if (!(form & FORM_I32))
		return 0;
	return x->short_operand && x->map == MAP_ONE ? 2 : 4;
}

static bool read(struct x86 *x)
{
	unsigned int form;
	size_t size;

	if (!read_opcode(x))
		return false;
	form = form_of(x);
	if ((form & FORM_BAD) &&
	    !(x->map == MAP_ONE && ((x->opcode >= 0xa0 && x->opcode <= 0xa3) || x->opcode == 0xc2)))
		return false;
	if ((form & FORM_M) && !read_modrm(x))
		return false;
	size = immediate_size(x, form);
	return !size || take_signed(x, size, &x->imm);
}

/* ---------------------------------------------------------------- effects */

static bool is_sp_place(const struct x86 *x)
{
	return x->has_modrm && x->mod != 3 && x->has_base && x->base == RSP;
}

static bool is_fp_place(const struct x86 *x)
{
	return x->has_modrm && x->mod != 3 && x->has_base && x->base == RBP;
}

/* Whether the instruction writes ModRM's reg: only the general registers. */
static bool writes_reg(const struct x86 *x)
{
	uint8_t op = x->opcode;

	if (x->vector)
		return false; /* but for BMI, unused by assembly on these two */
	if (x->map == MAP_ONE)
		return (op < 0x38 && (op & 7) >= 2 && (op & 7) <= 3) || op == 0x63 || op == 0x69 ||
		       op == 0x6b || op == 0x87 || op == 0x8b || op == 0x8d;
	if (x->map == MAP_0F)
		return (op >= 0x40 && op <= 0x4f) || op == 0x2c || op == 0x2d || op == 0xaf ||
		       op == 0xb6 || op == 0xb7 || op == 0xb8 || op == 0xbc || op == 0xbd ||
		       op == 0xbe || op == 0xbf || op == 0xc1;
	return false;
}

/* The same of a register in ModRM's rm. */
static bool writes_rm(const struct x86 *x)
{
	uint8_t op = x->opcode;

	if (!x->has_modrm || x->mod != 3 || x->vector)
		return false;
	if (x->map == MAP_0F)
		return op == 0x7e || (op >= 0x90 && op <= 0x9f) || op == 0xa4 || op == 0xa5 ||
		       op == 0xac || op == 0xad || op == 0xc0 || op == 0xc1 || op == 0xb0 ||
		       op == 0xb1 || op == 0xb3 || op == 0xab || op == 0xbb;
	if (x->map != MAP_ONE)
		return false;
	if (op < 0x38)
		return (op & 7) < 2;
	switch (op) {
	case 0x80:
	case 0x81:
	case 0x83:
		return (x->reg & 7) != 7;
	case 0xf6:
	case 0xf7:
		return (x->reg & 7) == 2 || (x->reg & 7) == 3;
	case 0xfe:
	case 0xff:
		return (x->reg & 7) < 2;
	case 0x86:
	case 0x87:
	case 0x88:
	case 0x89:
	case 0x8f:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return true;
	default:
		return false;
	}
}

/* Whether the instruction writes a register not named in the opcode. */
static bool writes(const struct x86 *x, uint8_t reg)
{
	bool byte = x->map == MAP_ONE && x->has_modrm && !(x->opcode & 1) && !x->rex &&
		    x->opcode != 0x8d && x->opcode != 0x63;

	if (byte) /* of the first 8 bits, 4 to 7 are ah to bh without REX */
		return false;
	return (writes_reg(x) && x->has_modrm && x->reg == reg) || (writes_rm(x) && x->rm == reg);
}

static void set_sp_add(struct insn *ret, int64_t add)
{
	ret->sp = add >= INT32_MIN / 2 && add <= INT32_MAX / 2 ? INSN_SP_ADD : INSN_SP_LOST;
	ret->sp_add = ret->sp == INSN_SP_ADD ? (int32_t)add : 0;
}

/* The register in the low bits of an opcode without ModRM. */
static uint8_t opcode_reg(const struct x86 *x)
{
	return (uint8_t)((x->opcode & 7) | (x->rex & REX_B) << 3);
}

/* push and pop, of registers, immediates and memory. */
static bool stack_insn(const struct x86 *x, struct insn *ret)
{
	uint8_t op = x->opcode, reg = opcode_reg(x);
	int size = x->short_operand ? 2 : 8;

	if (x->map == MAP_0F && (op & 0xf6) == 0xa0 && (op & 7) < 2) {
		set_sp_add(ret, op & 1 ? size : -size); /* fs, gs */
		return true;
	}
	if (x->map != MAP_ONE)
		return false;
	if (op >= 0x50 && op <= 0x57) {
		set_sp_add(ret, -size);
		ret->fp = reg == RBP && size == 8 ? INSN_FP_SAVED : INSN_FP_SAME;
	} else if (op >= 0x58 && op <= 0x5f) {
		set_sp_add(ret, size);
		ret->fp = reg == RBP ? INSN_FP_LOADED : INSN_FP_SAME;
		if (reg == RSP)
			ret->sp = INSN_SP_LOST;
	} else if (op == 0x68 || op == 0x6a || op == 0x9c || (op == 0xff && (x->reg & 7) == 6)) {
		set_sp_add(ret, -size);
	} else if (op == 0x9d || op == 0x8f) {
		set_sp_add(ret, size);
	} else if (op == 0xc9) { /* leave */
		ret->sp = INSN_SP_FROM_FP;
		ret->sp_add = 8;
		ret->fp = INSN_FP_POPPED;
	} else {
		return false;
	}
	return true;
}

/* add, sub, lea and mov of the two registers: with 64 bits only. */
static bool frame_insn(const struct x86 *x, struct insn *ret)
{
	uint8_t op = x->opcode;

	if (x->map != MAP_ONE || !(x->rex & REX_W) || !x->has_modrm)
		return false;
	if ((op == 0x81 || op == 0x83) && x->mod == 3 && x->rm == RSP &&
	    ((x->reg & 7) == 0 || (x->reg & 7) == 5)) {
		set_sp_add(ret, (x->reg & 7) ? -x->imm : x->imm);
	} else if (op == 0x8d && x->reg == RSP && is_sp_place(x)) {
		set_sp_add(ret, x->disp);
	} else if (op == 0x8d && x->reg == RSP && is_fp_place(x)) {
		ret->sp = INSN_SP_FROM_FP;
		ret->sp_add = x->disp;
	} else if (op == 0x8d && x->reg == RBP && is_sp_place(x)) {
		ret->fp = INSN_FP_FROM_SP;
		ret->fp_at = x->disp;
	} else if (x->mod == 3 && ((op == 0x89 && x->reg == RSP && x->rm == RBP) ||
				   (op == 0x8b && x->rm == RSP && x->reg == RBP))) {
		ret->fp = INSN_FP_FROM_SP;
	} else if (x->mod == 3 && ((op == 0x89 && x->reg == RBP && x->rm == RSP) ||
				   (op == 0x8b && x->rm == RBP && x->reg == RSP))) {
		ret->sp = INSN_SP_FROM_FP;
	} else if (op == 0x89 && x->reg == RBP && is_sp_place(x)) {
		ret->fp = INSN_FP_SAVED;
		ret->fp_at = x->disp;
	} else if (op == 0x8b && x->reg == RBP && is_sp_place(x)) {
		ret->fp = INSN_FP_LOADED;
		ret->fp_at = x->disp;
	} else {
		return false;
	}
	return true;
}

/* Sets the flow of control. */
static void set_flow(const struct x86 *x, uint64_t vaddr, struct insn *ret)
{
	uint64_t target = vaddr + x->at + (uint64_t)x->imm;
	uint8_t op = x->opcode;

	if (x->map == MAP_0F) {
		if (op >= 0x80 && op <= 0x8f) {
			ret->flow = INSN_BRANCH;
			ret->target = target;
		} else if (op == 0x0b) {
			ret->flow = INSN_END; /* ud2 */
		} else if (op == 0x1f && !x->vector) {
			ret->flow = INSN_PADDING;
		}
		return;
	}
	if (x->map != MAP_ONE)
		return;
	if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3)) {
		ret->flow = INSN_BRANCH;
		ret->target = target;
	} else if (op == 0xe8) {
		ret->flow = INSN_CALL;
		ret->target = target;
	} else if (op == 0xe9 || op == 0xeb) {
		ret->flow = INSN_JUMP;
		ret->target = target;
	} else if (op == 0xc2 || op == 0xc3) {
		ret->flow = INSN_RETURN;
	} else if (op == 0xff && (x->reg & 7) == 2) {
		ret->flow = INSN_CALL;
	} else if (op == 0xff && (x->reg & 7) == 4) {
		ret->flow = INSN_INDIRECT;
		ret->by_word = x->relative;
	} else if (op == 0xf4 || op == 0xcc) {
		ret->flow = op == 0xcc ? INSN_PADDING : INSN_END;
	} else if (op == 0x90 && !(x->rex & REX_B) && !x->repeated) {
		ret->flow = INSN_PADDING;
	}
}

/* xor %ebp,%ebp, in either form and width. */
static bool is_zero_fp(const struct x86 *x)
{
	return x->map == MAP_ONE && (x->opcode == 0x31 || x->opcode == 0x33) && x->mod == 3 &&
	       x->reg == RBP && x->rm == RBP;
}

/* lea of something near, mov of a constant. */
static void set_addresses(const struct x86 *x, uint64_t vaddr, struct insn *ret)
{
	if (x->map != MAP_ONE || x->vector)
		return;
	if (x->opcode == 0x8d && x->relative)
		ret->points = vaddr + x->at + (uint64_t)(int64_t)x->disp;
	if ((x->opcode >= 0xb8 && x->opcode <= 0xbf) ||
	    (x->opcode == 0xc7 && (x->reg & 7) == 0 && x->mod == 3))
		ret->constant = (uint64_t)x->imm;
}

/* ---------------------------------------------------------------- the stack pointer's copy */

/* DWARF's number of each register (System V ABI for AMD64, figure 3.36). */
static const uint8_t dwarf_numbers[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

static bool is_move(const struct x86 *x)
{
	return x->map == MAP_ONE && !x->vector && (x->rex & REX_W) && x->mod == 3 &&
	       (x->opcode == 0x89 || x->opcode == 0x8b);
}

static uint8_t move_from(const struct x86 *x)
{
	return x->opcode == 0x89 ? x->reg : x->rm;
}

static uint8_t move_to(const struct x86 *x)
{
	return x->opcode == 0x89 ? x->rm : x->reg;
}

/* Arithmetic of %rsp and a constant; @operation: as in ModRM. */
static bool is_sp_arithmetic(const struct x86 *x, uint8_t operation)
{
	return x->map == MAP_ONE && !x->vector && (x->rex & REX_W) && x->mod == 3 &&
	       (x->opcode == 0x81 || x->opcode == 0x83) && (x->reg & 7) == operation &&
	       x->rm == RSP;
}

/* sub $N,%rsp */
static bool is_room(const struct x86 *x)
{
	return is_sp_arithmetic(x, 5) && x->imm > 0;
}

/* and $-N,%rsp */
static bool is_alignment(const struct x86 *x)
{
	return is_sp_arithmetic(x, 4) && x->imm < 0;
}

bool insn_x86_aligns(const uint8_t *bytes, size_t n, uint8_t *ret_reg)
{
	struct x86 copy = {.bytes = bytes, .n = n};
	struct x86 next;

	/* nearly all code ends here */
	if (n < 3 || (bytes[0] & 0xf8) != 0x48 || (bytes[1] != 0x89 && bytes[1] != 0x8b))
		return false;
	if (!read(&copy) || !is_move(&copy) || move_from(&copy) != RSP || move_to(&copy) == RBP)
		return false;
	next = (struct x86){.bytes = bytes + copy.at, .n = n - copy.at};
	if (!read(&next))
		return false;
	if (is_room(&next)) {
		next = (struct x86){.bytes = next.bytes + next.at, .n = next.n - next.at};
		if (!read(&next))
			return false;
	}
	if (!is_alignment(&next))
		return false;
	*ret_reg = dwarf_numbers[move_to(&copy)];
	return true;
}

bool insn_x86_gives_back(const uint8_t *bytes, size_t n, uint8_t reg)
{
	struct x86 x = {.bytes = bytes, .n = n};

	return read(&x) && is_move(&x) && move_to(&x) == RSP && dwarf_numbers[move_from(&x)] == reg;
}

/* Vector instructions that write a general register: the moves of masks and of elements, the
 * conversions, and BMI's arithmetic, of which some name the register elsewhere than in ModRM. */
static bool vector_writes(const struct x86 *x, uint8_t reg)
{
	const uint8_t op = x->opcode;

	if (x->map == MAP_0F &&
	    (op == 0x50 || op == 0xd7 || op == 0xc5 || op == 0x2c || op == 0x2d))
		return dwarf_numbers[x->reg & 15] == reg;
	if ((x->map == MAP_0F && op == 0x7e) || (x->map == MAP_0F3A && op >= 0x14 && op <= 0x17))
		return x->mod == 3 && dwarf_numbers[x->rm & 15] == reg;
	if (x->map == MAP_0F3A && op == 0xf0)
		return dwarf_numbers[x->reg & 15] == reg;
	return x->map == MAP_0F38 && op >= 0xf0;
}

/* Instructions that write the accumulator, rax, without naming it. */
static bool writes_accumulator(const struct x86 *x)
{
	const uint8_t op = x->opcode;

	if (x->vector)
		return false;
	if (x->map == MAP_0F)
		return op == 0xb0 || op == 0xb1; /* cmpxchg */
	return x->map == MAP_ONE &&
	       ((op < 0x38 && (op & 6) == 4) || op == 0x98 || op == 0x9f || op == 0xa0 ||
		op == 0xa1 || op == 0xd7 || op == 0xe4 || op == 0xe5 || op == 0xec || op == 0xed);
}

/* Instructions that write other registers, too, without naming these: multiplication, division,
 * widening, string instructions, loop, and those of the system. */
static bool writes_unnamed(const struct x86 *x)
{
	const uint8_t op = x->opcode;

	if (x->vector)
		return false;
	if (x->map == MAP_0F)
		return op == 0x01 || op == 0x05 || op == 0x31 || op == 0x34 || op == 0xa2 ||
		       op == 0xc7;
	if (x->map != MAP_ONE)
		return false;
	return ((op == 0xf6 || op == 0xf7) && (x->reg & 7) >= 4) || op == 0x99 ||
	       (op >= 0xa4 && op <= 0xaf && (op & 0xfe) != 0xa8) || (op >= 0xe0 && op <= 0xe2);
}

/* Whether an instruction on bytes may write one of @reg. Without a REX prefix, the numbers 4 to 7
 * are the second bytes of rax to rbx. */
static bool writes_byte(const struct x86 *x, uint8_t reg)
{
	const uint8_t op = x->opcode, lows = x->rex ? 15 : 3;
	bool to_reg, to_rm;

	if (x->vector || x->map > MAP_0F)
		return false;
	if (x->map == MAP_ONE && op >= 0xb0 && op <= 0xb7) /* mov */
		return dwarf_numbers[opcode_reg(x) & lows] == reg;
	if (x->map == MAP_ONE) {
		to_reg = (op < 0x38 && (op & 7) == 2) || op == 0x86 || op == 0x8a;
		to_rm = (op < 0x38 && (op & 7) == 0) || op == 0x80 || op == 0x86 || op == 0x88 ||
			op == 0xc0 || op == 0xc6 || op == 0xd0 || op == 0xd2 || op == 0xf6 ||
			op == 0xfe;
	} else {
		to_reg = op == 0xc0;
		to_rm = (op >= 0x90 && op <= 0x9f) || op == 0xb0 || op == 0xc0;
	}
	return (to_reg && dwarf_numbers[x->reg & lows] == reg) ||
	       (to_rm && x->mod == 3 && dwarf_numbers[x->rm & lows] == reg);
}

bool insn_x86_writes(const uint8_t *bytes, size_t n, uint8_t reg)
{
	struct x86 x = {.bytes = bytes, .n = n};
	uint8_t low;

	if (!read(&x))
		return true;
	if (writes_unnamed(&x)) /* of rbx, 3, only cpuid and others of the second map */
		return reg == 3 ? x.map == MAP_0F : reg <= 5 || reg == 11; /* rax to rdi, r11 */
	if (!reg && writes_accumulator(&x))
		return true;
	low = dwarf_numbers[opcode_reg(&x)];
	if (vector_writes(&x, reg) || writes_byte(&x, reg))
		return true;
	if (x.vector || x.map > MAP_0F)
		return false;
	if (x.map == MAP_0F)
		return (x.opcode >= 0xc8 && x.opcode <= 0xcf && low == reg) || /* bswap */
		       (writes_reg(&x) && dwarf_numbers[x.reg] == reg) ||
		       (writes_rm(&x) && dwarf_numbers[x.rm] == reg);
	if ((x.opcode >= 0x58 && x.opcode <= 0x5f) || (x.opcode >= 0x91 && x.opcode <= 0x97) ||
	    (x.opcode >= 0xb8 && x.opcode <= 0xbf)) /* pop, xchg with rax, mov */
		return low == reg;
	return (writes_reg(&x) && x.has_modrm && dwarf_numbers[x.reg] == reg) ||
	       (writes_rm(&x) && dwarf_numbers[x.rm] == reg);
}

bool insn_decode_x86(const uint8_t *bytes, size_t n, uint64_t vaddr, struct insn *ret)
{
	struct x86 x = {.bytes = bytes, .n = n < 15 ? n : 15};
	struct insn insn = {0};

	if (!read(&x))
		return false;
	insn.length = (uint8_t)x.at;
	set_flow(&x, vaddr, &insn);
	if (is_zero_fp(&x)) {
		insn.fp = INSN_FP_ZERO;
	} else if (!insn.flow && !stack_insn(&x, &insn) && !frame_insn(&x, &insn)) {
		if (writes(&x, RSP))
			insn.sp = INSN_SP_LOST;
		if (writes(&x, RBP) || (x.map == MAP_ONE && x.opcode == 0xbd && !(x.rex & REX_B)))
			insn.fp = INSN_FP_OTHER;
	}
	set_addresses(&x, vaddr, &insn);
	*ret = insn;
	return true;
}
