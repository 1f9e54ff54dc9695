// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "procmap/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct maps m = {0};
	uint64_t behind = 0;

	if (maps_parse((const char *)data, size, &m) != 0)
		abort();
	for (size_t i = 0; i < m.n; i++) {
		const struct maps_entry *e = &m.items[i];

		if (e->start < behind || e->start >= e->limit || strlen(e->path) > size)
			abort();
		if (maps_find(&m, e->start) != e || maps_find(&m, e->limit - 1) != e)
			abort();
		behind = e->limit;
	}
	maps_deinit(&m);
	return 0;
}
