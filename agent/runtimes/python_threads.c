// SPDX-License-Identifier: Apache-2.0
/*
 * _PyRuntime has a list of interpreters, newest first, and each interpreter a list of its thread
 * states. A state is one block; its members in use lie within PYTHON_STATE_BYTES.
 */
#include "runtimes/python_threads.h"

#include <string.h>

#include "procmap/memory.h"
#include "runtimes/python_image.h"

/* Bytes of a thread state that are read: up to the thread ids (3.7: 184, 3.15: 192). */
#define PYTHON_STATE_BYTES 256u

int python_outcome_of_memory(int r)
{
	switch (r) {
	case MEMORY_GONE:
		return PYTHON_GONE;
	case MEMORY_DENIED:
		return PYTHON_DENIED;
	case MEMORY_UNMAPPED:
		return PYTHON_UNREADABLE;
	default:
		return r;
	}
}

bool python_is_end(int outcome)
{
	return outcome < 0 || outcome == PYTHON_GONE || outcome == PYTHON_DENIED;
}

int python_read_word(struct memory *m, uint64_t addr, uint64_t *ret)
{
	return python_outcome_of_memory(memory_read(m, addr, ret, sizeof(*ret)));
}

static uint64_t word_of(const uint8_t state[PYTHON_STATE_BYTES], uint16_t offset)
{
	uint64_t word = 0;

	if (offset <= PYTHON_STATE_BYTES - sizeof(word))
		memcpy(&word, state + offset, sizeof(word));
	return word;
}

static int read_states(struct memory *m, const struct python_layout *layout, uint64_t interpreter,
		       bool sub, struct python_threads *ret)
{
	uint8_t state[PYTHON_STATE_BYTES];
	uint64_t at;
	int r = python_read_word(m, interpreter + layout->interpreter_threads, &at);

	for (; !r && at; at = word_of(state, layout->thread_next)) {
		if (ret->n == PYTHON_THREADS_MAX) {
			ret->is_cut = true;
			return 0;
		}
		r = python_outcome_of_memory(memory_read(m, at, state, sizeof(state)));
		if (r)
			break;
		if (word_of(state, layout->thread_interpreter) != interpreter)
			return PYTHON_ODD;
		ret->items[ret->n++] = (struct python_thread){
			.state = at,
			.id = word_of(state, layout->thread_id),
			.native = word_of(state, layout->thread_native),
			.sub = sub,
		};
	}
	return r;
}

int python_threads_read(struct memory *m, const struct python_layout *layout, uint64_t runtime,
			struct python_threads *ret)
{
	uint64_t interpreter, next = 0;
	size_t n = 0;
	int r;

	ret->n = 0;
	ret->is_cut = false;
	r = python_read_word(m, runtime + layout->interpreters, &interpreter);
	for (; !r && interpreter; interpreter = next) {
		if (++n > PYTHON_INTERPRETERS_MAX)
			return PYTHON_ODD;
		r = python_read_word(m, interpreter + layout->interpreter_next, &next);
		/* the first interpreter is the oldest: the last of the list */
		ret->interpreter = interpreter;
		if (!r)
			r = read_states(m, layout, interpreter, next != 0, ret);
	}
	if (!r && !ret->n)
		return PYTHON_NOT_READY;
	return r;
}
