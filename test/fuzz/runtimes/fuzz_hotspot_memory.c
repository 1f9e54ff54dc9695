// SPDX-License-Identifier: Apache-2.0
/*
 * A process with the input as its memory, from address 4096, endlessly repeated if the first byte
 * says so. The first words are the variables of the image.
 */
#include "fuzz/fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/hotspot_method.h"
#include "runtimes/hotspot_process.h"
#include "runtimes/hotspot_scopes.h"
#include "support/flatmemory.h"

/* A place in compiled code: behind the blob's header in the corpus. */
#define PLACE	  50
/* The corpus has compiled code of a method there. */
#define BLOB	  22544
#define METHOD	  15616
/* Tables, heaps with the way to their interpreter's block, parts of the interpreter, a function. */
#define CALLS_MAX 4096

static void read_function(struct memory *m, const struct hotspot_target *target, uint64_t object,
			  uint64_t check)
{
	const uint64_t words[2] = {object, check << 32 | PLACE};
	struct hotspot_function f = {0};

	if (!hotspot_function_read(m, target, words, &f)) {
		const struct runtime_place place = hotspot_function_place(&f);

		if (place.n_inlined >= RUNTIMES_PLACES_MAX)
			abort();
		for (size_t i = 0; i < f.n_places; i++)
			if (strlen(f.places[i].function.name) >= RUNTIMES_NAME_MAX ||
			    strlen(f.places[i].function.file) >= RUNTIMES_FILE_MAX)
				abort();
	} else if (f.places) {
		abort();
	}
	hotspot_function_deinit(&f);
}

/* Addresses in the code of the blob, as if its name and check were right. */
static void read_scopes(struct memory *m, const struct hotspot_target *target)
{
	struct hotspot_tables tables;
	struct hotspot_scopes scopes;

	if (hotspot_tables_read(m, target, BLOB, NULL, 0, &tables))
		return;
	for (uint64_t pc = tables.code; pc < tables.code + 64; pc += 8) {
		if (hotspot_scopes_read(m, target, &tables, METHOD, pc, &scopes))
			continue;
		if (!scopes.n || scopes.n > RUNTIMES_PLACES_MAX ||
		    scopes.items[scopes.n - 1].method != METHOD)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hotspot_target target;
	struct hotspot_image image = {.machine = EM_X86_64};
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
	read_scopes(&fm.memory, &target);
	read_function(&fm.memory, &target, FLATMEMORY_BASE + 256, check);
	if (fm.memory.n_calls > CALLS_MAX)
		abort();
	return 0;
}
