/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_REGS_X86_BPF_H
#define PODPROF_BPF_LIB_REGS_X86_BPF_H

/* x86-64's registers as an interrupt or system call saves them. The layout is user API (ptrace),
 * and both the event's context and the top of the kernel stack have it. */

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

static __always_inline __u64 regs_pc(const struct regs *r)
{
	return r->ip;
}

static __always_inline __u64 regs_sp(const struct regs *r)
{
	return r->sp;
}

static __always_inline __u64 regs_fp(const struct regs *r)
{
	return r->bp;
}

/* A return address without what the processor put into its unused bits. */
static __always_inline __u64 regs_code_pointer(__u64 pc)
{
	return pc;
}

static __always_inline int regs_user_mode(const struct regs *r)
{
	return (r->cs & 3) == 3;
}

/* Whether these are a 64-bit program's: __USER_CS, or Xen's FLAT_RING3_CS64. */
static __always_inline int regs_64bit(const struct regs *r)
{
	__u64 cs = r->cs & 0xffff;

	return cs == 0x33 || cs == 0xe033;
}

#endif
