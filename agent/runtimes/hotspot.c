// SPDX-License-Identifier: Apache-2.0
/*
 * The reader of HotSpot. A function is a place in a blob of compiled code, with the methods inlined
 * there, or in an interpreted method; bpf/shared/hotspot.h describes their words and checks. In
 * profiles the runtime is "java".
 */
#include "runtimes/runtimes.h"

#include <stdio.h>
#include <string.h>

#include "procmap/memory.h"
#include "runtimes/hotspot_method.h"
#include "runtimes/hotspot_process.h"
#include "runtimes/runtime_files.h"
#include "runtimes/runtime_reader.h"

static bool may_change(int outcome)
{
	return outcome == HOTSPOT_NOT_READY || outcome == HOTSPOT_ODD ||
	       outcome == HOTSPOT_UNREADABLE;
}

/* The launcher and programs with an embedded machine load the library to start the machine. */
static bool is_expected(int outcome)
{
	return outcome == HOTSPOT_NOT_READY;
}

static int find(struct runtime_files *files, const struct root *proc, const struct pid_id *id,
		void *ret)
{
	struct process_memory memory = {.fd = -1};
	int r = hotspot_outcome_of_memory(process_memory_init(&memory, proc, id));

	if (!r)
		r = hotspot_target_find(files, proc, id, &memory.memory, ret);
	process_memory_deinit(&memory);
	return r;
}

static const void *record(const void *target)
{
	return &((const struct hotspot_target *)target)->process;
}

static void version(const void *target, char ret[RUNTIME_VERSION_BYTES])
{
	const struct hotspot_target *t = target;

	if (t->version[0] && t->version[0] < 1000)
		snprintf(ret, RUNTIME_VERSION_BYTES, "%u", t->version[0]);
}

static int read_function(struct memory *m, const void *target, const uint64_t words[2], void *ret)
{
	return hotspot_function_read(m, target, words, ret);
}

static void function_deinit(void *function)
{
	hotspot_function_deinit(function);
}

static size_t function_size(const void *function)
{
	return ((const struct hotspot_function *)function)->n_bytes;
}

static void place(const void *function, uint32_t at, struct runtime_place *ret)
{
	(void)at; /* read for this place */
	*ret = hotspot_function_place(function);
}

/* Blobs and methods are at multiples of 8. */
static bool any_place(const uint64_t words[2], uint64_t ret[2])
{
	ret[0] = words[0] | 1;
	ret[1] = words[1] >> 32 << 32;
	return true;
}

static const struct runtime_reader_kind kind = {
	.name = "java",
	.runtime = FRAME_RUNTIME_HOTSPOT,
	.records = HOTSPOT_PROCESSES_MAX,
	.states = HOTSPOT_OUTCOME_MAX,
	.unreadable = HOTSPOT_UNREADABLE,
	.state_name = hotspot_outcome_name,
	.may_change = may_change,
	.is_expected = is_expected,
	.probe = &hotspot_probe,
	.target_bytes = sizeof(struct hotspot_target),
	.find = find,
	.record = record,
	.version = version,
	.any_place = any_place,
	.function_bytes = sizeof(struct hotspot_function),
	.is_cached = true,
	.read = read_function,
	.function_deinit = function_deinit,
	.function_size = function_size,
	.place = place,
};

static int hotspot_new(const struct runtime_host *host, void **ret)
{
	return runtime_reader_new(&kind, host, ret);
}

const struct runtime runtime_hotspot = {.name = "java", .new = hotspot_new, RUNTIME_READER};
