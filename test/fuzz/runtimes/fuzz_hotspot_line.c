// SPDX-License-Identifier: Apache-2.0
/* A line table: its kind of numbers, a bytecode, and the table. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "runtimes/hotspot_line.h"

#define HEAD 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t first, line;
	uint16_t bci;

	if (size < HEAD)
		return 0;
	memcpy(&bci, data + 1, sizeof(bci));
	line = hotspot_line(data + HEAD, size - HEAD, data[0] & 1, bci, &first);
	if (!line != !first || line < first)
		abort();
	return 0;
}
