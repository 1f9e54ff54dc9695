/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CODESCAN_INSN_H
#define PODPROF_CODESCAN_INSN_H

/*
 * The effect of one machine instruction on the stack pointer, the frame pointer, the return address
 * and the flow of control. codescan.h needs nothing else for finding frames in code without tables.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_flow {
	INSN_NEXT = 0,
	INSN_JUMP,   /* to target */
	INSN_BRANCH, /* to target, or on */
	INSN_CALL,   /* of target (0: not known), and on */
	INSN_RETURN,
	INSN_INDIRECT, /* a jump to where a register or memory says */
	INSN_END,      /* control does not continue after it */
	INSN_PADDING,  /* has no effect; compilers also put it between functions */
};

enum insn_sp {
	INSN_SP_SAME = 0,
	INSN_SP_ADD,	 /* sp += sp_add */
	INSN_SP_FROM_FP, /* sp = fp + sp_add */
	INSN_SP_LOST,	 /* set otherwise */
};

/* A place is an offset from the stack pointer: after the instruction for a store, before it for a
 * load. */
enum insn_fp {
	INSN_FP_SAME = 0,
	INSN_FP_SAVED,	 /* stored at fp_at */
	INSN_FP_LOADED,	 /* from fp_at */
	INSN_FP_FROM_SP, /* fp = sp + fp_at, with sp after the instruction */
	INSN_FP_POPPED,	 /* from where fp itself points: x86's leave */
	INSN_FP_ZERO,	 /* the mark of the outermost function */
	INSN_FP_OTHER,	 /* set otherwise */
};

enum insn_ra {
	INSN_RA_SAME = 0,
	INSN_RA_SAVED, /* the link register, at ra_at */
	INSN_RA_LOADED,
};

/* Unused members are 0. */
struct insn {
	uint8_t length;
	uint8_t flow;  /* enum insn_flow */
	uint8_t sp;    /* enum insn_sp */
	uint8_t fp;    /* enum insn_fp */
	uint8_t ra;    /* enum insn_ra */
	bool names_sp; /* x86: the stack pointer is an operand's register */
	bool by_word;  /* an indirect jump to a target from a word relative to its own place */
	int32_t sp_add;
	int32_t fp_at;
	int32_t ra_at;
	uint64_t target;   /* an address */
	uint64_t points;   /* an address computed from its own; or 0 */
	uint64_t constant; /* a loaded constant, perhaps an address; or 0 */
};

/* Decodes the instruction at @bytes, with @n bytes available; its address is @vaddr. False if
 * invalid. */
typedef bool insn_decode_fn(const uint8_t *bytes, size_t n, uint64_t vaddr, struct insn *ret);

/* Bytes of x86-64's longest instruction. */
#define INSN_X86_BYTES 15

/*
 * x86-64's alignment of the stack by code without a frame pointer: a register keeps the stack
 * pointer, and gives it back before the return. Registers have DWARF's numbers.
 */

/* Whether a copy of the stack pointer and then its alignment begin at @bytes, with or without a
 * reservation of stack between them: the register. */
bool insn_x86_aligns(const uint8_t *bytes, size_t n, uint8_t *ret_reg);
/* Whether the instruction at @bytes is the one that gives back the stack pointer kept in @reg. */
bool insn_x86_gives_back(const uint8_t *bytes, size_t n, uint8_t reg);
/* Whether the instruction at @bytes writes @reg, calls excepted. */
bool insn_x86_writes(const uint8_t *bytes, size_t n, uint8_t reg);

/* The length of the instruction at @bytes if nothing else of it matters: insn_decode_x86() would
 * report no effect. 0 for other instructions, and for unusual ones. Takes a quarter of the
 * decoder's time. */
uint8_t insn_x86_plain(const uint8_t *bytes, size_t n);

insn_decode_fn insn_decode_x86;
insn_decode_fn insn_decode_arm64;

#endif
