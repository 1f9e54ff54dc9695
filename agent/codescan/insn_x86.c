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

/* How an opcode goes on, and what its instruction may do. */
enum {
	M = 1,	     /* ModRM */
	I8 = 2,	     /* 8 bits immediate */
	I32 = 4,     /* 32 bits, 16 with the operand size prefix */
	BAD = 8,     /* invalid */
	PREFIX = 16, /* a legacy prefix */
	FLOW = 32,   /* changes the flow of control, or is padding */
	STACK = 64,  /* push, pop, leave */
	NEAR = 128,  /* lea, mov of a constant: perhaps an address */
	REG = 256,   /* writes ModRM's reg, a general register */
	RM = 512,    /* writes ModRM's rm, in some groups not with each operation */
	ODD = 1024,  /* the immediate's size depends on more than the opcode */
};

struct x86 {
	const uint8_t *bytes; /* READ_BYTES of them, whatever the instruction is */
	size_t at;	      /* read so far */
	bool short_operand;   /* prefix 66 */
	bool repeated;	      /* prefix f2 or f3 */
	uint8_t rex;
	uint8_t map;
	bool vector; /* VEX or EVEX */
	uint8_t opcode;
	uint16_t what; /* of the opcode: the flags above */
	/* with ModRM */
	bool has_modrm;
	uint8_t mod, reg, rm; /* registers with the bits of REX */
	bool has_base;	      /* the address has a base register, and no index */
	uint8_t base;
	bool relative; /* to the next instruction */
	int32_t disp;
	int64_t imm;
};

/* Bytes that read() may look at: 14 prefixes, REX, an opcode of three bytes, ModRM, SIB, and 8
 * bytes each of displacement and immediate. */
#define READ_BYTES 36

static uint8_t take(struct x86 *x)
{
	return x->bytes[x->at++];
}

static int64_t take_signed(struct x86 *x, size_t n)
{
	const uint8_t *at = x->bytes + x->at;
	int64_t value;
	int32_t d;
	int16_t w;

	x->at += n;
	switch (n) {
	case 1:
		return (int8_t)*at;
	case 2:
		memcpy(&w, at, sizeof(w));
		return w;
	case 4:
		memcpy(&d, at, sizeof(d));
		return d;
	default:
		memcpy(&value, at, sizeof(value));
		return value;
	}
}

/* ---------------------------------------------------------------- the opcode maps */

/* clang-format off */
/* The six forms of arithmetic, then a prefix or an invalid byte, and an invalid one. */
#define ARITHMETIC(at, to_reg, to_rm, prefix)                              \
	[(at) ... (at) + 1] = M | (to_rm), [(at) + 2 ... (at) + 3] = M | (to_reg), \
	[(at) + 4] = I8, [(at) + 5] = I32, [(at) + 6] = BAD | (prefix), [(at) + 7] = BAD

