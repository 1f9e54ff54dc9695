// SPDX-License-Identifier: Apache-2.0
/*
 * An ELF file, of which all rows are made: from the tables, from known code, and by a scan of the
 * code from symbols and pointers. The first byte is the budget of work; 255 is none.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "base/nsec.h"
#include "base/work_budget.h"
#include "elf/elffile.h"
#include "unwindtable/compile.h"

/* A budget never changes a result, but only prevents a result. */
static void compile(const struct elffile *file, struct work_budget *work)
{
	struct elffile *budgeted;
	struct ehframe_stats stats;
	struct rows *rows;

	if (elffile_budgeted(file, work, &budgeted))
		return;
	if (compile_image(budgeted, &stats, &rows) == 0) {
		for (size_t i = 1; i < rows_count(rows); i++)
			if (rows_at(rows, i).vaddr <= rows_at(rows, i - 1).vaddr)
				abort();
		rows_free(rows);
	}
	elffile_free(budgeted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct work_budget work;
	struct elffile *file;
	uint64_t units;

	if (size < 1 || elffile_open_memory(data + 1, size - 1, &file))
		return 0;
	units = data[0] == 255 ? UINT64_MAX : (uint64_t)data[0] << 10;
	work_budget_init(&work, units, 100 * NSEC_PER_SEC, NULL);
	compile(file, &work);
	if (work.spent > units)
		abort();
	elffile_free(file);
	return 0;
}
