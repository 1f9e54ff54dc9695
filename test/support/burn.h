/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_BURN_H
#define PODPROF_TEST_SUPPORT_BURN_H

/*
 * A child process that spends CPU time in functions with known addresses:
 *
 *	burn_outer() -> burn_middle() -> burn_inner()
 *
 * The tests are built with frame pointers, so a stack must show this chain.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum burn_kind {
	BURN_USER,     /* arithmetic in burn_inner() */
	BURN_KERNEL,   /* system calls from burn_inner() */
	BURN_READ,     /* long system calls from there: nearly all of the time is in the kernel */
	BURN_SLEEP,    /* nothing: sleeps of 5 ms, in a system call from burn_inner() */
	BURN_DEEP,     /* as BURN_USER, below 600 calls of burn_deeper() */
	BURN_USUAL,    /* below enough calls for some 32 frames */
	BURN_MANY,     /* a million different stacks in sequence */
	BURN_COLD,     /* some 32 frames of different functions; burn_inner() evicts the caches */
	BURN_COLD_FEW, /* the same with few frames */
};

/* Code of one of the functions; parent and child have the same addresses. */
struct burn_range {
	uint64_t start;
	uint64_t limit;
};

struct burn_range burn_outer_range(void);
struct burn_range burn_middle_range(void);
struct burn_range burn_inner_range(void);
struct burn_range burn_deeper_range(void);

static inline bool burn_in(struct burn_range range, uint64_t pc)
{
	return pc >= range.start && pc < range.limit;
}

/* Fork a child, stopped before it burns; burn_go() continues the child. The child ends with its
 * parent. -errno on failure. */
pid_t burn_start(enum burn_kind kind);
/* As the first process of a new pid namespace. This child cannot stop itself and burns at once. */
pid_t burn_start_pidns(enum burn_kind kind);
void burn_go(pid_t pid);
/* Kill the child and wait. Returns its CPU time in ns. */
uint64_t burn_end(pid_t pid);

#endif
