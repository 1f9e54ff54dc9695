/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_UNWIND_H
#define PODPROF_BPF_SHARED_UNWIND_H

/*
 * The rule of a row: how to find a frame's caller at one place of the code. The agent compiles rows
 * (agent/unwind), the walker follows them (lib/walk.bpf.h). Registers have the architecture's DWARF
 * numbers.
 *
 * CFA, the canonical frame address, is the stack pointer before the call (x86-64: behind the return
 * address). Caller's sp = CFA, except in a signal frame.
 */

#include "lib/types.h"

/* How to find the CFA, or the reason why no rule finds the CFA. */
enum unwind_cfa {
	/* Nothing describes this code. */
	UNWIND_CFA_GAP = 0,
	/* reg + cfa_off. Registers other than sp and fp are known in the innermost frame only, and
	 * right outside a signal frame. */
	UNWIND_CFA_REG,
	/* sp + 8, and 8 more if (pc & 15) >= cfa_off (x86-64; 9 to 11). */
	UNWIND_CFA_PLT,
	/* *(reg + cfa_off) + cfa_add. */
	UNWIND_CFA_DEREF,
	/* No table, but code known to keep frame pointers: the record at fp. */
	UNWIND_CFA_FP,
	/* The kernel's signal frame, with all registers. */
	UNWIND_CFA_SIGNAL,
	/* Outermost function: there is no caller. */
	UNWIND_CFA_STOP,
	/* Described in a way beyond the walker; cfa_off is the reason
	 * (enum rows_unsupported of agent/unwind/rows.h). */
	UNWIND_CFA_UNSUPPORTED,
	/* As REG, after a change of stacks: the caller's sp may be anywhere, also below. Used for
	 * Go's calls of the vDSO. */
	UNWIND_CFA_SWITCH,
	/* Go's asmcgocall at its call of C. The goroutine g is at sp + cfa_reg. At sp + cfa_off is
	 * the old sp's distance below the end of the goroutine's stack, because the stack may have
	 * moved since. CFA = *(g + 8) - *(sp + cfa_off) + cfa_add; if g is 0 the stack is the same
	 * and CFA = *(sp + cfa_off) + cfa_add. The caller's sp may be anywhere. */
	UNWIND_CFA_GO_CGO,
	/* Go's systemstack, after the switch from a goroutine's stack to the thread's own. The
	 * goroutine's sched.sp gives the place to continue, since its stack may move meanwhile.
	 * cfa_reg selects how to find the running g; m = *(g + UNWIND_GO_M); curg = *(m + 8 *
	 * (cfa_add >> UNWIND_GO_CURG)); CFA = *(curg + UNWIND_GO_SP) + 8 * (the other bits of
	 * cfa_add). */
	UNWIND_CFA_GO_CURG,
	UNWIND_CFA_MAX,
};

/* Values of cfa_reg for GO_CURG. Any other value is the register that has g in all Go code, with
 * its value in the innermost frame or at the last signal. */
#define UNWIND_GO_TLS	 0x80 /* g = *(thread pointer + cfa_off) */
#define UNWIND_GO_TLS_AT 0x81 /* the offset is in memory, at the vaddr cfa_off */
/* Offsets in Go's runtime.g, the same in 1.16 to 1.27: stack.lo and stack.hi, m, sched.sp. */
#define UNWIND_GO_LO	 0
#define UNWIND_GO_HI	 8
#define UNWIND_GO_M	 48
#define UNWIND_GO_SP	 56
#define UNWIND_GO_CURG	 5

/* The place of the caller's frame pointer. */
enum unwind_fp {
	UNWIND_FP_SAME = 0, /* still in the register; also the meaning of no rule */
	UNWIND_FP_AT_CFA,   /* *(cfa + fp_off) */
	UNWIND_FP_DEREF,    /* *(fp + fp_off), with this frame's fp */
	UNWIND_FP_GO_CURG,  /* *(curg + fp_off); only with UNWIND_CFA_GO_CURG */
	UNWIND_FP_MAX,
};

/* The place of the return address. */
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

/* DWARF numbers of fp and sp, and of arm64's lr. */
#define UNWIND_X86_FP	6
#define UNWIND_X86_SP	7
#define UNWIND_ARM64_FP 29
#define UNWIND_ARM64_LR 30
#define UNWIND_ARM64_SP 31

#endif
