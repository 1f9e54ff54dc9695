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
 * thread pointer. An interpreter makes the key early, so the key is small. The value of a key is at
 * the same offset in each thread. podprof finds the offset by content: it searches each listed
 * thread's block for the address of the thread's state. The first and third words of struct pthread
 * are the address of the structure. These words prove that the listed id is a thread pointer. The
 * variables of 3.15 are searched below the thread pointer in the same way. Waiting threads show the
 * right variable of the two; a process with a single busy thread may get the other.
 *
 * musl keeps the values in an array of its own, and arm64's thread pointer is not pthread_self():
 * such processes are refused (PYTHON_NO_STATE).
 */
#include "runtimes/python_process.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"

/* Threads whose blocks are searched. Reached: the others are not needed. */
#define PYTHON_PROBED_THREADS 16
/* Attempts. A list is torn for some microseconds while a thread begins or ends. */
#define PYTHON_ATTEMPTS	      3
/* Bytes of struct pthread that are searched: header and first block of keys end at 0x510. */
#define PTHREAD_BYTES	      0x600u
#define PTHREAD_WORDS	      (PTHREAD_BYTES / 8)
/* Words of struct pthread with its own address. */
#define PTHREAD_TCB	      0
#define PTHREAD_SELF	      2
/* Bytes of thread-local variables below the thread pointer that are searched. The program's
 * variables are next to the thread pointer, then the variables of the libraries linked to the
 * program. */
#define TLS_BYTES	      4096u
#define TLS_WORDS	      (TLS_BYTES / 8)
/* The first release without a key. */
#define VERSION_OF_VARIABLE   0x030f
/* Bytes of the name of a type, with its NUL. */
#define TYPE_NAME_BYTES	      8

/* ---------------------------------------------------------------- the thread's pointer */

/* Words around a thread pointer: TLS_WORDS below, the others in struct pthread. Zeros where nothing
 * is mapped. */
struct block {
	uint64_t words[TLS_WORDS + PTHREAD_WORDS];
};

/* 0, PYTHON_UNREADABLE for no thread pointer, another outcome, -errno. */
static int read_block(struct memory *m, const struct python_thread *t, struct block *ret)
{
	uint64_t *pthread = ret->words + TLS_WORDS, tls = 0;
	size_t n = 0;
	int r;

	*ret = (struct block){0};
	r = python_outcome_of_memory(memory_read_some(m, t->id, pthread, PTHREAD_BYTES, &n));
	if (r)
		return r;
	if (pthread[PTHREAD_TCB] != t->id || pthread[PTHREAD_SELF] != t->id || t->id % 8)
		return PYTHON_UNREADABLE;
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

/* The word of [first, last) with most threads' states, if most threads have it. */
static bool elect(const unsigned int *votes, size_t first, size_t last, size_t n_blocks,
		  int64_t *ret)
{
	size_t best = first;

	for (size_t k = first; k < last; k++)
		if (votes[k] > votes[best])
			best = k;
	if (!votes[best] || votes[best] <= n_blocks / 2)
		return false;
	*ret = ((int64_t)best - TLS_WORDS) * 8;
	return true;
}

/* The word that holds the thread's state, in most blocks. Some threads have none: a state made for
 * another interpreter, or not yet bound to its thread. */
static int find_state(struct memory *m, const struct python_layout *layout,
		      const struct python_threads *threads, int64_t *ret)
{
	unsigned int votes[TLS_WORDS + PTHREAD_WORDS] = {0};
	struct block block;
	size_t n_blocks = 0;

	for (size_t i = 0; i < threads->n && n_blocks < PYTHON_PROBED_THREADS; i++) {
		const struct python_thread *t = &threads->items[i];
		int r = t->sub ? PYTHON_UNREADABLE : read_block(m, t, &block);

		if (r < 0 || r == PYTHON_GONE || r == PYTHON_DENIED)
			return r;
		if (r)
			continue;
		n_blocks++;
		for (size_t k = 0; k < array_size(votes); k++)
			votes[k] += block.words[k] == t->state;
	}
	if (elect(votes, TLS_WORDS + PTHREAD_SELF + 1, array_size(votes), n_blocks, ret))
		return 0;
	if (layout->version >= VERSION_OF_VARIABLE && elect(votes, 0, TLS_WORDS, n_blocks, ret))
		return 0;
	return PYTHON_NO_STATE;
}

/* ---------------------------------------------------------------- frames */

static int read_word(struct memory *m, uint64_t addr, uint64_t *ret)
{
	return python_outcome_of_memory(memory_read(m, addr, ret, sizeof(*ret)));
}

/* The thread's innermost frame; 0: none. */
static int read_frame(struct memory *m, const struct python_process *p, uint64_t state,
		      uint64_t *ret)
{
	int r = read_word(m, state + p->tstate_frame, ret);

	if (!r && *ret && p->cframe_frame != PYTHON_NO_OFFSET)
		r = read_word(m, *ret + p->cframe_frame, ret);
	return r;
}

/* Whether the object at @object is a code object, by the name of its type. */
static int check_code(struct memory *m, const struct python_layout *layout, uint64_t object)
{
	char name[TYPE_NAME_BYTES];
	uint64_t type, at;
	size_t n;
	int r = read_word(m, object + layout->object_type, &type);

	if (!r)
		r = read_word(m, type + layout->type_name, &at);
	if (!r)
		r = python_outcome_of_memory(memory_read_some(m, at, name, sizeof(name), &n));
	if (r)
		return r;
	return n >= sizeof("code") && memcmp(name, "code", sizeof("code")) == 0 ? 0 : PYTHON_ODD;
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
		r = read_word(m, frame + p->frame_previous, &frame);
	}
	if (r)
		return r;
	if (!frame || owner >= PYTHON_OWNER_LOOP)
		return PYTHON_NOT_READY;
	r = read_word(m, frame + p->frame_code, &code);
	if (!r)
		r = check_code(m, layout, p->code_tagged ? code & ~PYTHON_CODE_TAG : code);
	return r;
}

