// SPDX-License-Identifier: Apache-2.0
/* Code, with a mark and a place in its first two bytes; arm64's from mark 128 on. */
#include "fuzz/fuzz.h"

#include <elf.h>
#include <stdlib.h>

#include "runtimes/v8_ways.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint16_t machine = size && data[0] >= 128 ? EM_AARCH64 : EM_X86_64;
	struct v8_ways ways;

	if (size < 2 || !v8_ways_find(machine, data + 2, size - 2, data[0], data[1], &ways))
		return 0;
	if (data[0] > data[1] || ways.n_jumps > V8_WAYS_MAX)
		abort();
	for (size_t i = 0; i < ways.n_jumps; i++)
		if (ways.jumps[i] >= size - 2)
			abort();
	return 0;
}
