// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of a Go process from address 0 on, in which the counters of goroutines and of the
 * collector's pacer are read. The first bytes say where the variables are.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "goheap/goruntime.h"
#include "goheap/gototals.h"
#include "procmap/memory.h"

struct input {
	struct memory memory;
	const uint8_t *data;
	size_t size;
};

static int input_read(struct memory *memory, const struct memory_range *ranges, size_t n,
		      size_t *ret)
{
	const struct input *in = container_of(memory, struct input, memory);

	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t left = ranges[i].addr < in->size ? in->size - ranges[i].addr : 0;
		size_t now = ranges[i].n < left ? ranges[i].n : (size_t)left;

		if (now)
			memcpy(ranges[i].to, in->data + ranges[i].addr, now);
		*ret += now;
		if (now < ranges[i].n)
			break;
	}
	return 0;
}

static int input_check(struct memory *memory)
{
	(void)memory;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.memory = {.read = input_read, .check = input_check}};
	struct goruntime rt = {0};
	struct gosched sched = {0};
	struct gopacer pacer;
	uint64_t n = 0;
	uint8_t at[8];

	if (size < sizeof(at))
		return 0;
	memcpy(at, data, sizeof(at));
	in.data = data + sizeof(at);
	in.size = size - sizeof(at);
	rt.file.sched.allglen = 8u * at[0];
	rt.file.sched.allp = 8u * at[1];
	rt.file.sched.free = 8u * at[2];
	rt.file.sched.system = 8u * at[3];
	rt.file.sched.split = at[4] & 1;
	rt.file.controller = 8u * at[5];
	rt.file.total_alloc = at[6] ? rt.file.controller + 8u * at[6] : 0;
	rt.file.heap_live = at[7] ? rt.file.controller + 8u * at[7] : 0;
	for (int i = 0; i < 2; i++)
		if (gosched_read(&rt, &in.memory, &sched, &n) == 0 && !n)
			abort(); /* the one that runs */
	if (gopacer_read(&rt, &in.memory, &pacer) == 0 && pacer.has_memory &&
	    pacer.inuse > pacer.sys)
		abort();
	return 0;
}
