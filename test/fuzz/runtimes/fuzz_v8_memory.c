// SPDX-License-Identifier: Apache-2.0
/*
 * A process with the input as its memory, from address 4096, endlessly repeated if the first byte
 * says so: the variables of the builtins, then a function, with the constants of one release.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "runtimes/v8_function.h"
#include "runtimes/v8_places.h"
#include "runtimes/v8_process.h"
#include "support/flatmemory.h"
#include "support/v8image.h"

/* A search for a line, its lines, strings of many parts with links each. */
#define CALLS_MAX 16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct v8_target target = {.image = v8image_of_11};
	uint64_t words[2] = {FLATMEMORY_BASE + 64, 0};
	struct v8_function f = {0};
	struct flatmemory fm;
	uint32_t check = 0;

	if (size < 5)
		return 0;
	memcpy(&check, data + 1, sizeof(check));
	words[1] = (uint64_t)check << 32;
	flatmemory_init(&fm, data + 5, size - 5);
	fm.wraps = data[0] & 1;
	target.image.builtins[0] = FLATMEMORY_BASE;
	target.image.builtins[1] = FLATMEMORY_BASE + 8;
	if (!v8_process_attach(&fm.memory, &target) &&
	    target.process.builtins[1] <= target.process.builtins[0])
		abort();
	if (!v8_function_read(&fm.memory, &target, words, &f)) {
		if (strlen(f.name) >= sizeof(f.name) || strlen(f.file) >= sizeof(f.file) ||
		    f.n_places > V8_PLACES_MAX)
			abort();
		(void)v8_function_line(&f, 60);
	} else if (f.places) {
		abort();
	}
	v8_function_deinit(&f);
	if (fm.memory.n_calls > CALLS_MAX)
		abort();
	return 0;
}
