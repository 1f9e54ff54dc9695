// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "unwind/cfi.h"
#include "unwind/rowtext.h"

#define START 0x1000
#define SIZE  0x10000

/* Invariants of every list of rows. */
static void check(enum cfi_machine machine, const struct rows *rows)
{
	char text[ROWTEXT_MAX];

	for (size_t i = 0; i < rows_count(rows); i++) {
		struct row row = rows_at(rows, i);

		if (row.vaddr < START || row.vaddr > START + SIZE)
			abort();
		if (i && (rows_at(rows, i - 1).vaddr >= row.vaddr ||
			  rows_at(rows, i - 1).rule == row.rule))
			abort();
		rowtext_print(machine, rows_rule(rows, row.rule), text);
	}
	if (rows_count(rows) && rows_at(rows, rows_count(rows) - 1).rule != 0)
		abort();
}

/* The first byte says how, the second is the length of the CIE's program. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_common common = {.code_align = 1, .data_align = -8};
	struct cursor c, cie;
	struct rows *rows;

	if (size < 2)
		return 0;
	common.machine = data[0] & 1 ? CFI_ARM64 : CFI_X86_64;
	common.ra_reg = common.machine == CFI_ARM64 ? 30 : 16;
	common.signal = data[0] & 2;
	common.code_align = data[0] & 4 ? 4 : 1;
	common.pointer_encoding = data[0] & 8 ? 0x1b : 0;
	cursor_init(&c, data + 2, size - 2);
	if (!cursor_sub(&c, data[1], &cie) || cfi_run_initial(&common, cie))
		return 0;
	if (rows_new(START, START + SIZE, &rows))
		return 0;
	if (rows_begin(rows, ROWS_EH_FRAME, START, START + SIZE))
		abort();
	if (cfi_run(&common, c, START, START, rows))
		rows_drop(rows);
	else if (rows_end(rows))
		abort();
	if (rows_finish(rows))
		abort();
	check(common.machine, rows);
	rows_free(rows);
	return 0;
}
