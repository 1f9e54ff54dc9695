// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "elf/elffile.h"
#include "symbolize/plt.h"

static void look_up(const struct plt *plt, uint64_t vaddr)
{
	static char name[PLT_NAME_MAX];

	if (plt_find(plt, vaddr, name) == 0 && (!name[0] || strlen(name) >= PLT_NAME_MAX))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elffile_section s;
	struct elffile *file;
	struct plt *plt;

	if (elffile_open_memory(data, size, &file) != 0)
		return 0;
	if (plt_open(file, &plt) == 0) {
		for (uint32_t i = 0; i < 64 && elffile_section_at(file, i, &s) == 0; i++)
			for (uint64_t off = 0; off < s.size && off < 256; off += 4)
				look_up(plt, s.vaddr + off);
		look_up(plt, UINT64_MAX);
		plt_free(plt);
	}
	elffile_free(file);
	return 0;
}
