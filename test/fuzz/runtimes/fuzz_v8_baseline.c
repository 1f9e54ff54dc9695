// SPDX-License-Identifier: Apache-2.0
/* Lengths of baseline code, the bytecode, and sizes of bytecodes: a third of the input each. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "runtimes/v8_baseline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t n = size / 3;
	const uint32_t n_sizes = n / 3 < 256 ? (uint32_t)(n / 3) : 256;

	for (uint64_t distance = 0; distance < 64; distance++) {
		const uint32_t off =
			v8_baseline_offset(data, n, data + n, n, data + 2 * n, n_sizes, distance);

		if (off != UINT32_MAX && off >= n)
			abort();
	}
	return 0;
}
