// SPDX-License-Identifier: Apache-2.0
/* An ELF file, in which symbols are looked for by name: in the tables, and by .gnu.hash, which the
 * corpus' dynamic symbol "f" has. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "elf/elffile.h"
#include "elf/elfsym.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"f", "main", "environ", "runtime.mbuckets"};
	struct elfsym found[sizeof(names) / sizeof(names[0])];
	struct elffile *file;

	if (elffile_open_memory(data, size, &file) != 0)
		return 0;
	for (int table = ELFSYM_SYMTAB; table <= ELFSYM_DYNSYM; table++) {
		if (elfsym_find(file, (enum elfsym_table)table, ELFSYM_DATA | ELFSYM_CODE, names, 4,
				found) != 0)
			continue;
		for (size_t i = 0; i < 4; i++)
			if (found[i].n > size / 24)
				abort();
	}
	elffile_free(file);
	return 0;
}