static const uint16_t map_one[256] = {
	ARITHMETIC(0x00, REG, RM, 0),
	ARITHMETIC(0x08, REG, RM, 0),
	ARITHMETIC(0x10, REG, RM, 0),
	ARITHMETIC(0x18, REG, RM, 0),
	ARITHMETIC(0x20, REG, RM, PREFIX),
	ARITHMETIC(0x28, REG, RM, PREFIX),
	ARITHMETIC(0x30, REG, RM, PREFIX),
	ARITHMETIC(0x38, 0, 0, PREFIX), /* cmp */
	[0x40 ... 0x4f] = BAD, /* REX, already consumed */
	[0x50 ... 0x5f] = STACK,
	[0x60 ... 0x62] = BAD, [0x63] = M | REG, [0x64 ... 0x67] = BAD | PREFIX,
	[0x68] = I32 | STACK, [0x69] = M | I32 | REG, [0x6a] = I8 | STACK, [0x6b] = M | I8 | REG,
	[0x70 ... 0x7f] = I8 | FLOW,
	[0x80] = M | I8 | RM, [0x81] = M | I32 | RM, [0x82] = BAD, [0x83] = M | I8 | RM,
	[0x84 ... 0x85] = M, [0x86] = M | RM, [0x87] = M | REG | RM,
	[0x88 ... 0x89] = M | RM, [0x8a] = M, [0x8b] = M | REG, [0x8c] = M,
	[0x8d] = M | REG | NEAR, [0x8e] = M, [0x8f] = M | RM | STACK,
	[0x90] = FLOW, [0x9a] = BAD, [0x9c ... 0x9d] = STACK, [0xa0 ... 0xa3] = ODD,
	[0xa8] = I8, [0xa9] = I32,
	[0xb0 ... 0xb7] = I8, [0xb8 ... 0xbf] = I32 | NEAR | ODD,
	[0xc0 ... 0xc1] = M | I8 | RM, [0xc2] = FLOW | ODD, [0xc3] = FLOW, [0xc4 ... 0xc5] = BAD,
	[0xc6] = M | I8 | RM, [0xc7] = M | I32 | RM | NEAR, [0xc8] = BAD, [0xc9] = STACK,
	[0xca ... 0xcb] = BAD, [0xcc] = FLOW, [0xcd] = I8, [0xce ... 0xcf] = BAD,
	[0xd0 ... 0xd3] = M | RM, [0xd4 ... 0xd6] = BAD, [0xd8 ... 0xdf] = M,
	[0xe0 ... 0xe3] = I8 | FLOW, [0xe4 ... 0xe7] = I8, [0xe8 ... 0xe9] = FLOW | ODD,
	[0xea] = BAD, [0xeb] = I8 | FLOW,
	[0xf0] = BAD | PREFIX, [0xf2 ... 0xf3] = BAD | PREFIX, [0xf4] = FLOW,
	[0xf6 ... 0xf7] = M | RM | ODD, [0xfe] = M | RM, [0xff] = M | RM | FLOW | STACK,
};

static const uint16_t map_0f[256] = {
	[0x00 ... 0x03] = M, [0x04] = BAD, [0x0a] = BAD, [0x0b] = FLOW, [0x0c] = BAD, [0x0d] = M,
	[0x0e ... 0x0f] = BAD,
	[0x10 ... 0x1e] = M, [0x1f] = M | FLOW,
	[0x20 ... 0x23] = M, [0x24 ... 0x27] = BAD, [0x28 ... 0x2b] = M, [0x2c ... 0x2d] = M | REG,
	[0x2e ... 0x2f] = M,
	[0x38 ... 0x3f] = BAD,
	[0x40 ... 0x4f] = M | REG,
	[0x50 ... 0x6f] = M,
	[0x70 ... 0x73] = M | I8, [0x74 ... 0x76] = M, [0x78 ... 0x7d] = M, [0x7e] = M | RM,
	[0x7f] = M,
	[0x80 ... 0x8f] = I32 | FLOW,
	[0x90 ... 0x9f] = M | RM,
	[0xa0 ... 0xa1] = STACK, [0xa3] = M, [0xa4] = M | I8 | RM, [0xa5] = M | RM,
	[0xa6 ... 0xa7] = BAD, [0xa8 ... 0xa9] = STACK, [0xab] = M | RM, [0xac] = M | I8 | RM,
	[0xad] = M | RM, [0xae] = M, [0xaf] = M | REG,
	[0xb0 ... 0xb1] = M | RM, [0xb2] = M, [0xb3] = M | RM, [0xb4 ... 0xb5] = M,
	[0xb6 ... 0xb8] = M | REG, [0xb9] = M, [0xba] = M | I8, [0xbb] = M | RM,
	[0xbc ... 0xbf] = M | REG,
	[0xc0] = M | RM, [0xc1] = M | REG | RM, [0xc2] = M | I8, [0xc3] = M,
	[0xc4 ... 0xc6] = M | I8, [0xc7] = M,
	[0xd0 ... 0xff] = M,
};
/* clang-format on */

