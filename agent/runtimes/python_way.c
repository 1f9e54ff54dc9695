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
 * glibc has the values of the first 32 keys in struct pthread itself, which on x86-64 begins at the
 * thread pointer. musl has the values of all keys in an array for each thread, and a pointer to the
 * array in struct pthread. An interpreter makes the key early, so the key is small. The value of a
 * key is at the same offset in each thread, of the block or of the array. podprof finds the offsets
 * by content: it searches each listed thread's block, and the arrays that words of the block may
 * lead to, for the address of the thread's state. The variables of 3.15 are searched below the
 * thread pointer in the same way. Waiting threads show the right variable of the two; a process
 * with a single busy thread may get the other.
 *
 * The first words of struct pthread prove that the listed id is a thread pointer. glibc has the
 * address of the structure in the first and third word. musl has it in the first, and the addresses
 * of the previous and the next thread in the third and fourth: a ring, of the thread itself if it
 * is the only one.
 *
 * arm64's thread pointer is not pthread_self(): the caller refuses such processes.
 */
#include "runtimes/python_way.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/python_image.h"

/* Bytes of struct pthread that are searched: glibc's header and first block of keys end at 0x510.
 */
#define PTHREAD_BYTES	    0x600u
#define PTHREAD_WORDS	    (PTHREAD_BYTES / 8)
/* Words of struct pthread: its own address, and glibc's second one or musl's neighbours. */
#define PTHREAD_TCB	    0
#define PTHREAD_SELF	    2
#define MUSL_PREVIOUS	    2
#define MUSL_NEXT	    3
/* Bytes of thread-local variables below the thread pointer that are searched. The program's
 * variables are next to the thread pointer, then the variables of the libraries linked to the
 * program. */
#define TLS_BYTES	    4096u
#define TLS_WORDS	    (TLS_BYTES / 8)
/* musl's words that may lead to the array: the array's is the 17th in 1.2, the 18th in 1.1. */
#define MUSL_ARRAY_FIRST    8
#define MUSL_ARRAY_LIMIT    32
#define MUSL_ARRAYS	    (MUSL_ARRAY_LIMIT - MUSL_ARRAY_FIRST)
/* Values in musl's array: PTHREAD_KEYS_MAX. */
#define MUSL_KEYS	    128
/* The first release without a key. */
#define VERSION_OF_VARIABLE 0x030f

/* Words around a thread pointer: TLS_WORDS below, the others in struct pthread. Zeros where nothing
 * is mapped. */
struct block {
	uint64_t words[TLS_WORDS + PTHREAD_WORDS];
	bool is_musl;
};

/* How many blocks have their thread's state in a word, or in a word of an array. */
struct votes {
	uint8_t words[TLS_WORDS + PTHREAD_WORDS];
	uint8_t slots[MUSL_KEYS][MUSL_ARRAYS];
	unsigned int n_blocks;
};

static bool is_end(int r)
{
	return r < 0 || r == PYTHON_GONE || r == PYTHON_DENIED;
}

/* ---------------------------------------------------------------- blocks */

static int read_word(struct memory *m, uint64_t addr, uint64_t *ret)
{
	return python_outcome_of_memory(memory_read(m, addr, ret, sizeof(*ret)));
}

/* Whether the neighbours in musl's ring of threads name @self. 0, PYTHON_UNREADABLE, -errno. */
static int check_ring(struct memory *m, const uint64_t *pthread, uint64_t self)
{
	uint64_t next = 0, previous = 0;
	int r = read_word(m, pthread[MUSL_PREVIOUS] + MUSL_NEXT * 8ull, &next);

	if (!r)
		r = read_word(m, pthread[MUSL_NEXT] + MUSL_PREVIOUS * 8ull, &previous);
	if (r)
		return r;
	return next == self && previous == self ? 0 : PYTHON_UNREADABLE;
}

