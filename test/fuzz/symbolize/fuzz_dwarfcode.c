// SPDX-License-Identifier: Apache-2.0
/*
 * Sections with DWARF. The input: an address, the distance to the next address, the sizes of the
 * sections as 16 bits each, then the sections.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "symbolize/dwarfcode.h"
#include "symbolize/symbolizer.h"

#define ADDRESSES 32

static size_t touched;

static void find_some(struct dwarfcode *code, uint64_t vaddr, uint16_t step)
{
	static struct symbol_line lines[SYMBOL_LINES_MAX];

	for (size_t i = 0; i < ADDRESSES; i++, vaddr += step) {
		int n = dwarfcode_find(code, vaddr, lines);

		if (n < 0 || n > SYMBOL_LINES_MAX)
			abort();
		for (int k = 0; k < n; k++) {
			touched += strlen(lines[k].function) + strlen(lines[k].system_name) +
				   strlen(lines[k].file);
			if (lines[k].inlined != (k + 1 < n))
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c, sections[DWARFSECTION_MAX];
	uint16_t sizes[DWARFSECTION_MAX], step;
	struct dwarfsections *opened;
	struct dwarfcode *code;
	uint64_t vaddr;

	cursor_init(&c, data, size);
	if (!cursor_u64(&c, &vaddr) || !cursor_u16(&c, &step))
		return 0;
	for (size_t i = 0; i < DWARFSECTION_MAX; i++)
		if (!cursor_u16(&c, &sizes[i]))
			return 0;
	for (size_t i = 0; i < DWARFSECTION_MAX; i++) {
		size_t n = sizes[i] < cursor_left(&c) ? sizes[i] : cursor_left(&c);

		if (!cursor_sub(&c, n, &sections[i]))
			abort();
	}
	if (dwarfsections_open_memory(sections, &opened))
		return 0;
	if (dwarfcode_open_sections(opened, &code) == 0) {
		find_some(code, vaddr, step);
		dwarfcode_free(code);
	}
	return 0;
}
