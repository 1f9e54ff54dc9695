// SPDX-License-Identifier: Apache-2.0
/*
 * A process with the input as its memory, from address 4096, endlessly repeated if the first byte
 * says so. The second byte selects the release. The words behind are _PyRuntime, and at 128 a
 * thread state, at 256 a code object.
 */
#include "fuzz/fuzz.h"
#include "fuzz/runtimes/python_function.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/python_frames.h"
#include "runtimes/python_process.h"
#include "support/flatmemory.h"

#define FRAMES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct python_threads threads;
	struct python_image image = {.runtime = FLATMEMORY_BASE};
	struct python_frame frames[FRAMES_MAX];
	struct python_process process;
	struct flatmemory fm;
	size_t n;

	if (size < 2)
		return 0;
	python_layout_of_version((uint16_t)(0x0306 + data[1] % 7), &image.layout);
	image.layout.code_count = data[0] & 2 ? 256 : 0;
	image.machine = data[0] & 4 ? EM_AARCH64 : EM_X86_64;
	flatmemory_init(&fm, data + 2, size - 2);
	fm.wraps = data[0] & 1;
	if (!python_process_attach(&fm.memory, &image, 0, &process, &threads) &&
	    (!threads.n || threads.n > PYTHON_THREADS_MAX || process.way.at % 8 ||
	     process.way.slot % 8))
		abort();
	(void)python_frames_read(&fm.memory, &image.layout.process, FLATMEMORY_BASE + 128,
				 FRAMES_MAX, frames, &n);
	if (n > FRAMES_MAX)
		abort();
	for (size_t i = 0; i < n; i++)
		read_function(&fm.memory, &image.layout, frames[i].code, NULL);
	read_function(&fm.memory, &image.layout, FLATMEMORY_BASE + 384, NULL);
	/* bounded, whatever the lists look like */
	if (fm.memory.n_calls >
	    3ull * PYTHON_INTERPRETERS_MAX * 3 + 3ull * PYTHON_THREADS_MAX + 4096)
		abort();
	return 0;
}
