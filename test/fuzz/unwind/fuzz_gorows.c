// SPDX-License-Identifier: Apache-2.0
/* An ELF file with Go's tables and code. The seeds are made by test/support/gotable.c, one of each
 * form of the tables. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "unwind/gorows.h"
#include "elf/elffile.h"
#include "gofile/gopcsp.h"
#include "unwind/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elffile *file = NULL;
	struct rows *rows = NULL;

	if (elffile_open_memory(data, size, &file) == 0 &&
	    rows_new(0x400000, 0x400000 + (UINT64_C(1) << 32), &rows) == 0) {
		int r = gorows_add_file(file, rows, NULL);

		if (r >= GOPCSP_OUTCOME_MAX)
			abort();
		if (r == 0 && rows_finish(rows) == 0)
			for (size_t i = 1; i < rows_count(rows); i++)
				if (rows_at(rows, i).vaddr <= rows_at(rows, i - 1).vaddr)
					abort();
	}
	rows_free(rows);
	elffile_free(file);
	return 0;
}
