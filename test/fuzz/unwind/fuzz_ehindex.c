// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "unwind/ehframe.h"
#include "unwind/ehindex.h"

/* A found range contains the address. */
static void look_up(struct ehindex *x, uint64_t vaddr)
{
	struct ehrange range;

	if (ehindex_find(x, vaddr, &range) == 0 && (vaddr < range.start || vaddr >= range.end))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elffile *file;
	struct ehindex *x;
	uint64_t start, end;

	if (elffile_open_memory(data, size, &file) != 0)
		return 0;
	if (ehindex_open(file, &x) == 0) {
		if (ehframe_text(file, &start, &end) == 0)
			for (uint64_t i = 0; i < 256 && i < end - start; i++)
				look_up(x, start + (end - start) / 256 * i + i);
		look_up(x, 0);
		look_up(x, UINT64_MAX);
		ehindex_free(x);
	}
	elffile_free(file);
	return 0;
}
