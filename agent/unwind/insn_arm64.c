// SPDX-License-Identifier: Apache-2.0
/* Nothing is known of AArch64 instructions yet: its undescribed code has no rows. */
#include "unwind/insn.h"

bool insn_decode_arm64(const uint8_t *bytes, size_t n, uint64_t vaddr, struct insn *ret)
{
	(void)bytes;
	(void)n;
	(void)vaddr;
	(void)ret;
	return false;
}
