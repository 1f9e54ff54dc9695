/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_REGS_ARM64_BPF_H
#define PODPROF_BPF_LIB_REGS_ARM64_BPF_H

/* arm64's registers: struct user_pt_regs, user API (ptrace). The event's context contains this
 * struct, and the kernel's struct pt_regs at the top of the kernel stack begins with it. */

#include "lib/types.h"
#include "shared/unwind.h"

struct regs {
	__u64 x[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};

/* arch/arm64/include/asm/memory.h: 16 KiB unless pages are 64 KiB; behind user_pt_regs the kernel's
 * struct has 64 more bytes in 5.10. Asked only below 5.15 (see regs.bpf.h). */
#define REGS_KERNEL_STACK_BYTES 16384
#define REGS_ABOVE_BYTES	64

/* PSTATE.M: 0 is EL0 (user) in 64-bit state, bit 4 says 32-bit state. */
#define REGS_MODE_MASK	0x0full
#define REGS_MODE_32BIT 0x10ull

REGS_INLINE __u64 regs_pc(const struct regs *r)
{
	return r->pc;
}

REGS_INLINE __u64 regs_sp(const struct regs *r)
{
	return r->sp;
}

REGS_INLINE __u64 regs_fp(const struct regs *r)
{
	return r->x[29];
}

#define REGS_UNWIND_FP	       UNWIND_ARM64_FP
#define REGS_UNWIND_SP	       UNWIND_ARM64_SP
#define REGS_NUMBERED	       31
/* A bit for each caller-saved register: x0 to x17. */
#define REGS_BELIEVED	       0x3ffffull
/* The frame record may be anywhere in its frame (gcc: at the lower end), so its address does not
 * give the caller's sp. */
#define REGS_RECORD_ENDS_FRAME 0

/* The register of a DWARF number; any of them for a number out of range. */
REGS_INLINE __u64 regs_numbered(const struct regs *r, __u64 number)
{
	return ((const __u64 *)r)[number & 31]; /* number 31 is sp, stored after x30 */
}

/* In a signal frame, from sp: siginfo, then struct ucontext, in it struct sigcontext (user API):
 * x0 to x30, sp, pc, pstate, as in struct regs. */
#define REGS_SIGNAL_OFF	  312
#define REGS_SIGNAL_WORDS 33

REGS_INLINE void regs_of_signal(struct regs *ret, const __u64 *w)
{
	for (int i = 0; i < 31; i++)
		ret->x[i] = w[i];
	ret->sp = w[31];
	ret->pc = w[32];
}

/* Whether pc is behind its instruction. After svc, pc is behind svc. But svc is never the last
 * instruction of a function (unlike a call of a function without return), so the pc needs no
 * correction. */
REGS_INLINE int regs_in_syscall(const struct regs *r)
{
	(void)r;
	return 0;
}

/* Pointer authentication signs return addresses in the bits above the address space (48 bits unless
 * a program asks for more). */
REGS_INLINE __u64 regs_code_pointer(__u64 pc)
{
	return pc & 0xffffffffffffull;
}

REGS_INLINE int regs_user_mode(const struct regs *r)
{
	return (r->pstate & REGS_MODE_MASK) == 0;
}

REGS_INLINE int regs_64bit(const struct regs *r)
{
	return (r->pstate & REGS_MODE_32BIT) == 0;
}

#endif
