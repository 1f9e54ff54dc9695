// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python_target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/runtime_files.h"
#include "runtimes/python_process.h"

static int probe(const struct elffile *ef, void *ret)
{
	return python_image_probe(ef, ret);
}

const struct runtime_probe python_probe = {
	.probe = probe,
	.bytes = sizeof(struct python_image),
	.malformed = PYTHON_MALFORMED,
	.gone = PYTHON_GONE,
	.denied = PYTHON_DENIED,
};

_Static_assert((int)RUNTIME_FILES_ABSENT == (int)PYTHON_ABSENT, "outcomes of files");

struct search {
	struct memory *memory;
	struct python_threads *threads;
	struct python_target *ret;
	bool found;
};

static int look_at(void *ctx, const struct runtime_file *file)
{
	struct search *s = ctx;
	struct python_target target = {0};
	int r = file->outcome;

	target.image = *(const struct python_image *)file->image;
	target.bias = file->bias;
	snprintf(target.path, sizeof(target.path), "%s", file->path);
	if (!r)
		r = python_process_attach(s->memory, &target.image, target.bias, &target.process,
					  s->threads);
	if (r <= 0 || !s->found)
		*s->ret = target;
	s->found = true;
	return r;
}

int python_target_find(struct runtime_files *files, const struct root *proc,
		       const struct pid_id *id, struct memory *m, struct python_target *ret,
		       struct python_threads *ret_threads)
{
	_cleanup_(freep) struct python_threads *own = malloc(sizeof(*own));
	struct search s = {.memory = m, .threads = ret_threads ? ret_threads : own, .ret = ret};
	int r, gone;

	*ret = (struct python_target){0};
	if (!own)
		return -ENOMEM;
	r = runtime_files_search(files, proc, id, look_at, &s);
	if (r < 0)
		return r;
	gone = python_outcome_of_memory(memory_check(m));
	return gone ? gone : r;
}
