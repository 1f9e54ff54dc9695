// SPDX-License-Identifier: Apache-2.0
/* A line table: its shape, the first line, a place, and the table. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "runtimes/python_line.h"

#define HEAD 9

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int32_t first, place;
	uint32_t line;

	if (size < HEAD)
		return 0;
	memcpy(&first, data + 1, sizeof(first));
	memcpy(&place, data + 5, sizeof(place));
	line = python_line((enum python_lines)(data[0] % 3), data + HEAD, size - HEAD, first,
			   place);
	if (place < 0 && line != (first > 0 ? (uint32_t)first : 0))
		abort();
	return 0;
}
