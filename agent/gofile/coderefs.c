// SPDX-License-Identifier: Apache-2.0
#include "gofile/coderefs.h"

#include <elf.h>

size_t coderefs_find(unsigned int machine, const uint8_t *code, size_t n, uint64_t vaddr,
		     struct coderef *ret, size_t max)
{
	switch (machine) {
	case EM_X86_64:
		return coderefs_find_x86(code, n, vaddr, ret, max);
	case EM_AARCH64:
		return coderefs_find_arm64(code, n, vaddr, ret, max);
	default:
		return 0;
	}
}
