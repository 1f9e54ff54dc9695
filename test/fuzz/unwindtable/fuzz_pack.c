// SPDX-License-Identifier: Apache-2.0
/* Packed rows of any kind: the walker's lookup finds the same rules. */
#include "fuzz/fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "unwind/rows.h"
#include "unwindtable/table.h"

#define START UINT64_C(0x401000)
#define END   (UINT64_C(1) << 39)

/* One row: a rule of 2^12, and the distance to the next row. */
static bool read_row(struct cursor *c, struct unwind_rule *ret, uint64_t *vaddr)
{
	uint16_t rule = 0, distance = 0;

	if (!cursor_u16(c, &rule) || !cursor_u16(c, &distance))
		return false;
	*ret = (struct unwind_rule){.cfa = UNWIND_CFA_REG,
				    .cfa_reg = UNWIND_X86_SP,
				    .cfa_off = 8 * (int32_t)(rule & 0xfff),
				    .ra_off = -8};
	if (!(rule & 0xfff))
		*ret = (struct unwind_rule){0};
	/* mostly near, sometimes far */
	*vaddr += 1 + (distance & 0x8000 ? (uint64_t)(distance & 0x7fff) << 8 : distance & 0xff);
	return true;
}

static void check(const struct rows *rows, const struct table *table, uint64_t vaddr)
{
	struct unwind_rule want = {0}, got = {0};
	size_t i = rows_find(rows, vaddr);

	if (i != SIZE_MAX)
		want = *rows_rule(rows, rows_at(rows, i).rule);
	if (table_lookup(table, vaddr, &got) == TABLE_TORN)
		abort();
	/* rows without room are gaps */
	if (memcmp(&got, &want, sizeof(got)) != 0 && (!table->n_cut || got.cfa != UNWIND_CFA_GAP))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_rule rule;
	struct table *table = NULL;
	struct rows *rows = NULL;
	uint64_t vaddr = START, next = START;
	struct cursor c;

	cursor_init(&c, data, size);
	if (rows_new(START, END, &rows) || rows_begin(rows, ROWS_EH_FRAME, START, END))
		abort();
	while (read_row(&c, &rule, &next) && next < END) {
		if (rows_add(rows, vaddr, &rule))
			abort();
		vaddr = next;
	}
	if (rows_add(rows, vaddr, &(struct unwind_rule){0}) || rows_end(rows) || rows_finish(rows))
		abort();
	if (table_pack(rows, &table) == 0)
		for (size_t i = 0; i < rows_count(rows); i++) {
			check(rows, table, rows_at(rows, i).vaddr - 1);
			check(rows, table, rows_at(rows, i).vaddr);
			check(rows, table, rows_at(rows, i).vaddr + 1);
		}
	table_free(table);
	rows_free(rows);
	return 0;
}
