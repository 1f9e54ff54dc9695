// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "elf/elffile.h"
#include "symbolize/symtab.h"

/* A found symbol contains the address. */
static void look_up(const struct symtab *t, uint64_t vaddr)
{
	static struct symtab_symbol symbol;

	if (symtab_find(t, vaddr, &symbol) != 0)
		return;
	if (symbol.vaddr > vaddr || strlen(symbol.name) >= SYMTAB_NAME_MAX)
		abort();
	if (symbol.size && symbol.size != UINT32_MAX && vaddr - symbol.vaddr >= symbol.size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elffile_section s;
	struct elffile *file;
	struct symtab *t;

	if (elffile_open_memory(data, size, &file) != 0)
		return 0;
	if (symtab_open(file, &t) == 0) {
		for (uint32_t i = 0; i < 64 && elffile_section_at(file, i, &s) == 0; i++)
			for (uint64_t off = 0; off < s.size && off < 64; off++)
				look_up(t, s.vaddr + off);
		look_up(t, 0);
		look_up(t, UINT64_MAX);
		symtab_free(t);
	}
	elffile_free(file);
	return 0;
}
