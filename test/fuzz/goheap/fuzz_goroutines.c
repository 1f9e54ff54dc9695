// SPDX-License-Identifier: Apache-2.0
/* A process with the input as its memory, from address 4096. The first word selects the Go release,
 * and the slice of goroutines follows. The seeds have two goroutines, one with a stack. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "goheap/goroutines.h"
#include "goheap/goruntime.h"
#include "procmap/memory.h"

#define BASE 4096ull

struct input {
	struct memory memory;
	const uint8_t *data;
	size_t size;
};

static int input_read(struct memory *m, const struct memory_range *ranges, size_t n, size_t *ret)
{
	const struct input *in = container_of(m, struct input, memory);

	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t off = ranges[i].addr - BASE;
		size_t bytes = ranges[i].n;

		if (ranges[i].addr < BASE || off >= in->size)
			return 0;
		if (bytes > in->size - off)
			bytes = in->size - off;
		memcpy(ranges[i].to, in->data + off, bytes);
		*ret += bytes;
		if (bytes < ranges[i].n)
			return 0;
	}
	return 0;
}

static int input_check(struct memory *m)
{
	(void)m;
	return 0;
}

static int on_goroutine(void *ctx, const struct goroutine *g)
{
	uint64_t *sum = ctx;

	for (size_t i = 0; i < g->n_stack; i++)
		*sum += g->stack[i];
	*sum += strlen(g->wait_reason) + strlen(goroutine_status_name(g->status));
	if (g->n_stack > GOROUTINES_STACK_MAX || (g->n_stack && g->sp + g->n_stack > g->limit))
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.memory = {.read = input_read, .check = input_check}, data, size};
	struct goroutines_stats stats;
	struct goruntime rt = {0};
	uint64_t sum = 0;
	int r;

	if (size < 8)
		return 0;
	snprintf(rt.file.version, sizeof(rt.file.version), "go1.%u", 16u + data[0] % 13);
	rt.file.vars[GORUNTIME_ALLGS].vaddr = BASE + 8;
	rt.file.vars[GORUNTIME_ALLGS].source = GORUNTIME_FROM_CODE;
	rt.file.vars[GORUNTIME_WAIT_REASONS].vaddr = BASE + 32;
	rt.file.vars[GORUNTIME_WAIT_REASONS].source = GORUNTIME_FROM_CODE;
	r = goroutines_read(&rt, &in.memory, on_goroutine, &sum, &stats);
	if (r < 0 || r >= (int)GORUNTIME_STATE_MAX)
		abort();
	return 0;
}
