/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_REGS_X86_BPF_H
#define PODPROF_BPF_LIB_REGS_X86_BPF_H

/* x86-64's registers as saved by an interrupt or system call. The layout is user API (ptrace), in
 * the event's context and at the top of the kernel stack. */

#include "lib/types.h"
#include "shared/unwind.h"

struct regs {
	__u64 r15, r14, r13, r12, bp, bx;
	__u64 r11, r10, r9, r8, ax, cx, dx, si, di;
	__u64 orig_ax;
	__u64 ip;
	__u64 cs; /* the low 16 bits; with FRED (6.9) the rest says how the kernel was entered */
	__u64 flags;
	__u64 sp;
	__u64 ss;
};

/* arch/x86/include/asm/page_64_types.h: four pages, and nothing above the registers. Asked only
 * below 5.15, where bpf_task_pt_regs() does not exist (and FRED's padding did not either). */
#define REGS_KERNEL_STACK_BYTES 16384
#define REGS_ABOVE_BYTES	0

REGS_INLINE __u64 regs_pc(const struct regs *r)
{
	return r->ip;
}

REGS_INLINE __u64 regs_sp(const struct regs *r)
{
	return r->sp;
}

REGS_INLINE __u64 regs_fp(const struct regs *r)
{
	return r->bp;
}

#define REGS_UNWIND_FP	       UNWIND_X86_FP
#define REGS_UNWIND_SP	       UNWIND_X86_SP
/* DWARF numbers of general registers are below. */
#define REGS_NUMBERED	       16
/* A bit for each caller-saved register: rax, rdx, rcx, rsi, rdi, r8 to r11. */
#define REGS_BELIEVED	       0xf37ull
/* Frame record (saved fp, return address) and then the caller's frame: always. */
#define REGS_RECORD_ENDS_FRAME 1

/* The register of a DWARF number, sp excepted; any of them for a number out of range. */
REGS_INLINE __u64 regs_numbered(const struct regs *r, __u64 number)
{
	/* For each number the word of struct regs, four bits each, from the right: rax is word 10,
	 * rdx is word 12. */
	const __u64 words = 0x01236789f4ed5bcaull;

	return ((const __u64 *)r)[(words >> (number * 4 & 63)) & 15];
}

/* In a signal frame, from sp after the handler's return: struct ucontext, containing struct
 * sigcontext (user API), whose first words are these. */
#define REGS_SIGNAL_OFF	  40
#define REGS_SIGNAL_WORDS 17

REGS_INLINE void regs_of_signal(struct regs *ret, const __u64 *w)
{
	ret->r8 = w[0];
	ret->r9 = w[1];
	ret->r10 = w[2];
	ret->r11 = w[3];
	ret->r12 = w[4];
	ret->r13 = w[5];
	ret->r14 = w[6];
	ret->r15 = w[7];
	ret->di = w[8];
	ret->si = w[9];
	ret->bp = w[10];
	ret->bx = w[11];
	ret->dx = w[12];
	ret->ax = w[13];
	ret->cx = w[14];
	ret->sp = w[15];
	ret->ip = w[16];
}

/*
 * Whether the registers are from a system call, without a change since. In this case pc is behind
 * the instruction, and rcx equals pc. Interrupts and faults set orig_ax to -1. If the kernel has
 * set pc to a signal handler or to the start of a new program, orig_ax is still the system call's,
 * but rcx differs. (With FRED, rcx is the program's own. The walk then uses pc unchanged, wrong
 * only after a system call without return.)
 */
REGS_INLINE int regs_in_syscall(const struct regs *r)
{
	return (__s64)r->orig_ax >= 0 && r->cx == r->ip;
}

/* A return address without the processor's marks in unused bits. */
REGS_INLINE __u64 regs_code_pointer(__u64 pc)
{
	return pc;
}

REGS_INLINE int regs_user_mode(const struct regs *r)
{
	return (r->cs & 3) == 3;
}

/* Whether the registers are of a 64-bit program: __USER_CS, or Xen's FLAT_RING3_CS64. */
REGS_INLINE int regs_64bit(const struct regs *r)
{
	__u64 cs = r->cs & 0xffff;

	return cs == 0x33 || cs == 0xe033;
}

#endif
