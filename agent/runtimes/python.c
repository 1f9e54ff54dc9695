// SPDX-License-Identifier: Apache-2.0
/*
 * The reader of CPython: a function is a code object. Its words and the check are described in
 * bpf/shared/python.h.
 */
#include "runtimes/runtimes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/runtime_files.h"
#include "runtimes/python_code.h"
#include "runtimes/python_excerpt.h"
#include "runtimes/python_target.h"
#include "runtimes/python_tasks.h"
#include "runtimes/runtime_reader.h"

static bool may_change(int outcome)
{
	return outcome == PYTHON_NOT_READY || outcome == PYTHON_ODD || outcome == PYTHON_NO_STATE ||
	       outcome == PYTHON_UNREADABLE;
}

static int find(struct runtime_files *files, const struct root *proc, const struct pid_id *id,
		void *ret)
{
	struct process_memory memory = {.fd = -1};
	int r = python_outcome_of_memory(process_memory_init(&memory, proc, id));

	if (!r)
		r = python_target_find(files, proc, id, &memory.memory, ret, NULL);
	process_memory_deinit(&memory);
	return r;
}

/* The same with the tasks of asyncio. */
static int find_tasks(struct runtime_files *files, const struct root *proc, const struct pid_id *id,
		      void *ret)
{
	_cleanup_(freep) struct python_threads *threads = malloc(sizeof(*threads));
	struct process_memory memory = {.fd = -1};
	struct python_target *target = ret;
	int r;

	if (!threads)
		return -ENOMEM;
	r = python_outcome_of_memory(process_memory_init(&memory, proc, id));
	if (!r)
		r = python_target_find(files, proc, id, &memory.memory, target, threads);
	if (!r) {
		target->tasks = python_tasks_find(&memory.memory, &target->image.layout, threads,
						  &target->process.tasks);
		r = python_outcome_of_memory(memory_check(&memory.memory));
	}
	process_memory_deinit(&memory);
	return r;
}

/* A program may import asyncio later. */
static bool lacks_tasks(const void *target)
{
	return may_change(((const struct python_target *)target)->tasks);
}

static const void *record(const void *target)
{
	return &((const struct python_target *)target)->process;
}

static void version(const void *target, char ret[RUNTIME_VERSION_BYTES])
{
	const uint16_t number = ((const struct python_target *)target)->image.layout.version;

	if (number >> 8 == 3)
		snprintf(ret, RUNTIME_VERSION_BYTES, "3.%u", number & 0xff);
}

static bool exe(const void *image, const void *target, void *ret)
{
	return python_excerpt_exe(image, target, ret);
}

static bool excerpt_target(const void *image, uint64_t bias, const uint8_t *bytes, size_t n,
			   void *ret)
{
	return python_excerpt_target(image, bias, bytes, n, ret);
}

static bool excerpt_next(const void *target, const uint8_t *bytes, size_t n, uint64_t *at,
			 uint64_t ret_words[2])
{
	return python_excerpt_next(target, bytes, n, at, ret_words);
}

static int read_code(struct memory *m, const void *target, const uint64_t words[2], void *ret)
{
	const uint32_t check = (uint32_t)(words[1] >> 32);

	return python_code_read(m, &((const struct python_target *)target)->image.layout, words[0],
				&check, ret);
}

static void code_deinit(void *code)
{
	python_code_deinit(code);
}

static size_t code_size(const void *code)
{
	return ((const struct python_code *)code)->n_bytes;
}

static void place(const void *function, uint32_t at, struct runtime_place *ret)
{
	const struct python_code *code = function;

	*ret = (struct runtime_place){
		.function = {.name = code->name,
			     .file = code->file,
			     .start_line = code->first_line > 0 ? (uint32_t)code->first_line : 0},
		.line = python_code_line(code, (int32_t)at),
	};
}

#define KIND                                                                                  \
	.name = "python", .runtime = FRAME_RUNTIME_PYTHON, .records = PYTHON_PROCESSES_MAX,   \
	.states = PYTHON_OUTCOME_MAX, .unreadable = PYTHON_UNREADABLE,                        \
	.state_name = python_outcome_name, .may_change = may_change, .probe = &python_probe,  \
	.target_bytes = sizeof(struct python_target), .record = record, .version = version,   \
	.exe_bytes = sizeof(struct python_exe), .exe = exe, .excerpt_target = excerpt_target, \
	.excerpt_next = excerpt_next, .excerpt_memory = PYTHON_PART_MEMORY,                   \
	.function_bytes = sizeof(struct python_code), .read = read_code,                      \
	.function_deinit = code_deinit, .function_size = code_size, .place = place

static const struct runtime_reader_kind kind = {KIND, .find = find};
static const struct runtime_reader_kind kind_with_tasks = {KIND, .find = find_tasks,
							   .is_partial = lacks_tasks};

static int python_new(const struct runtime_host *host, void **ret)
{
	return runtime_reader_new(host->task_names ? &kind_with_tasks : &kind, host, ret);
}

const struct runtime runtime_python = {
	.name = "python", .new = python_new, .has_excerpts = true, RUNTIME_READER};
