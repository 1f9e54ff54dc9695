/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOROUTINES_H
#define PODPROF_GOHEAP_GOROUTINES_H

/*
 * All goroutines of one Go process, read from outside and without stopping it: what each does, and
 * the stacks of those that do not run.
 */

#include <stddef.h>
#include <stdint.h>

struct goruntime;
struct memory;

/* Goroutines that are read; the others are counted. Reached: the command says how many are left
 * out. */
#define GOROUTINES_MAX	     (1u << 18)
/* Bytes of one stack that are read, from its leaf on: what is beyond is missing at the root.
 * Reached: the root is missing. */
#define GOROUTINES_STACK_MAX (64u << 10)

/* As the runtime has it, without its mark for stacks that are being scanned. */
enum goroutine_status {
	GOROUTINE_IDLE = 0,
	GOROUTINE_RUNNABLE = 1,
	GOROUTINE_RUNNING = 2,
	GOROUTINE_SYSCALL = 3,
	GOROUTINE_WAITING = 4,
	GOROUTINE_DEAD = 6,
	GOROUTINE_COPYSTACK = 8,
	GOROUTINE_PREEMPTED = 9,
	GOROUTINE_LEAKED = 10, /* waits, and nobody can wake it; since Go 1.26 */
	GOROUTINE_DEADEXTRA = 11,
	GOROUTINE_STATUS_MAX,
};

/**
 * struct goroutine - one of them, at one moment
 * @wait_reason: of a waiting one, "" where it is not known; borrowed
 * @start_pc: of the function that it began with
 * @go_pc:    where that was asked for; 0 for the runtime's first
 * @pc, @sp:  where it stands, a return address, and its stack pointer there; 0 for one that runs
 * @stack:    @n_stack bytes from @sp on; borrowed
 * @limit:    the stack's end; above @sp + @n_stack if some was not read
 */
struct goroutine {
	uint64_t id;
	enum goroutine_status status;
	const char *wait_reason;
	uint64_t start_pc;
	uint64_t go_pc;
	uint64_t pc;
	uint64_t sp;
	const uint8_t *stack;
	size_t n_stack;
	uint64_t limit;
};

/* Return other than 0 to stop. */
typedef int (*goroutine_fn)(void *ctx, const struct goroutine *g);

/**
 * struct goroutines_stats - what was met
 * @n:          given to the callback
 * @n_changed:  that changed while they were read, and were dropped
 * @n_left_out: above GOROUTINES_MAX
 */
struct goroutines_stats {
	uint64_t n;
	uint64_t n_changed;
	uint64_t n_left_out;
};

/**
 * goroutines_read() - call @fn for each that is not dead
 *
 * Each one is what it was at some moment of the read; not all are of the same moment.
 *
 * Return: 0 (GORUNTIME_OK); GORUNTIME_UNKNOWN_LAYOUT if they cannot be found, or most of them make
 * no sense; _GONE; _DENIED; what @fn returned; -errno.
 */
int goroutines_read(const struct goruntime *rt, struct memory *m, goroutine_fn fn, void *ctx,
		    struct goroutines_stats *ret);

/* "waiting", "runnable", ... */
const char *goroutine_status_name(enum goroutine_status status);

#endif
