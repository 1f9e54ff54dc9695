// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/ehimage.h"
#include "unwindtable/compile.h"

/* Undescribed code below this is not looked at. */
#define CODE_MIN 0x200

static void check(const struct rows *rows, size_t n)
{
	for (size_t i = 0; i < rows_count(rows); i++) {
		struct row row = rows_at(rows, i);

		if (row.vaddr < EHIMAGE_TEXT || row.vaddr > EHIMAGE_TEXT + n ||
		    row.rule >= rows_n_rules(rows))
			abort();
	}
}

/* The first byte selects the machine, the second the program's entry; the others are code. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ehimage image = {0};
	struct ehframe_stats stats;
	uint8_t text[0x2000];
	struct elffile *file;
	struct rows *rows;
	void *bytes;
	size_t n;

	if (size < 2 || size > sizeof(text))
		return 0;
	image.n_text = size - 2 > CODE_MIN ? size - 2 : CODE_MIN;
	memset(text, 0, sizeof(text));
	memcpy(text, data + 2, size - 2);
	image.machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
	image.type = data[0] & 2 ? ET_EXEC : ET_DYN;
	image.entry = EHIMAGE_TEXT + data[1];
	image.text = text;
	bytes = ehimage_build(&image, &n);
	if (!bytes)
		return 0;
	if (elffile_open_memory(bytes, n, &file))
		abort(); /* the builder makes good headers */
	if (compile_image(file, &stats, &rows) == 0) {
		check(rows, image.n_text);
		rows_free(rows);
	}
	elffile_free(file);
	free(bytes);
	return 0;
}
