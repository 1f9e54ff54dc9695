// SPDX-License-Identifier: Apache-2.0
/* An ELF file with Go's tables; searches the runtime's variables. test/support/gotable.c makes the
 * seeds; "go1.26-runtime" has functions with the runtime's names. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "goheap/goruntime.h"
#include "elf/elffile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct goruntime_file found;
	struct elffile *file = NULL;
	int r;

	if (elffile_open_memory(data, size, &file) == 0) {
		r = goruntime_file_read(file, &found);
		if (r >= (int)GORUNTIME_STATE_MAX)
			abort();
	}
	elffile_free(file);
	return 0;
}
