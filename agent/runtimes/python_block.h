/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_BLOCK_H
#define PODPROF_RUNTIMES_PYTHON_BLOCK_H

/* The memory around a thread's thread pointer: struct pthread, and thread-local variables. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory;

/* Words below the thread pointer, and all. On x86-64 struct pthread is above it, and the variables
 * are below; on arm64 it is the other way round. The program's variables are next to the thread
 * pointer, then the variables of the libraries linked to the program. */
#define PYTHON_BLOCK_BELOW 512u
#define PYTHON_BLOCK_WORDS (PYTHON_BLOCK_BELOW + 512u)

/* Of words: [first, limit). */
struct python_block_range {
	size_t first;
	size_t limit;
};

/**
 * struct python_block - of one thread
 * @words:     zeros where nothing is mapped
 * @keys:      words that may be values of pthread keys
 * @variables: words of thread-local variables
 * @is_musl:   the values are in an array, and a word of @keys leads to it
 */
struct python_block {
	uint64_t words[PYTHON_BLOCK_WORDS];
	struct python_block_range keys, variables;
	bool is_musl;
};

/**
 * python_block_read() - read the block of a thread
 * @machine: EM_X86_64 or EM_AARCH64; another one has no block
 * @self:    pthread_self()
 *
 * Return: 0; PYTHON_UNREADABLE if @self is no thread of glibc or, on x86-64, musl; PYTHON_GONE;
 * PYTHON_DENIED; -errno.
 */
int python_block_read(struct memory *m, uint16_t machine, uint64_t self, struct python_block *ret);

#endif
