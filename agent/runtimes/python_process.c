// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python_process.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/python_way.h"

/* Attempts. A list is torn for some microseconds while a thread begins or ends. */
#define PYTHON_ATTEMPTS 3
/* Slots of the cache of functions that are read, and code objects in these that prove the cache. A
 * program without any import has a few dozen. */
#define COUNT_SLOTS	64
#define COUNT_PROOFS	8
/* Bytes of the name of a type, with its NUL. */
#define TYPE_NAME_BYTES 16

/* ---------------------------------------------------------------- frames */

/* The thread's innermost frame; 0: none. */
static int read_frame(struct memory *m, const struct python_process *p, uint64_t state,
		      uint64_t *ret)
{
	int r = python_read_word(m, state + p->tstate_frame, ret);

	if (!r && *ret && p->cframe_frame != PYTHON_NO_OFFSET)
		r = python_read_word(m, *ret + p->cframe_frame, ret);
	return r;
}

int python_type_check(struct memory *m, const struct python_layout *layout, uint64_t type,
		      const char *name)
{
	const size_t n_name = strlen(name) + 1;
	char text[TYPE_NAME_BYTES];
	uint64_t at;
	size_t n;
	int r = python_read_word(m, type + layout->type_name, &at);

	if (!r)
		r = python_outcome_of_memory(memory_read_some(m, at, text, sizeof(text), &n));
	if (r)
		return r;
	return n >= n_name && memcmp(text, name, n_name) == 0 ? 0 : PYTHON_ODD;
}

int python_object_check(struct memory *m, const struct python_layout *layout, uint64_t object,
			const char *name)
{
	uint64_t type;
	int r = python_read_word(m, object + layout->object_type, &type);

	return r ? r : python_type_check(m, layout, type, name);
}

/* The first frame with a function of one thread. PYTHON_NOT_READY: the thread runs none. */
static int check_thread(struct memory *m, const struct python_layout *layout, uint64_t state)
{
	const struct python_process *p = &layout->process;
	uint64_t frame, code;
	uint8_t owner = 0;
	int r = read_frame(m, p, state, &frame);

	/* the interpreter's own frame comes first for a moment, at the begin of an activation */
	for (int i = 0; !r && frame && p->activation == PYTHON_OWNER && i < 2; i++) {
		r = python_outcome_of_memory(memory_read(m, frame + p->frame_entry, &owner, 1));
		if (r || owner < PYTHON_OWNER_LOOP)
			break;
		r = python_read_word(m, frame + p->frame_previous, &frame);
	}
	if (r)
		return r;
	if (!frame || owner >= PYTHON_OWNER_LOOP)
		return PYTHON_NOT_READY;
	r = python_read_word(m, frame + p->frame_code, &code);
	if (!r)
		r = python_object_check(m, layout, p->code_tagged ? code & ~PYTHON_CODE_TAG : code,
					"code");
	return r;
}

/* One thread with a frame is enough; a wrong layout fails for all. */
static int check_frames(struct memory *m, const struct python_layout *layout,
			const struct python_threads *threads)
{
	int last = PYTHON_NOT_READY;

	for (size_t i = 0; i < threads->n && i < PYTHON_PROBED_THREADS; i++) {
		int r = check_thread(m, layout, threads->items[i].state);

		if (!r || python_is_end(r))
			return r;
		if (r != PYTHON_NOT_READY)
			last = r;
	}
	return last;
}

/* ---------------------------------------------------------------- the count of code objects */

/* Whether the code object in @slot has this number, of those below @count. */
static int check_slot(struct memory *m, const struct python_layout *layout, uint64_t code,
		      size_t slot, uint32_t count)
{
	const uint64_t at = code + layout->process.code_first_line + PYTHON_NUMBER_BEHIND_LINE;
	uint32_t number;
	int r = python_outcome_of_memory(memory_read(m, at, &number, sizeof(number)));

	if (r)
		return r;
	return number % PYTHON_CACHE_SLOTS == slot && number < count ? 0 : PYTHON_ODD;
}

/* Whether the counter is at @at: the cache behind it has code objects in the slots of their
 * numbers. */
static int check_count(struct memory *m, const struct python_layout *layout, uint64_t at)
{
	struct {
		uint64_t count;
		uint64_t slots[COUNT_SLOTS][2];
	} cache;
	_Static_assert(offsetof(__typeof__(cache), slots) == PYTHON_CACHE_AT, "in memory");
	size_t n = 0;
	int r = python_outcome_of_memory(memory_read(m, at, &cache, sizeof(cache)));

	for (size_t i = 0; !r && i < COUNT_SLOTS && n < COUNT_PROOFS; i++) {
		if (!cache.slots[i][1])
			continue;
		r = check_slot(m, layout, cache.slots[i][1], i, (uint32_t)cache.count);
		n++;
	}
	if (r)
		return r;
	return n == COUNT_PROOFS ? 0 : PYTHON_ODD;
}

/* Without a proof, the walker reads each code object. */
static int find_count(struct memory *m, const struct python_layout *layout, uint64_t interpreter,
		      struct python_process *process)
{
	const uint64_t at = interpreter + layout->code_count;
	int r;

	if (!layout->code_count || at % sizeof(uint64_t) ||
	    layout->thread_interpreter != PYTHON_THREAD_INTERPRETER)
		return 0;
	r = check_count(m, layout, at);
	if (r == 0) {
		process->interpreter = interpreter;
		process->code_count = at;
	}
	return r < 0 ? r : 0;
}

/* ---------------------------------------------------------------- attach */

static int attempt(struct memory *m, const struct python_image *image, uint64_t bias,
		   struct python_threads *threads, struct python_way *ret_way)
{
	int r = python_threads_read(m, &image->layout, image->runtime + bias, threads);

	if (!r)
		r = check_frames(m, &image->layout, threads);
	if (!r)
		r = python_way_find(m, image->machine, &image->layout, threads, ret_way);
	return r;
}

struct python_process python_process_of_image(const struct python_image *image, uint64_t bias,
					      struct python_way way)
{
	struct python_process process = image->layout.process;

	process.way = way;
	for (size_t i = 0; i < image->n_loops; i++) {
		process.loops[i][0] = image->loops[i][0] + bias;
		process.loops[i][1] = image->loops[i][1] + bias;
	}
	return process;
}

int python_process_attach(struct memory *m, const struct python_image *image, uint64_t bias,
			  struct python_process *ret, struct python_threads *ret_threads)
{
	struct python_way way = {0};
	int r = PYTHON_NO_STATE;

	if (image->machine != EM_X86_64 && image->machine != EM_AARCH64)
		return PYTHON_MACHINE;
	for (int i = 0; i < PYTHON_ATTEMPTS && r && !python_is_end(r); i++)
		r = attempt(m, image, bias, ret_threads, &way);
	if (r)
		return r;
	*ret = python_process_of_image(image, bias, way);
	return find_count(m, &image->layout, ret_threads->interpreter, ret);
}
