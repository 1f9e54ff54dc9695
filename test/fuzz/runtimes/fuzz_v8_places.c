// SPDX-License-Identifier: Apache-2.0
/* A table of source positions. Lines end at multiples of 16. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "runtimes/v8_lines.h"
#include "runtimes/v8_places.h"

#define LINES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct v8_place places[V8_PLACES_MAX];
	uint32_t ends[LINES];
	const struct v8_lines lines = {.first = 1, .ends = ends, .n = LINES};
	const int32_t shift = size ? data[0] & 1 : 0;
	size_t n;

	for (uint32_t i = 0; i < LINES; i++)
		ends[i] = i * 16;
	n = v8_places_parse(data, size, shift, 53, &lines, places);
	for (uint32_t at = 0; at < 128; at++) {
		uint32_t from;

		(void)v8_position_find(data, size, shift, at, &from);
		if (from > at)
			abort();
	}
	if (n > V8_PLACES_MAX)
		abort();
	for (size_t i = 0; i < n; i++)
		if ((!i && !places[i].line) || places[i].line > LINES || places[i].at < 52 ||
		    (i && places[i].at < places[i - 1].at))
			abort();
	for (uint32_t at = 0; at < 128; at++)
		if (v8_places_find(places, n, at) > LINES)
			abort();
	return 0;
}
