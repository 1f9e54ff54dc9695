// SPDX-License-Identifier: Apache-2.0
/*
 * On x86-64 pthread_self() is the thread pointer. The first words of struct pthread prove it. glibc
 * has the address of the structure in the first and third word. musl has it in the first, and the
 * addresses of the previous and the next thread in the third and fourth: a ring, of the thread
 * itself if it is the only one.
 *
 * On arm64 struct pthread ends at the thread pointer, and its size depends on glibc's release. A
 * list of all threads goes through struct pthread, which is the proof. The word at the thread
 * pointer leads to the thread's vector of modules with variables (dtv). The vector begins with its
 * length, and the variables of the first module are just behind the thread pointer. musl's has no
 * such list and is not supported there.
 */
#include "runtimes/python_block.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "procmap/memory.h"
#include "runtimes/python_image.h"
#include "runtimes/python_threads.h"

/* Bytes of struct pthread that are read on x86-64: glibc's header and first block of keys end at
 * 0x510. */
#define X86_BYTES     0x600u
#define X86_WORDS     (X86_BYTES / 8)
/* Words of struct pthread: its own address, and glibc's second one or musl's neighbours. */
#define X86_TCB	      0
#define X86_SELF      2
#define MUSL_PREVIOUS 2
#define MUSL_NEXT     3

/* glibc on arm64: the word with the next thread of the list, before the one with the previous. */
#define ARM64_LIST	  24
/* Words of struct pthread, which is aligned to 16: 0x740 bytes in glibc 2.36. */
#define ARM64_WORDS_MIN	  0xa0u
/* Words of struct pthread that are read. Reached: `no_state`, native frames only. */
#define ARM64_WORDS_MAX	  0x180u
/* Words there that may lead to the vector; glibc has one or two. Reached: `no_state`. */
#define ARM64_VECTORS_MAX 32
/* Words at the thread pointer that are no variables. */
#define ARM64_HEADER	  2
/* Modules of a program, as the vector's length. Reached: `no_state`. */
#define MODULES_MAX	  (1u << 16)
/* Bytes from the thread pointer to the first module's variables, which are aligned. Reached:
 * `no_state`. */
#define FIRST_MODULE_MAX  (1u << 16)

_Static_assert(X86_WORDS <= PYTHON_BLOCK_WORDS - PYTHON_BLOCK_BELOW, "struct pthread fits");
_Static_assert(ARM64_WORDS_MAX <= PYTHON_BLOCK_BELOW, "and arm64's");

/* ---------------------------------------------------------------- x86-64 */

/* Whether the neighbours in musl's ring of threads name @self. 0, PYTHON_UNREADABLE, -errno. */
static int check_ring(struct memory *m, const uint64_t *pthread, uint64_t self)
{
	uint64_t next = 0, previous = 0;
	int r = python_read_word(m, pthread[MUSL_PREVIOUS] + MUSL_NEXT * 8ull, &next);

	if (!r)
		r = python_read_word(m, pthread[MUSL_NEXT] + MUSL_PREVIOUS * 8ull, &previous);
	if (r)
		return r;
	return next == self && previous == self ? 0 : PYTHON_UNREADABLE;
}

static int read_x86(struct memory *m, uint64_t self, struct python_block *ret)
{
	uint64_t *pthread = ret->words + PYTHON_BLOCK_BELOW, below = PYTHON_BLOCK_BELOW * 8ull;
	size_t n = 0;
	int r;

	ret->keys = (struct python_block_range){PYTHON_BLOCK_BELOW + X86_SELF + 1,
						PYTHON_BLOCK_BELOW + X86_WORDS};
	ret->variables = (struct python_block_range){0, PYTHON_BLOCK_BELOW};
	r = python_outcome_of_memory(memory_read_some(m, self, pthread, X86_BYTES, &n));
	if (r)
		return r;
	if (pthread[X86_TCB] != self || self % 8)
		return PYTHON_UNREADABLE;
	r = check_ring(m, pthread, self);
	if (python_is_end(r) || (r && pthread[X86_SELF] != self))
		return r;
	ret->is_musl = !r;
	/* all of it, or the part in the page of the thread pointer */
	r = memory_read(m, self - below, ret->words, below);
	if (r == MEMORY_UNMAPPED) {
		below = self % MEMORY_PAGE_BYTES;
		memset(ret->words, 0, PYTHON_BLOCK_BELOW * 8ull);
		r = memory_read(m, self - below, pthread - below / 8, below);
	}
	return r == MEMORY_UNMAPPED ? 0 : python_outcome_of_memory(r);
}

