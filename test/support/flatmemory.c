// SPDX-License-Identifier: Apache-2.0
#include "support/flatmemory.h"

#include "base/cleanup.h"

static int flat_read(struct memory *m, const struct memory_range *ranges, size_t n, size_t *ret)
{
	const struct flatmemory *fm = container_of(m, struct flatmemory, memory);

	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t off = ranges[i].addr - FLATMEMORY_BASE;

		for (size_t k = 0; k < ranges[i].n; k++, off++) {
			if (!fm->n || (!fm->wraps && off >= fm->n))
				return 0;
			((uint8_t *)ranges[i].to)[k] = fm->bytes[off % fm->n];
			++*ret;
		}
	}
	return 0;
}

static int flat_check(struct memory *m)
{
	(void)m;
	return 0;
}

void flatmemory_init(struct flatmemory *fm, const void *bytes, size_t n)
{
	*fm = (struct flatmemory){
		.memory = {.read = flat_read, .check = flat_check}, .bytes = bytes, .n = n};
}
