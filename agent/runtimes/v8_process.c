// SPDX-License-Identifier: Apache-2.0
/*
 * The builtins are in the image. In a large configuration V8 maps them again for each isolate, near
 * the code made at run time, so that calls between the two are short. The walker knows such a
 * mapping by its place in the file.
 */
#include "runtimes/v8_process.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/runtime_files.h"
#include "runtimes/v8_builtins.h"
#include "shared/frame.h"

static int probe(const struct elffile *ef, void *ret)
{
	return v8_image_probe(ef, ret);
}

const struct runtime_probe v8_probe = {
	.probe = probe,
	.bytes = sizeof(struct v8_image),
	.malformed = V8_MALFORMED,
	.gone = V8_GONE,
	.denied = V8_DENIED,
};

_Static_assert((int)RUNTIME_FILES_ABSENT == (int)V8_ABSENT, "outcomes of files");

/* ---------------------------------------------------------------- the record */

static struct v8_process record_of(const struct v8_image *image)
{
	const int32_t *c = image->constants;
	struct v8_process p = {
		.frame_marker = (int16_t)c[V8_FRAME_MARKER],
		.frame_function = (int16_t)c[V8_FRAME_FUNCTION],
		.frame_array = (int16_t)c[V8_FRAME_ARRAY],
		.frame_offset = (int16_t)c[V8_FRAME_OFFSET],
		.function_shared = (uint16_t)c[V8_FUNCTION_SHARED],
		.shared_data = (uint16_t)c[V8_SHARED_DATA],
		.shared_name = (uint16_t)c[V8_SHARED_NAME],
		.shared_script = (uint16_t)c[V8_SHARED_SCRIPT],
		.shared_number = (uint16_t)(c[V8_SHARED_LENGTH] + V8_NUMBER_BEHIND),
		.shared_id = (uint16_t)c[V8_SHARED_ID],
		.script_id = (uint16_t)(c[V8_SCRIPT_LINES] + V8_ID_BEHIND),
		.has_code = image->has_code,
	};

	for (size_t i = 0; i < V8_OTHER_MAX; i++)
		if (image->other_types[i] < V8_FRAME_TYPES)
			p.other_types |= 1ull << image->other_types[i];
	return p;
}

int v8_process_attach(struct memory *m, struct v8_target *ret)
{
	struct v8_process p = record_of(&ret->image);
	uint64_t first;
	uint32_t bytes;
	int r = v8_builtins_find(m, &ret->image, ret->bias, &first, &bytes);

	if (r)
		return r;
	p.builtins[0] = first;
	p.builtins[1] = first + bytes;
	p.copied[0] = first - ret->bias;
	p.copied[1] = first - ret->bias + bytes;
	ret->process = p;
	return 0;
}

/* ---------------------------------------------------------------- finding */

struct search {
	struct memory *memory;
	struct v8_target *ret;
};

static int look_at(void *ctx, const struct runtime_file *file)
{
	struct search *s = ctx;

	*s->ret = (struct v8_target){.bias = file->bias};
	snprintf(s->ret->path, sizeof(s->ret->path), "%s", file->path);
	memcpy(&s->ret->image, file->image, sizeof(s->ret->image));
	return file->outcome ? file->outcome : v8_process_attach(s->memory, s->ret);
}

int v8_target_find(struct runtime_files *files, const struct root *proc, const struct pid_id *id,
		   struct memory *m, struct v8_target *ret)
{
	struct search s = {m, ret};
	int r, gone;

	*ret = (struct v8_target){0};
	r = runtime_files_search(files, proc, id, look_at, &s);
	if (r < 0)
		return r;
	gone = v8_outcome_of_memory(memory_check(m));
	return gone ? gone : r;
}