/* ---------------------------------------------------------------- arm64 */

/* Whether the neighbours in glibc's list of threads lead back. 0, PYTHON_UNREADABLE, -errno. */
static int check_list(struct memory *m, const uint64_t *pthread, uint64_t self)
{
	const uint64_t list = self + ARM64_LIST * 8ull;
	uint64_t previous = 0, next = 0;
	int r = python_read_word(m, pthread[ARM64_LIST] + 8, &previous);

	if (!r)
		r = python_read_word(m, pthread[ARM64_LIST + 1], &next);
	if (r)
		return r;
	return next == list && previous == list ? 0 : PYTHON_UNREADABLE;
}

/* Whether @pointer is the thread pointer, with @vector in its first word. */
static int check_vector(struct memory *m, uint64_t pointer, uint64_t vector)
{
	uint64_t words[5] = {0}; /* length, -; generation, -; variables of the first module */
	int r = python_outcome_of_memory(memory_read(m, vector - 16, words, sizeof(words)));

	if (r)
		return r;
	return words[0] && words[0] <= MODULES_MAX && words[4] - pointer >= ARM64_HEADER * 8ull &&
			       words[4] - pointer <= FIRST_MODULE_MAX
		       ? 0
		       : PYTHON_UNREADABLE;
}

/* The thread pointer behind struct pthread at @self, of whose words @n are read. */
static int find_pointer(struct memory *m, const uint64_t *pthread, size_t n, uint64_t self,
			uint64_t *ret)
{
	size_t n_tried = 0;
	int r = PYTHON_UNREADABLE;

	for (size_t k = ARM64_WORDS_MIN;
	     k < n && r == PYTHON_UNREADABLE && n_tried < ARM64_VECTORS_MAX; k += 2) {
		if (!pthread[k] || pthread[k] % 8)
			continue;
		n_tried++;
		*ret = self + k * 8;
		r = check_vector(m, *ret, pthread[k]);
	}
	return r;
}

static int read_arm64(struct memory *m, uint64_t self, struct python_block *ret)
{
	uint64_t pthread[ARM64_WORDS_MAX] = {0}, pointer = 0;
	size_t n = 0, n_words;
	int r;

	if (self % 16)
		return PYTHON_UNREADABLE;
	r = python_outcome_of_memory(memory_read_some(m, self, pthread, sizeof(pthread), &n));
	if (!r)
		r = check_list(m, pthread, self);
	if (!r)
		r = find_pointer(m, pthread, n / 8, self, &pointer);
	if (r)
		return r;
	n_words = (pointer - self) / 8;
	memcpy(ret->words + PYTHON_BLOCK_BELOW - n_words, pthread, n_words * 8);
	ret->keys = (struct python_block_range){PYTHON_BLOCK_BELOW - n_words + ARM64_LIST + 2,
						PYTHON_BLOCK_BELOW};
	ret->variables =
		(struct python_block_range){PYTHON_BLOCK_BELOW + ARM64_HEADER, PYTHON_BLOCK_WORDS};
	r = memory_read_some(m, pointer, ret->words + PYTHON_BLOCK_BELOW,
			     (PYTHON_BLOCK_WORDS - PYTHON_BLOCK_BELOW) * 8ull, &n);
	return r == MEMORY_UNMAPPED ? 0 : python_outcome_of_memory(r);
}

int python_block_read(struct memory *m, uint16_t machine, uint64_t self, struct python_block *ret)
{
	*ret = (struct python_block){0};
	switch (machine) {
	case EM_X86_64:
		return read_x86(m, self, ret);
	case EM_AARCH64:
		return read_arm64(m, self, ret);
	default:
		return PYTHON_UNREADABLE;
	}
}
