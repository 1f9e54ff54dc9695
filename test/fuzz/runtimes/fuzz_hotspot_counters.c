// SPDX-License-Identifier: Apache-2.0
/* The performance counters of HotSpot. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "runtimes/hotspot_counters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at;

	if (hotspot_counters_find(data, size, HOTSPOT_COUNTERS_SAFEPOINTS, &at) &&
	    (at % 8 || size < 8 || at > size - 8))
		abort();
	return 0;
}
