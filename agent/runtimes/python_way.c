// SPDX-License-Identifier: Apache-2.0
/*
 * The pointer to the state of the running thread. The interpreter stores the pointer in several
 * places:
 *
 * - in the thread-local variable _Py_tss_tstate (3.12 and later), which is NULL while the thread
 *   waits without the lock of the interpreter: the frames of all waits would be missing;
 * - to 3.14 under a key of pthread_setspecific() (autoTSSkey), as long as the thread lives;
 * - in 3.15 in a second thread-local variable, as long as the thread lives.
 *
 * glibc has the values of the first 32 keys in struct pthread itself. musl has the values of all
 * keys in an array for each thread, and a pointer to the array in struct pthread. An interpreter
 * makes the key early, so the key is small. The value of a key is at the same offset in each
 * thread, of the block or of the array. podprof finds the offsets by content: it searches each
 * listed thread's block, and the arrays that words of the block may lead to, for the address of the
 * thread's state. The variables of 3.15 are searched on the other side of the thread pointer in the
 * same way. Waiting threads show the right variable of the two; a process with a single busy thread
 * may get the other.
 */
#include "runtimes/python_way.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/python_block.h"
#include "runtimes/python_image.h"

/* musl's words that may lead to the array: the array's is the 17th in 1.2, the 18th in 1.1. */
#define MUSL_ARRAY_FIRST    8
#define MUSL_ARRAY_LIMIT    32
#define MUSL_ARRAYS	    (MUSL_ARRAY_LIMIT - MUSL_ARRAY_FIRST)
/* Values in musl's array: PTHREAD_KEYS_MAX. */
#define MUSL_KEYS	    128
/* The first release without a key. */
#define VERSION_OF_VARIABLE 0x030f

/* How many blocks have their thread's state in a word, or in a word of an array; and where the
 * blocks have keys and variables. */
struct votes {
	uint8_t words[PYTHON_BLOCK_WORDS];
	uint8_t slots[MUSL_KEYS][MUSL_ARRAYS];
	struct python_block_range keys, variables;
	unsigned int n_blocks;
};

/* ---------------------------------------------------------------- votes */

/* The arrays that musl's words may lead to. */
static int vote_arrays(struct memory *m, const struct python_block *b, uint64_t state,
		       struct votes *v)
{
	const uint64_t *pthread = b->words + PYTHON_BLOCK_BELOW;

	for (size_t i = 0; i < MUSL_ARRAYS; i++) {
		uint64_t array[MUSL_KEYS] = {0};
		const uint64_t at = pthread[MUSL_ARRAY_FIRST + i];
		size_t n = 0;
		int r;

		if (!at || at % 8)
			continue;
		r = python_outcome_of_memory(memory_read_some(m, at, array, sizeof(array), &n));
		if (python_is_end(r))
			return r;
		for (size_t k = 0; !r && k < n / 8; k++)
			v->slots[k][i] += array[k] == state;
	}
	return 0;
}

static int vote(struct memory *m, uint16_t machine, const struct python_thread *t, struct votes *v)
{
	struct python_block block;
	int r = t->sub ? PYTHON_UNREADABLE : python_block_read(m, machine, t->id, &block);

	if (r)
		return python_is_end(r) ? r : 0;
	v->n_blocks++;
	v->keys = block.keys;
	v->variables = block.variables;
	for (size_t k = 0; k < array_size(v->words); k++)
		v->words[k] += block.words[k] == t->state;
	return block.is_musl ? vote_arrays(m, &block, t->state, v) : 0;
}

/* The word of @range with most threads' states, if most threads have it. */
static bool elect_word(const struct votes *v, const struct python_block_range *range,
		       struct python_way *ret)
{
	size_t best = range->first;

	for (size_t k = range->first; k < range->limit; k++)
		if (v->words[k] > v->words[best])
			best = k;
	if (!v->words[best] || v->words[best] <= v->n_blocks / 2)
		return false;
	*ret = (struct python_way){.at = ((int32_t)best - (int32_t)PYTHON_BLOCK_BELOW) * 8};
	return true;
}

/* Of equal ones the smallest offset: keys are small, and a word that leads elsewhere has its bytes
 * before the array. */
static bool elect_slot(const struct votes *v, struct python_way *ret)
{
	unsigned int most = 0;

	for (size_t k = 0; k < MUSL_KEYS; k++)
		for (size_t i = 0; i < MUSL_ARRAYS; i++)
			if (v->slots[k][i] > most) {
				most = v->slots[k][i];
				*ret = (struct python_way){
					.at = (int32_t)(MUSL_ARRAY_FIRST + i) * 8,
					.in_array = 1,
					.slot = (uint16_t)(k * 8),
				};
			}
	return most > v->n_blocks / 2;
}

/* Some threads have none: a state made for another interpreter, or not yet bound to its thread. */
int python_way_find(struct memory *m, uint16_t machine, const struct python_layout *layout,
		    const struct python_threads *threads, struct python_way *ret)
{
	struct votes v = {0};
	struct python_way way;

	for (size_t i = 0; i < threads->n && v.n_blocks < PYTHON_PROBED_THREADS; i++) {
		int r = vote(m, machine, &threads->items[i], &v);

		if (r)
			return r;
	}
	/* musl has the array of a thread, not of the first one, right behind the block */
	if (elect_slot(&v, &way) || elect_word(&v, &v.keys, &way) ||
	    (layout->version >= VERSION_OF_VARIABLE && elect_word(&v, &v.variables, &way))) {
		*ret = way;
		return 0;
	}
	return PYTHON_NO_STATE;
}
