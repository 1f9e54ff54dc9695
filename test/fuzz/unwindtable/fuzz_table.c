// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "lib/table_host.h"

/* The bytes are a descriptor and the elements of a blob: whatever they say, a lookup reads nothing
 * else and gives a rule that there is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct unwind_rule rules[2] = {{0}, {.cfa = UNWIND_CFA_STOP}};
	static const struct table_ramp ramps[1] = {{.rules = {0, 1, 7}}};
	struct table_space space = {.rules = rules, .ramps = ramps, .n_rules = 2, .n_ramps = 1};
	struct table_element *elements;
	struct unwind_rule rule = {0};
	struct table_exe exe;

	if (size < sizeof(exe))
		return 0;
	memcpy(&exe, data, sizeof(exe));
	data += sizeof(exe);
	size -= sizeof(exe);
	space.n_elements = (size + TABLE_ELEMENT - 1) / TABLE_ELEMENT;
	elements = calloc(space.n_elements + !size, sizeof(*elements));
	if (!elements)
		return 0;
	memcpy(elements, data, size);
	space.elements = elements;
	for (uint64_t off = 0; off < 1u << 16; off += 37)
		if (table_find(&space, &exe, exe.start + off, &rule) == TABLE_FOUND &&
		    rule.cfa != UNWIND_CFA_GAP && rule.cfa != UNWIND_CFA_STOP)
			abort();
	for (uint64_t bit = 1; bit; bit <<= 1)
		(void)table_find(&space, &exe, exe.start + bit, &rule);
	free(elements);
	return 0;
}
