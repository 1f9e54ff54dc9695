/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_UNWIND_H
#define PODPROF_BPF_SHARED_UNWIND_H

/*
 * How a frame's caller is found at one place of the code: what a row of an image's unwind table
 * says. The agent compiles rows (agent/unwind), the walker follows them (lib/walk.bpf.h). Registers
 * have their DWARF numbers for the architecture.
 *
 * CFA, the canonical frame address, is what the stack pointer was before the call (x86-64: behind
 * the return address). Caller's sp = CFA, except in a signal frame.
 */

#include "lib/types.h"

/* How the CFA is found, or why it is not. */
enum unwind_cfa {
	/* Nothing describes this code. */
	UNWIND_CFA_GAP = 0,
	/* reg + cfa_off. Registers other than sp and fp are known in the innermost frame only, and
	 * right outside a signal frame. */
	UNWIND_CFA_REG,
	/* sp + 8, and 8 more if (pc & 15) >= cfa_off (x86-64; 10 or 11). */
	UNWIND_CFA_PLT,
	/* *(reg + cfa_off) + cfa_add. */
	UNWIND_CFA_DEREF,
	/* No table, but known to keep frame pointers: the record at fp. */
	UNWIND_CFA_FP,
	/* The kernel's signal frame: it holds all registers. */
	UNWIND_CFA_SIGNAL,
	/* Outermost function: there is no caller. */
	UNWIND_CFA_STOP,
	/* Described, but not in a way that we can follow; cfa_off is the reason
	 * (enum rows_unsupported of agent/unwind/rows.h). */
	UNWIND_CFA_UNSUPPORTED,
	/* As REG, in code that has changed stacks: the caller's sp may be anywhere, also below.
	 * Go's calls of the vDSO. */
	UNWIND_CFA_SWITCH,
	/* Go's asmcgocall where it calls C. It keeps the goroutine at sp + cfa_reg, and at
	 * sp + cfa_off how far below the end of the goroutine's stack it was: that stack may have
	 * moved since. CFA = *(g + 8) - *(sp + cfa_off) + cfa_add; if g is 0 the stack is the same
	 * and CFA = *(sp + cfa_off) + cfa_add. The caller's sp may be anywhere. */
	UNWIND_CFA_GO_CGO,
	/* Go's systemstack, where it has left a goroutine's stack for the thread's own: the
	 * goroutine says where it goes on, since its stack may move meanwhile. cfa_reg says how the
	 * g that runs is found; m = *(g + UNWIND_GO_M); curg = *(m + 8 * (cfa_add >>
	 * UNWIND_GO_CURG)); CFA = *(curg + UNWIND_GO_SP) + 8 * (the other bits of cfa_add). */
	UNWIND_CFA_GO_CURG,
	UNWIND_CFA_MAX,
};

/* In cfa_reg, for GO_CURG. Else it is the register that has g in all Go code: what that was in the
 * innermost frame, or where the last signal came. */
#define UNWIND_GO_TLS	 0x80 /* g = *(thread pointer + cfa_off) */
#define UNWIND_GO_TLS_AT 0x81 /* the offset is in memory, at the vaddr cfa_off */
/* Offsets in Go's runtime.g, the same in 1.16 to 1.27: stack.lo and stack.hi, m, sched.sp. */
#define UNWIND_GO_LO	 0
#define UNWIND_GO_HI	 8
#define UNWIND_GO_M	 48
#define UNWIND_GO_SP	 56
#define UNWIND_GO_CURG	 5

/* Where the caller's frame pointer is. */
enum unwind_fp {
	UNWIND_FP_SAME = 0, /* the register still has it; also what no rule at all means */
	UNWIND_FP_AT_CFA,   /* *(cfa + fp_off) */
	UNWIND_FP_DEREF,    /* *(fp + fp_off), fp as it is in this frame */
	UNWIND_FP_GO_CURG,  /* *(curg + fp_off); with the CFA of that name only */
	UNWIND_FP_MAX,
};

/* Where the return address is. */
enum unwind_ra {
	UNWIND_RA_AT_CFA = 0, /* *(cfa + ra_off); x86-64: -8 nearly everywhere */
	UNWIND_RA_REG,	      /* in register ra_off; arm64: 30 (lr) in the innermost frame */
	UNWIND_RA_MAX,
};

/* All zeros is a gap. Unused members are 0, so that equal rules are equal bytes. */
struct unwind_rule {
	__u8 cfa;     /* enum unwind_cfa */
	__u8 cfa_reg; /* for REG, SWITCH, DEREF, GO_CGO, GO_CURG */
	__u8 fp;      /* enum unwind_fp */
	__u8 ra;      /* enum unwind_ra */
	__s32 cfa_off;
	__s32 fp_off;
	__s16 ra_off;
	__s16 cfa_add;
};
_Static_assert(sizeof(struct unwind_rule) == 16, "an element of the rule dictionary");

/* DWARF numbers of the two registers that every frame has. */
#define UNWIND_X86_FP	6
#define UNWIND_X86_SP	7
#define UNWIND_ARM64_FP 29
#define UNWIND_ARM64_LR 30
#define UNWIND_ARM64_SP 31

#endif
