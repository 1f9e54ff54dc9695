// SPDX-License-Identifier: Apache-2.0
#undef __TARGET_ARCH_arm64
#define __TARGET_ARCH_x86
#include "support/walkcase_walk.h"

void walkcase_walk_x86(struct walkcase *c, struct walkcase_stack *ret)
{
	const uint64_t *n = c->regs;
	struct regs regs = {
		.ip = c->pc,
		.orig_ax = c->in_syscall ? 0 : (uint64_t)-1,
		.ax = n[0],
		.dx = n[1],
		.cx = n[2],
		.bx = n[3],
		.si = n[4],
		.di = n[5],
		.bp = n[6],
		.sp = n[7],
		.r8 = n[8],
		.r9 = n[9],
		.r10 = n[10],
		.r11 = n[11],
		.r12 = n[12],
		.r13 = n[13],
		.r14 = n[14],
		.r15 = n[15],
	};

	walk_recorded(c, &regs, ret);
}