static unsigned int what_of(const struct x86 *x)
{
	switch (x->map) {
	case MAP_ONE:
		return map_one[x->opcode];
	case MAP_0F:
		return map_0f[x->opcode];
	case MAP_0F38:
		return M;
	default:
		return M | I8;
	}
}

/* ---------------------------------------------------------------- decoding */

/* Those that change nothing here: lock, segments, and addresses of 32 bits (not longer, not
 * shorter).
 */
static bool read_legacy_prefixes(struct x86 *x)
{
	for (; x->at < 14; x->at++) {
		uint8_t b = x->bytes[x->at];

		if (!(map_one[b] & PREFIX))
			return true;
		x->short_operand |= b == 0x66;
		x->repeated |= b == 0xf2 || b == 0xf3;
	}
	return false;
}

/* Behind c4, c5 or 62: the inverted bits of REX, and the map. */
static bool read_vector_prefix(struct x86 *x, uint8_t first)
{
	const uint8_t *p = x->bytes + x->at;

	x->at += first == 0xc5 ? 1 : first == 0xc4 ? 2 : 3;
	x->vector = true;
	x->rex = (uint8_t)((~p[0] >> 5) & 7); /* R, X, B */
	x->map = first == 0xc5 ? MAP_0F : (p[0] & (first == 0x62 ? 7 : 31));
	if (first == 0xc5)
		x->rex &= REX_R;
	x->opcode = take(x);
	return x->map >= MAP_0F && x->map <= MAP_0F3A;
}

static bool read_opcode(struct x86 *x)
{
	uint8_t b;

	if (!read_legacy_prefixes(x))
		return false;
	b = take(x);
	if ((b & 0xf0) == 0x40) {
		x->rex = b; /* 0x40 stays in it: a REX prefix is present */
		b = take(x);
	}
	if (b == 0xc4 || b == 0xc5 || b == 0x62)
		return !x->rex && read_vector_prefix(x, b);
	if (b == 0x0f) {
		x->map = MAP_0F;
		b = take(x);
		if (b == 0x38 || b == 0x3a) {
			x->map = b == 0x38 ? MAP_0F38 : MAP_0F3A;
			b = take(x);
		}
	}
	x->opcode = b;
	return true;
}

/* Whether the address has a displacement of 32 bits. */
static bool read_sib(struct x86 *x)
{
	const uint8_t sib = take(x);
	const bool disp32 = x->mod == 0 && (sib & 7) == 5;

	x->has_base = !disp32 && ((sib >> 3) & 7) == 4 && !(x->rex & 2);
	x->base = (uint8_t)((sib & 7) | (x->rex & REX_B) << 3);
	return disp32;
}

static void read_modrm(struct x86 *x)
{
	const uint8_t b = take(x);
	bool disp32 = false;

	x->has_modrm = true;
	x->mod = b >> 6;
	x->reg = (uint8_t)(((b >> 3) & 7) | (x->rex & REX_R) << 1);
	x->rm = (uint8_t)((b & 7) | (x->rex & REX_B) << 3);
	if (x->mod == 3)
		return;
	x->has_base = true;
	x->base = x->rm;
	if ((b & 7) == 4)
		disp32 = read_sib(x);
	if (x->mod == 0 && (b & 7) == 5) {
		x->relative = disp32 = true;
		x->has_base = false;
	}
	if (x->mod == 2 || disp32)
		x->disp = (int32_t)take_signed(x, 4);
	else if (x->mod == 1)
		x->disp = (int32_t)take_signed(x, 1);
}

/* Of ODD opcodes. */
static size_t odd_immediate_size(const struct x86 *x)
{
	const size_t usual = x->short_operand ? 2 : 4;

	switch (x->opcode) {
	case 0xa0 ... 0xa3:
		return 8;
	case 0xc2:
		return 2;
	case 0xe8:
	case 0xe9:
		return 4;
	case 0xf6:
		return (x->reg & 7) > 1 ? 0 : 1;
	case 0xf7:
		return (x->reg & 7) > 1 ? 0 : usual;
	default: /* mov of a constant */
		return x->rex & REX_W ? 8 : usual;
	}
}