/* 0; PYTHON_UNREADABLE for no thread pointer; another outcome; -errno. */
static int read_block(struct memory *m, const struct python_thread *t, struct block *ret)
{
	uint64_t *pthread = ret->words + TLS_WORDS, tls = 0;
	size_t n = 0;
	int r;

	*ret = (struct block){0};
	r = python_outcome_of_memory(memory_read_some(m, t->id, pthread, PTHREAD_BYTES, &n));
	if (r)
		return r;
	if (pthread[PTHREAD_TCB] != t->id || t->id % 8)
		return PYTHON_UNREADABLE;
	r = check_ring(m, pthread, t->id);
	if (is_end(r) || (r && pthread[PTHREAD_SELF] != t->id))
		return r;
	ret->is_musl = !r;
	/* all of it, or the part in the page of the thread pointer */
	tls = TLS_BYTES;
	r = memory_read(m, t->id - tls, ret->words, tls);
	if (r == MEMORY_UNMAPPED) {
		tls = t->id % MEMORY_PAGE_BYTES;
		memset(ret->words, 0, TLS_BYTES);
		r = memory_read(m, t->id - tls, ret->words + TLS_WORDS - tls / 8, tls);
	}
	return r == MEMORY_UNMAPPED ? 0 : python_outcome_of_memory(r);
}

/* ---------------------------------------------------------------- votes */

/* The arrays that musl's words may lead to. */
static int vote_arrays(struct memory *m, const struct block *b, uint64_t state, struct votes *v)
{
	const uint64_t *pthread = b->words + TLS_WORDS;

	for (size_t i = 0; i < MUSL_ARRAYS; i++) {
		uint64_t array[MUSL_KEYS] = {0};
		const uint64_t at = pthread[MUSL_ARRAY_FIRST + i];
		size_t n = 0;
		int r;

		if (!at || at % 8)
			continue;
		r = python_outcome_of_memory(memory_read_some(m, at, array, sizeof(array), &n));
		if (is_end(r))
			return r;
		for (size_t k = 0; !r && k < n / 8; k++)
			v->slots[k][i] += array[k] == state;
	}
	return 0;
}

static int vote(struct memory *m, const struct python_thread *t, struct votes *v)
{
	struct block block;
	int r = t->sub ? PYTHON_UNREADABLE : read_block(m, t, &block);

	if (r)
		return is_end(r) ? r : 0;
	v->n_blocks++;
	for (size_t k = 0; k < array_size(v->words); k++)
		v->words[k] += block.words[k] == t->state;
	return block.is_musl ? vote_arrays(m, &block, t->state, v) : 0;
}

/* The word of [first, last) with most threads' states, if most threads have it. */
static bool elect_word(const struct votes *v, size_t first, size_t last, struct python_way *ret)
{
	size_t best = first;

	for (size_t k = first; k < last; k++)
		if (v->words[k] > v->words[best])
			best = k;
	if (!v->words[best] || v->words[best] <= v->n_blocks / 2)
		return false;
	*ret = (struct python_way){.at = ((int32_t)best - (int32_t)TLS_WORDS) * 8};
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
int python_way_find(struct memory *m, const struct python_layout *layout,
		    const struct python_threads *threads, struct python_way *ret)
{
	struct votes v = {0};
	struct python_way way;

	for (size_t i = 0; i < threads->n && v.n_blocks < PYTHON_PROBED_THREADS; i++) {
		int r = vote(m, &threads->items[i], &v);

		if (r)
			return r;
	}
	/* musl has the array of a thread, not of the first one, right behind the block */
	if (elect_slot(&v, &way) ||
	    elect_word(&v, TLS_WORDS + PTHREAD_SELF + 1, array_size(v.words), &way) ||
	    (layout->version >= VERSION_OF_VARIABLE && elect_word(&v, 0, TLS_WORDS, &way))) {
		*ret = way;
		return 0;
	}
	return PYTHON_NO_STATE;
}
