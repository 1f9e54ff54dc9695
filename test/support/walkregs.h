/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's registers from registers by DWARF number, for the machine of __TARGET_ARCH_. Include
 * after lib/walk.bpf.h. No include guard, like the including text. */

#include <string.h>

#ifdef __TARGET_ARCH_x86
static struct regs walk_regs(uint64_t pc, uint64_t sp, uint64_t fp, const uint64_t *numbered,
			     bool in_syscall)
{
	const uint64_t *n = numbered;

	return (struct regs){
		.ip = pc,
		.sp = sp,
		.bp = fp,
		.orig_ax = in_syscall ? 0 : (uint64_t)-1,
		.ax = n[0],
		.dx = n[1],
		.cx = n[2],
		.bx = n[3],
		.si = n[4],
		.di = n[5],
		.r8 = n[8],
		.r9 = n[9],
		.r10 = n[10],
		.r11 = n[11],
		.r12 = n[12],
		.r13 = n[13],
		.r14 = n[14],
		.r15 = n[15],
	};
}
#else
static struct regs walk_regs(uint64_t pc, uint64_t sp, uint64_t fp, const uint64_t *numbered,
			     bool in_syscall)
{
	struct regs regs = {.pc = pc, .sp = sp};

	(void)in_syscall;
	memcpy(regs.x, numbered, sizeof(regs.x));
	regs.x[29] = fp;
	return regs;
}
#endif
