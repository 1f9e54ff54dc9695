/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_REGS_ARM64_BPF_H
#define PODPROF_BPF_LIB_REGS_ARM64_BPF_H

/* arm64's registers: struct user_pt_regs, user API (ptrace). The event's context has it, and the
 * kernel's struct pt_regs at the top of the kernel stack begins with it. */

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

static __always_inline __u64 regs_pc(const struct regs *r)
{
	return r->pc;
}

static __always_inline __u64 regs_sp(const struct regs *r)
{
	return r->sp;
}

static __always_inline __u64 regs_fp(const struct regs *r)
{
	return r->x[29];
}

/* Pointer authentication signs return addresses in the bits above the address space (48 bits unless
 * a program asks for more). */
static __always_inline __u64 regs_code_pointer(__u64 pc)
{
	return pc & 0xffffffffffffull;
}

static __always_inline int regs_user_mode(const struct regs *r)
{
	return (r->pstate & REGS_MODE_MASK) == 0;
}

static __always_inline int regs_64bit(const struct regs *r)
{
	return (r->pstate & REGS_MODE_32BIT) == 0;
}

#endif
