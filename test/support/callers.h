/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_CALLERS_H
#define PODPROF_TEST_SUPPORT_CALLERS_H

/*
 * The true native stack of a thread that is stepped, instruction by instruction. The truth comes
 * from calls and returns alone: a call leaves the next address on the stack, and frames below the
 * stack pointer are over. x86-64.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/hostwalk.h"

#define CALLERS_MAX 2048

/* A frame that waits for a return. */
struct caller {
	uint64_t pc;	  /* return address */
	uint64_t slot;	  /* address of the return address on the stack */
	uint64_t context; /* 0, or a signal came: where the saved pc is */
};

/* {.tid = TID} is empty. */
struct callers {
	pid_t tid;
	struct caller list[CALLERS_MAX]; /* outermost first */
	size_t n;
	size_t depth; /* the most */
};

/* The word at an address of the thread. */
uint64_t callers_peek(const struct callers *c, uint64_t address);
/* A caller that was there before the first step. */
void callers_push(struct callers *c, uint64_t pc);
/* After one instruction, from @before to @now. */
void callers_follow(struct callers *c, const struct hostwalk_regs *before,
		    const struct hostwalk_regs *now);
/* After a signal's handler was entered, by the kernel. */
void callers_signalled(struct callers *c, const struct hostwalk_regs *now);
/* The word of frame @i, 0 to @c->n, innermost first, as the walker stores it. */
uint64_t callers_word(const struct callers *c, const struct hostwalk_regs *now, size_t i);

#endif
