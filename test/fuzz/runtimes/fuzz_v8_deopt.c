// SPDX-License-Identifier: Apache-2.0
/* Translations of optimised code: the form, then the translations. Each byte may begin one. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "runtimes/v8_deopt.h"

/* Beginnings that are tried. */
#define INDICES 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int32_t form = size ? data[0] % (V8_DEOPT_OF_13 + 1) : V8_DEOPT_UNKNOWN;
	struct v8_deopt_frames frames;

	if (!size)
		return 0;
	for (uint32_t index = 0; index < INDICES && index <= size; index++) {
		const int r = v8_deopt_parse(form, data + 1, size - 1, index, &frames);

		if ((r && r != V8_ODD) || frames.n > RUNTIMES_PLACES_MAX || (!r && !frames.n))
			abort();
	}
	return 0;
}
