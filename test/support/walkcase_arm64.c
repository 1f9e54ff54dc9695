// SPDX-License-Identifier: Apache-2.0
#undef __TARGET_ARCH_x86
#define __TARGET_ARCH_arm64
#include "support/walkcase_walk.h"

void walkcase_walk_arm64(struct walkcase *c, struct walkcase_stack *ret)
{
	struct regs regs = {.pc = c->pc, .sp = c->regs[31]};

	memcpy(regs.x, c->regs, sizeof(regs.x));
	walk_recorded(c, &regs, ret);
}
