// SPDX-License-Identifier: Apache-2.0
/* An ELF core; reads the first bytes of each mapping. The seeds are small and handmade; "whole" is
 * the core of test_corefile.c. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "goheap/corefile.h"
#include "elf/elffile.h"

#define READ_BYTES 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct corefile_mapping *m;
	struct corefile *core = NULL;
	struct elffile *file = NULL;
	uint8_t bytes[READ_BYTES];
	size_t n, got;

	if (corefile_open_memory(data, size, &core))
		return 0;
	m = corefile_mappings(core, &n);
	if (n && elffile_open_memory(data, size, &file) == 0)
		corefile_attach(core, 0, file);
	for (size_t i = 0; i < n; i++) {
		if (m[i].start >= m[i].limit || strlen(m[i].path) > size)
			abort();
		(void)memory_read_some(corefile_memory(core), m[i].start, bytes, sizeof(bytes),
				       &got);
	}
	(void)memory_read(corefile_memory(core), size, bytes, sizeof(bytes));
	corefile_free(core);
	elffile_free(file);
	return 0;
}
