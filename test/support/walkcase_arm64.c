// SPDX-License-Identifier: Apache-2.0
#undef __TARGET_ARCH_x86
#define __TARGET_ARCH_arm64
#include "support/walkcase_walk.h"

void walkcase_walk_arm64(struct walkcase *c, struct walkcase_stack *ret)
{
	struct regs regs = walk_regs(c->pc, c->regs[31], c->regs[29], c->regs, c->in_syscall);

	walk_recorded(c, &regs, ret);
}
