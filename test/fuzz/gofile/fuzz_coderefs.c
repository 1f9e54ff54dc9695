// SPDX-License-Identifier: Apache-2.0
/* Machine code; the first byte chooses the machine. */
#include "fuzz/fuzz.h"

#include <elf.h>
#include <stdlib.h>

#include "gofile/coderefs.h"

#define ROOM 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct coderef refs[ROOM];
	size_t n;

	if (size == 0)
		return 0;
	n = coderefs_find(data[0] & 1 ? EM_AARCH64 : EM_X86_64, data + 1, size - 1, 0x401000, refs,
			  ROOM);
	if (n > size)
		abort();
	for (size_t i = 0; i < n && i < ROOM; i++)
		if (refs[i].bytes > 8 || refs[i].kind > CODEREF_STORE)
			abort();
	return 0;
}
