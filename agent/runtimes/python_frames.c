// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python_frames.h"

#include <string.h>

#include "procmap/memory.h"
#include "runtimes/python_threads.h"

/* The members of a frame, of any release. */
struct raw_frame {
	uint64_t previous;
	uint64_t code;
	uint64_t instr;
	uint32_t copy;
	uint8_t owner;
};

static int read_frame(struct memory *m, const struct python_process *p, uint64_t at,
		      struct raw_frame *ret)
{
	const struct memory_range ranges[] = {
		{at + p->frame_previous, &ret->previous, 8},
		{at + p->frame_code, &ret->code, 8},
		{at + p->frame_instr, &ret->instr, p->instr_is_int ? 4 : 8},
		{at + p->frame_entry, &ret->owner, 1},
		{at + p->frame_copy, &ret->copy, 4},
	};
	const size_t n = p->activation == PYTHON_EACH_FRAME ? 3 : p->code_copies ? 5 : 4;

	*ret = (struct raw_frame){0};
	return python_outcome_of_memory(memory_read_ranges(m, ranges, n));
}

/* The first instruction of what the frame runs: the code's own, or a thread's copy. */
static int read_instructions(struct memory *m, const struct python_process *p, uint64_t code,
			     uint32_t copy, uint64_t *ret)
{
	uint64_t array = 0;
	int r;

	*ret = code + p->code_instructions;
	if (!p->code_copies)
		return 0;
	r = memory_read(m, code + p->code_copies, &array, sizeof(array));
	if (!r)
		r = memory_read(m, array + 8 + 8 * (uint64_t)copy, ret, sizeof(*ret));
	return python_outcome_of_memory(r);
}

static int read_place(struct memory *m, const struct python_process *p, const struct raw_frame *raw,
		      struct python_frame *ret)
{
	const uint64_t code = p->code_tagged ? raw->code & ~PYTHON_CODE_TAG : raw->code;
	uint64_t first = 0;
	int r = 0;

	if (p->code_instructions != PYTHON_NO_OFFSET)
		r = read_instructions(m, p, code, raw->copy, &first);
	if (!r)
		*ret = (struct python_frame){.code = code,
					     .place = (int32_t)(uint32_t)(raw->instr - first)};
	return r;
}

/* The address of the innermost frame; 0: none. */
static int read_first(struct memory *m, const struct python_process *p, uint64_t state,
		      uint64_t *ret)
{
	int r = memory_read(m, state + p->tstate_frame, ret, sizeof(*ret));

	if (!r && *ret && p->cframe_frame != PYTHON_NO_OFFSET)
		r = memory_read(m, *ret + p->cframe_frame, ret, sizeof(*ret));
	return python_outcome_of_memory(r);
}

int python_frames_read(struct memory *m, const struct python_process *process, uint64_t state,
		       size_t max, struct python_frame *ret, size_t *ret_n)
{
	struct raw_frame raw;
	uint64_t at = 0;
	int r = read_first(m, process, state, &at);

	*ret_n = 0;
	/* the interpreter's own frames are not shown, so their number is bounded as well */
	for (size_t i = 0; !r && at && *ret_n < max && i < 2 * max; i++) {
		r = read_frame(m, process, at, &raw);
		if (r)
			break;
		if (process->activation != PYTHON_OWNER || raw.owner < PYTHON_OWNER_LOOP) {
			r = read_place(m, process, &raw, &ret[*ret_n]);
			*ret_n += !r;
		}
		at = raw.previous;
	}
	return r;
}
