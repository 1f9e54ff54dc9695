// SPDX-License-Identifier: Apache-2.0
/*
 * The reader of V8. A function is a SharedFunctionInfo; bpf/shared/v8.h describes the words and the
 * check of its frames. In profiles the runtime is "v8".
 */
#include "runtimes/runtimes.h"

#include <stdio.h>

#include "base/nsec.h"
#include "procmap/memory.h"
#include "runtimes/runtime_files.h"
#include "runtimes/runtime_reader.h"
#include "runtimes/v8_function.h"
#include "runtimes/v8_places.h"
#include "runtimes/v8_process.h"

/* As long as this, code can have the functions that were inlined in earlier code at its address. */
#define V8_PROOF_NS (5 * NSEC_PER_SEC)

static bool may_change(int outcome)
{
	return outcome == V8_NOT_READY || outcome == V8_BUILTINS_UNKNOWN || outcome == V8_ODD ||
	       outcome == V8_UNREADABLE;
}

/* The machine is in the program itself. */
static bool is_expected(int outcome)
{
	return outcome == V8_NOT_READY;
}

static int find(struct runtime_files *files, const struct root *proc, const struct pid_id *id,
		void *ret)
{
	struct process_memory memory = {.fd = -1};
	int r = v8_outcome_of_memory(process_memory_init(&memory, proc, id));

	if (!r)
		r = v8_target_find(files, proc, id, &memory.memory, ret);
	process_memory_deinit(&memory);
	return r;
}

static const void *record(const void *target)
{
	return &((const struct v8_target *)target)->process;
}

static void version(const void *target, char ret[RUNTIME_VERSION_BYTES])
{
	const struct v8_target *t = target;
	const uint32_t *v = t->image.version;

	if (v[0] && v[0] < 1000 && v[1] < 1000)
		snprintf(ret, RUNTIME_VERSION_BYTES, "%u.%u", v[0], v[1]);
}

static int read_function(struct memory *m, const void *target, const uint64_t words[2], void *ret)
{
	return v8_function_read(m, target, words, ret);
}

static void function_deinit(void *function)
{
	v8_function_deinit(function);
}

static size_t function_size(const void *function)
{
	const struct v8_function *f = function;

	return f->n_bytes + f->n_places * sizeof(struct v8_place);
}

static void proof(const void *function, struct runtime_proof *ret)
{
	*ret = ((const struct v8_function *)function)->proof;
}

static void place(const void *function, uint32_t at, struct runtime_place *ret)
{
	*ret = v8_function_place(function, at);
}

/* The functions inlined at an address are that address's own. No code is at 0. */
static bool any_place(const uint64_t words[2], uint64_t ret[2])
{
	ret[0] = words[0];
	ret[1] = words[1] & ~(V8_PC_LIMIT - 1);
	return words[0] & V8_COMPILED;
}

static const struct runtime_reader_kind kind = {
	.name = "v8",
	.runtime = FRAME_RUNTIME_V8,
	.records = V8_PROCESSES_MAX,
	.states = V8_OUTCOME_MAX,
	.unreadable = V8_UNREADABLE,
	.state_name = v8_outcome_name,
	.may_change = may_change,
	.is_expected = is_expected,
	.probe = &v8_probe,
	.target_bytes = sizeof(struct v8_target),
	.find = find,
	.record = record,
	.version = version,
	.any_place = any_place,
	.function_bytes = sizeof(struct v8_function),
	.is_cached = true,
	.read = read_function,
	.function_deinit = function_deinit,
	.function_size = function_size,
	.proof = proof,
	.proof_ns = V8_PROOF_NS,
	.place = place,
};

static int v8_new(const struct runtime_host *host, void **ret)
{
	return runtime_reader_new(&kind, host, ret);
}

const struct runtime runtime_v8 = {.name = "v8", .new = v8_new, RUNTIME_READER};
