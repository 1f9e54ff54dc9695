// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "support/ehimage.h"
#include "unwindtable/compile.h"

/* The first byte says how the others are put into a file; the second, where the second table
 * begins. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ehimage image = {0};
	struct ehframe_stats stats;
	struct elffile *file;
	struct rows *rows;
	size_t n, first;
	void *bytes;

	if (size < 2)
		return 0;
	first = (size_t)data[1] * 4 < size - 2 ? (size_t)data[1] * 4 : size - 2;
	image.machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
	image.no_sections = data[0] & 2;
	image.compressed = data[0] & 4;
	image.more = data[0] & 8 ? 1 << 16 : 0;
	image.debug_frame = data + 2;
	image.n_debug_frame = first;
	image.eh_frame = data + 2 + first;
	image.n_eh_frame = size - 2 - first;
	bytes = ehimage_build(&image, &n);
	if (!bytes)
		return 0;
	if (elffile_open_memory(bytes, n, &file))
		abort(); /* the builder makes good headers */
	if (compile_image(file, &stats, &rows) == 0) {
		if (!ehimage_rows_are_sane(rows))
			abort();
		rows_free(rows);
	}
	elffile_free(file);
	free(bytes);
	return 0;
}
