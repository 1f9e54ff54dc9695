// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "lib/table_host.h"

/* The bytes are a descriptor and the pages of a table image. For any bytes, a lookup reads nothing
 * else and returns an existing rule. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct unwind_rule rules[2] = {{0}, {.cfa = UNWIND_CFA_STOP}};
	static const struct table_rule_run rule_runs[1] = {{.rules = {0, 1, 7}}};
	struct table_space space = {
		.rules = rules, .rule_runs = rule_runs, .n_rules = 2, .n_rule_runs = 1};
	struct table_page *table_pages;
	struct unwind_rule rule = {0};
	struct table_exe exe;

	if (size < sizeof(exe))
		return 0;
	memcpy(&exe, data, sizeof(exe));
	data += sizeof(exe);
	size -= sizeof(exe);
	space.n_table_pages = (size + TABLE_PAGE_BYTES - 1) / TABLE_PAGE_BYTES;
	table_pages = calloc(space.n_table_pages + !size, sizeof(*table_pages));
	if (!table_pages)
		return 0;
	memcpy(table_pages, data, size);
	space.table_pages = table_pages;
	for (uint64_t off = 0; off < 1u << 16; off += 37)
		if (table_find(&space, &exe, exe.start + off, &rule) == TABLE_FOUND &&
		    rule.cfa != UNWIND_CFA_GAP && rule.cfa != UNWIND_CFA_STOP)
			abort();
	for (uint64_t bit = 1; bit; bit <<= 1)
		(void)table_find(&space, &exe, exe.start + bit, &rule);
	free(table_pages);
	return 0;
}