/* One thread with a frame is enough; a wrong layout fails for all. */
static int check_frames(struct memory *m, const struct python_layout *layout,
			const struct python_threads *threads)
{
	int last = PYTHON_NOT_READY;

	for (size_t i = 0; i < threads->n && i < PYTHON_PROBED_THREADS; i++) {
		int r = check_thread(m, layout, threads->items[i].state);

		if (r <= 0 || r == PYTHON_GONE || r == PYTHON_DENIED)
			return r;
		if (r != PYTHON_NOT_READY)
			last = r;
	}
	return last;
}

/* ---------------------------------------------------------------- attach */

static int attempt(struct memory *m, const struct python_image *image, uint64_t bias,
		   struct python_threads *threads, int64_t *ret_state)
{
	int r = python_threads_read(m, &image->layout, image->runtime + bias, threads);

	if (!r)
		r = check_frames(m, &image->layout, threads);
	if (!r)
		r = find_state(m, &image->layout, threads, ret_state);
	return r;
}

struct python_process python_process_of_image(const struct python_image *image, uint64_t bias,
					      int64_t tstate_at)
{
	struct python_process process = image->layout.process;

	process.tstate_at = tstate_at;
	for (size_t i = 0; i < image->n_loops; i++) {
		process.loops[i][0] = image->loops[i][0] + bias;
		process.loops[i][1] = image->loops[i][1] + bias;
	}
	return process;
}

int python_process_attach(struct memory *m, const struct python_image *image, uint64_t bias,
			  struct python_process *ret, struct python_threads *ret_threads)
{
	int64_t state = 0;
	int r = PYTHON_NO_STATE;

	if (image->machine != EM_X86_64)
		return PYTHON_MACHINE;
	for (int i = 0; i < PYTHON_ATTEMPTS && r > 0 && r != PYTHON_GONE && r != PYTHON_DENIED; i++)
		r = attempt(m, image, bias, ret_threads, &state);
	if (r)
		return r;
	*ret = python_process_of_image(image, bias, state);
	return 0;
}
