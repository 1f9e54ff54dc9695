// SPDX-License-Identifier: Apache-2.0
/*
 * A process with the input as its memory, from address 4096, endlessly repeated if the first byte
 * says so. The first words are the variables of the image.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "runtimes/hotspot_method.h"
#include "runtimes/hotspot_process.h"
#include "support/flatmemory.h"

/* Tables, heaps with the way to their interpreter's block, parts of the interpreter, a function. */
#define CALLS_MAX 4096

static void read_function(struct memory *m, const struct hotspot_target *target, uint64_t object,
			  uint64_t check)
{
	const uint64_t words[2] = {object, check << 32};
	struct hotspot_function f = {0};

	if (!hotspot_function_read(m, target, words, &f)) {
		if (strlen(f.name) >= sizeof(f.name) || strlen(f.file) >= sizeof(f.file) ||
		    f.n_lines > HOTSPOT_LINES_BYTES_MAX)
			abort();
		(void)hotspot_function_line(&f, 10);
	} else if (f.lines) {
		abort();
	}
	hotspot_function_deinit(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hotspot_target target;
	struct hotspot_image image;
	struct flatmemory fm;
	uint32_t check = 0;

	if (size < 5)
		return 0;
	memcpy(&check, data + 1, sizeof(check));
	for (int i = 0; i < HOTSPOT_VARIABLE_MAX; i++)
		image.variables[i] = FLATMEMORY_BASE + 8ull * (unsigned int)i;
	flatmemory_init(&fm, data + 5, size - 5);
	fm.wraps = data[0] & 1;
	target = (struct hotspot_target){0};
	if (hotspot_layout_read(&fm.memory, &image, 0, &target.layout))
		return 0;
	if (!hotspot_process_attach(&fm.memory, &target)) {
		if (target.process.limit <= target.process.low || !target.process.heaps[0].segments)
			abort();
		read_function(&fm.memory, &target, target.process.interpreter, check);
	}
	read_function(&fm.memory, &target, FLATMEMORY_BASE + 256, check);
	if (fm.memory.n_calls > CALLS_MAX)
		abort();
	return 0;
}
