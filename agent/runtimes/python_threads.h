/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_PYTHON_THREADS_H
#define PODPROF_RUNTIMES_PYTHON_THREADS_H

/* The thread states of a process with CPython, from the interpreters' lists. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/python_layout.h"

struct memory;

/* Interpreters of a process: the first and its subinterpreters. Reached: `odd`. */
#define PYTHON_INTERPRETERS_MAX 256
/* Thread states of a process. Reached: the others are not listed. */
#define PYTHON_THREADS_MAX	1024
/* Threads whose frames and blocks are read to verify a process. Reached: the others are not needed.
 */
#define PYTHON_PROBED_THREADS	16

/**
 * struct python_thread - a thread state
 * @state:  its address
 * @id:     pthread_self(); on x86-64 the thread pointer
 * @native: the kernel's thread id in the process's PID namespace; 0: not known
 * @sub:    of a subinterpreter
 */
struct python_thread {
	uint64_t state;
	uint64_t id;
	uint64_t native;
	bool sub;
};

struct python_threads {
	struct python_thread items[PYTHON_THREADS_MAX];
	size_t n;
	bool is_cut;
	uint64_t interpreter; /* the first one */
};

/**
 * python_threads_read() - list the thread states
 * @runtime: address of python_image.runtime in the process
 *
 * The process runs meanwhile: a torn list is PYTHON_ODD or PYTHON_UNREADABLE, and the caller tries
 * again. Cyclic lists end at the ceilings.
 *
 * Return: 0; PYTHON_NOT_READY without threads; PYTHON_ODD; PYTHON_UNREADABLE; PYTHON_GONE;
 * PYTHON_DENIED; -errno.
 */
int python_threads_read(struct memory *m, const struct python_layout *layout, uint64_t runtime,
			struct python_threads *ret);

/* enum python_outcome of a memory_*() result. */
int python_outcome_of_memory(int r);
/* Whether no further read of the process can succeed: the outcome is its own, or -errno. */
bool python_is_end(int outcome);
/* The word at @addr. 0; an outcome of the process; -errno. */
int python_read_word(struct memory *m, uint64_t addr, uint64_t *ret);

#endif
