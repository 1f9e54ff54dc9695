// SPDX-License-Identifier: Apache-2.0
/*
 * A process with the input as its memory, from address 4096, endlessly repeated if the first byte
 * says so: the variables of the builtins, then a function, with the constants of one release, and
 * one of the forms of data for deoptimisation.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "runtimes/v8_function.h"
#include "runtimes/v8_places.h"
#include "runtimes/v8_process.h"
#include "support/flatmemory.h"
#include "support/v8image.h"

/* A search for a line, its lines, strings of many parts with links each; of compiled code, the same
 * for each inlined function. */
#define CALLS_MAX (RUNTIMES_PLACES_MAX * 16384)

static void check_function(const struct v8_function *f)
{
	if (!f->n_functions || f->n_functions > RUNTIMES_PLACES_MAX || f->n_places > V8_PLACES_MAX)
		abort();
	for (size_t i = 0; i < f->n_functions; i++)
		if (strlen(f->functions[i].function.name) >= RUNTIMES_NAME_MAX ||
		    strlen(f->functions[i].function.file) >= RUNTIMES_FILE_MAX)
			abort();
	(void)v8_function_place(f, 60);
}

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
	/* compiled code at an address of the input */
	if (data[0] & 2) {
		words[0] |= V8_COMPILED | (check & 6);
		words[1] = (uint64_t)(check >> 16) << 48 | (FLATMEMORY_BASE + (check & 0xffff));
	}
	target.image.constants[V8_DEOPT_FORM] = (data[0] >> 2) % (V8_DEOPT_OF_13 + 1);
	flatmemory_init(&fm, data + 5, size - 5);
	fm.wraps = data[0] & 1;
	target.image.builtins[0] = FLATMEMORY_BASE;
	target.image.builtins[1] = FLATMEMORY_BASE + 8;
	if (!v8_process_attach(&fm.memory, &target) &&
	    target.process.builtins[1] <= target.process.builtins[0])
		abort();
	if (!v8_function_read(&fm.memory, &target, words, &f)) {
		check_function(&f);
	} else if (f.places || f.functions) {
		abort();
	}
	v8_function_deinit(&f);
	if (fm.memory.n_calls > CALLS_MAX)
		abort();
	return 0;
}
