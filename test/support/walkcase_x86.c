// SPDX-License-Identifier: Apache-2.0
#undef __TARGET_ARCH_arm64
#define __TARGET_ARCH_x86
#include "support/walkcase_walk.h"

void walkcase_walk_x86(struct walkcase *c, struct walkcase_stack *ret)
{
	struct regs regs = walk_regs(c->pc, c->regs[7], c->regs[6], c->regs, c->in_syscall);

	walk_recorded(c, &regs, ret);
}
