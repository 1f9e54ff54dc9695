// SPDX-License-Identifier: Apache-2.0
/*
 * A process with the input as its memory, from address 4096, endlessly repeated if the first byte
 * says so. The second byte selects the release. A thread state is at the first address.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "runtimes/python_image.h"
#include "runtimes/python_tasks.h"
#include "support/flatmemory.h"

#define OLDEST 0x0308
/* The table has layouts up to here; later releases have these offsets. */
#define NEWEST 0x030c
/* A search reads twice for a batch of 64 entries, and some strings. There are three searches. */
#define CALLS  (3ull * (PYTHON_TASKS_ENTRIES_MAX / 64 * (2 + 64) + 16))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct python_threads threads = {.n = 1, .items = {{.state = FLATMEMORY_BASE}}};
	struct python_layout layout;
	struct python_tasks tasks;
	struct flatmemory fm;
	uint16_t version;
	int r;

	if (size < 2)
		return 0;
	version = (uint16_t)(OLDEST + data[1] % 7);
	python_layout_of_version(version > NEWEST ? NEWEST : version, &layout);
	layout.version = version;
	flatmemory_init(&fm, data + 2, size - 2);
	fm.wraps = data[0] & 1;
	r = python_tasks_find(&fm.memory, &layout, &threads, &tasks);
	if (!r != !!tasks.type || (!r && !tasks.running != !!tasks.thread_task))
		abort();
	if (fm.memory.n_calls > CALLS)
		abort();
	return 0;
}