static size_t immediate_size(const struct x86 *x)
{
	if (x->what & ODD)
		return odd_immediate_size(x);
	if (x->what & I8)
		return 1;
	if (!(x->what & I32))
		return 0;
	return x->short_operand && x->map == MAP_ONE ? 2 : 4;
}

/* The instruction at @bytes, of which READ_BYTES can be read and @n belong to the code. False if
 * invalid. */
static inline bool read_whole(struct x86 *x, const uint8_t *bytes, size_t n)
{
	size_t size;

	*x = (struct x86){.bytes = bytes};
	if (!read_opcode(x))
		return false;
	x->what = (uint16_t)what_of(x);
	if (x->what & BAD)
		return false;
	if (x->what & M)
		read_modrm(x);
	size = immediate_size(x);
	if (size)
		x->imm = take_signed(x, size);
	return x->at <= n && x->at <= INSN_X86_BYTES;
}

/* At the end of the code. A separate function, so that the usual path needs no copy on its stack.
 */
static __attribute__((noinline)) bool read_last(struct x86 *x, const uint8_t *bytes, size_t n)
{
	uint8_t copy[READ_BYTES] = {0};
	bool valid;

	memcpy(copy, bytes, n);
	valid = read_whole(x, copy, n);
	x->bytes = bytes;
	return valid;
}

