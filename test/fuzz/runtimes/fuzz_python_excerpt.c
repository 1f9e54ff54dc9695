// SPDX-License-Identifier: Apache-2.0
/* An excerpt of a process that chose all its bytes. The first byte selects the release. */
#include "fuzz/fuzz.h"
#include "fuzz/runtimes/python_function.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/excerpt.h"
#include "runtimes/python_excerpt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(8) uint8_t bytes[STACK_DUMP_EXCERPT_BYTES];
	static struct python_target target;
	struct python_image image = {.machine = EM_X86_64};
	uint64_t words[2], at = 0;
	struct excerpt e;
	size_t n, n_functions = 0;
	uint32_t check;

	if (!size)
		return 0;
	n = size - 1 < sizeof(bytes) ? size - 1 : sizeof(bytes);
	memcpy(bytes, data + 1, n);
	python_layout_of_version((uint16_t)(0x0306 + data[0] % 7), &image.layout);
	if (!python_excerpt_target(&image, 0, bytes, n, &target))
		return 0;
	excerpt_init(&e, bytes, n, PYTHON_PART_MEMORY);
	if (e.n > EXCERPT_PARTS_MAX)
		abort();
	while (python_excerpt_next(&target, bytes, n, &at, words)) {
		if (words[0] >= FRAME_FIRST_LIMIT || (uint32_t)words[1])
			abort();
		check = (uint32_t)(words[1] >> 32);
		read_function(&e.memory, &target.image.layout, words[0], &check);
		n_functions++;
	}
	if (n_functions > EXCERPT_PARTS_MAX)
		abort();
	return 0;
}
