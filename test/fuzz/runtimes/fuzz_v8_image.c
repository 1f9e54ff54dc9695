// SPDX-License-Identifier: Apache-2.0
/*
 * A program that may contain V8, as a file and as its memory: the file from the fifth byte on, its
 * memory from address 4096 on, endlessly repeated if the first byte is odd.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/elffile.h"
#include "runtimes/v8_builtins.h"
#include "runtimes/v8_layout.h"
#include "support/flatmemory.h"

static void check_image(const struct v8_image *image)
{
	if (image->builtins[0]
		    ? !image->builtins[1]
		    : image->zeroed[0] > image->zeroed[1] ||
			      image->zeroed[1] - image->zeroed[0] > V8_BUILTINS_SEARCH_MAX ||
			      image->code[0] >= image->code[1])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	struct v8_image image = {0};
	struct flatmemory fm;
	uint64_t first;
	uint32_t bytes, bias;

	if (size < sizeof(bias))
		return 0;
	memcpy(&bias, data, sizeof(bias));
	if (elffile_open_memory(data + sizeof(bias), size - sizeof(bias), &file))
		return 0;
	flatmemory_init(&fm, data + sizeof(bias), size - sizeof(bias));
	fm.wraps = bias & 1;
	if (v8_image_probe(file, &image) != V8_OK)
		return 0;
	check_image(&image);
	if (!v8_builtins_find(&fm.memory, &image, bias, &first, &bytes) && first + bytes <= first)
		abort();
	return 0;
}