/* The instruction at @bytes, with @n bytes available. False if invalid. */
static bool read(struct x86 *x, const uint8_t *bytes, size_t n)
{
	return n < READ_BYTES ? read_last(x, bytes, n) : read_whole(x, bytes, n);
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

/* Whether the instruction writes ModRM's reg: only the general registers. Of vectors' only BMI,
 * unused by assembly on the stack pointer and the frame pointer. */
static bool writes_reg(const struct x86 *x)
{
	return !x->vector && (x->what & REG);
}

/* The same of a register in ModRM's rm. */
static bool writes_rm(const struct x86 *x)
{
	const uint8_t operation = x->reg & 7;

	if (x->mod != 3 || x->vector || !(x->what & RM))
		return false;
	if (x->map != MAP_ONE)
		return true;
	switch (x->opcode) {
	case 0x80:
	case 0x81:
	case 0x83:
		return operation != 7;
	case 0xf6:
	case 0xf7:
		return operation == 2 || operation == 3;
	case 0xfe:
	case 0xff:
		return operation < 2;
	default:
		return true;
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
	struct x86 copy, next;
	size_t at;

	/* nearly all code ends here: a move whose source is not the stack pointer */
	if (n < 3 || (bytes[0] & 0xf8) != 0x48 ||
	    !((bytes[1] == 0x89 && (bytes[2] & 0xf8) == 0xe0) ||
	      (bytes[1] == 0x8b && (bytes[2] & 0xc7) == 0xc4)))
		return false;
	if (!read(&copy, bytes, n) || !is_move(&copy) || move_from(&copy) != RSP ||
	    move_to(&copy) == RBP)
		return false;
	at = copy.at;
	if (!read(&next, bytes + at, n - at))
		return false;
	if (is_room(&next)) {
		at += next.at;
		if (!read(&next, bytes + at, n - at))
			return false;
	}
	if (!is_alignment(&next))
		return false;
	*ret_reg = dwarf_numbers[move_to(&copy)];
	return true;
}

bool insn_x86_gives_back(const uint8_t *bytes, size_t n, uint8_t reg)
{
	struct x86 x;

	return read(&x, bytes, n) && is_move(&x) && move_to(&x) == RSP &&
	       dwarf_numbers[move_from(&x)] == reg;
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
	struct x86 x;
	uint8_t low;

	if (!read(&x, bytes, n))
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

/* Whether ModRM names the register, not as a part of an address. */
static bool names(const struct x86 *x, uint8_t reg)
{
	return x->has_modrm && (x->reg == reg || (x->mod == 3 && x->rm == reg));
}

/* The effect on the two registers. Most instructions name neither. */
static void set_registers(const struct x86 *x, struct insn *ret)
{
	if ((x->what & STACK) && stack_insn(x, ret))
		return;
	if (x->map == MAP_ONE && x->opcode == 0xbd && !(x->rex & REX_B))
		ret->fp = INSN_FP_OTHER;
	if (!ret->names_sp && !names(x, RBP))
		return;
	if (is_zero_fp(x)) {
		ret->fp = INSN_FP_ZERO;
	} else if (!frame_insn(x, ret)) {
		if (writes(x, RSP))
			ret->sp = INSN_SP_LOST;
		if (writes(x, RBP))
			ret->fp = INSN_FP_OTHER;
	}
}

/* ---------------------------------------------------------------- plain instructions */

/* Bytes of ModRM, SIB and displacement. */
static inline size_t modrm_size(const uint8_t *at)
{
	const uint8_t mod = *at >> 6, rm = *at & 7;
	size_t size = 1;

	if (mod == 3)
		return 1;
	if (rm == 4) {
		size = 2;
		if (mod == 0 && (at[1] & 7) == 5)
			return 6;
	}
	if (mod == 0)
		return rm == 5 ? 5 : size;
	return size + (mod == 1 ? 1 : 4);
}

/* Whether ModRM has a number of the two registers, not as a part of an address. */
static inline bool may_name(uint8_t modrm, uint8_t rex)
{
	return ((modrm & 0x30) == 0x20 && !(rex & REX_R)) ||
	       ((modrm & 0xc6) == 0xc4 && !(rex & REX_B));
}

/* With VEX of two bytes, VEX of three, or EVEX. */
static size_t plain_vector(const uint8_t *bytes)
{
	const uint8_t first = bytes[0];
	const uint8_t map = first == 0xc5 ? MAP_0F : bytes[1] & (first == 0x62 ? 7 : 31);
	const uint8_t *at = bytes + (first == 0xc5 ? 2 : first == 0xc4 ? 3 : 4);
	const unsigned int what = map == MAP_0F ? map_0f[*at] : map == MAP_0F38 ? M : M | I8;

	if (map < MAP_0F || map > MAP_0F3A || (what & (BAD | FLOW | STACK | I32)))
		return 0;
	at++;
	if (what & M)
		at += modrm_size(at);
	return (size_t)(at - bytes) + (what & I8 ? 1 : 0);
}

uint8_t insn_x86_plain(const uint8_t *bytes, size_t n)
{
	const uint8_t *at = bytes;
	bool short_operand = false;
	unsigned int what;
	uint8_t rex = 0;

	if (n < READ_BYTES)
		return 0;
	if (*at == 0xc5 || *at == 0xc4 || *at == 0x62)
		return (uint8_t)plain_vector(bytes);
	if (*at == 0x66 || *at == 0xf2 || *at == 0xf3)
		short_operand = *at++ == 0x66;
	if ((*at & 0xf0) == 0x40)
		rex = *at++;
	if (*at == 0x0f) {
		at++;
		what = (*at & 0xfd) == 0x38 ? BAD : map_0f[*at];
		short_operand = false; /* for immediates */
	} else {
		what = map_one[*at];
	}
	at++;
	if (what & (BAD | FLOW | STACK | NEAR | ODD))
		return 0;
	if (what & M) {
		if (may_name(*at, rex))
			return 0;
		at += modrm_size(at);
	}
	if (what & (I8 | I32))
		at += what & I8 ? 1 : short_operand ? 2 : 4;
	return (uint8_t)(at - bytes);
}

bool insn_decode_x86(const uint8_t *bytes, size_t n, uint64_t vaddr, struct insn *ret)
{
	struct x86 x;

	if (!read(&x, bytes, n))
		return false;
	*ret = (struct insn){.length = (uint8_t)x.at, .names_sp = names(&x, RSP)};
	if (x.what & FLOW)
		set_flow(&x, vaddr, ret);
	if (!ret->flow)
		set_registers(&x, ret);
	if (x.what & NEAR)
		set_addresses(&x, vaddr, ret);
	return true;
}
