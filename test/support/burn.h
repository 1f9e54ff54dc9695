/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_BURN_H
#define PODPROF_TEST_SUPPORT_BURN_H

/*
 * A child process that spends CPU time in functions whose places are known:
 *
 *	burn_outer() -> burn_middle() -> burn_inner()
 *
 * The tests are built with frame pointers, so that is what a stack must show.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum burn_kind {
	BURN_USER,   /* arithmetic in burn_inner() */
	BURN_KERNEL, /* system calls from burn_inner() */
	BURN_SLEEP,  /* nothing: sleeps of 5 ms, in a system call from burn_inner() */
	BURN_DEEP,   /* as BURN_USER, below 600 calls of burn_deeper() */
	BURN_USUAL,  /* below so many that there are some 32 frames */
	BURN_MANY,   /* a million different stacks, one after the other */
};

/* Code of one of the functions; in the child it is at the same place as here. */
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

/* Fork a child that is stopped before it burns; burn_go() lets it. It ends by itself when its
 * parent does. -errno if it cannot be had. */
pid_t burn_start(enum burn_kind kind);
/* As the first process of a new pid namespace, which cannot stop itself: it burns at once. */
pid_t burn_start_pidns(enum burn_kind kind);
void burn_go(pid_t pid);
/* Kill it and wait. Its CPU time in ns. */
uint64_t burn_end(pid_t pid);

#endif
