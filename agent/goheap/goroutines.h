/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOROUTINES_H
#define PODPROF_GOHEAP_GOROUTINES_H

/*
 * All goroutines of a Go process, read from outside without stopping it: the state of each
 * goroutine, and the stacks of those that do not run.
 */

#include <stddef.h>
#include <stdint.h>

struct goruntime;
struct memory;

/* Goroutines read; the rest is counted. Reached: the command prints the number of omitted
 * goroutines. */
#define GOROUTINES_MAX	     (1u << 18)
/* Bytes read of a stack, from the leaf on. Reached: the root end of the stack is missing. */
#define GOROUTINES_STACK_MAX (64u << 10)
/* Bytes read of all stacks: 4 KiB for each of GOROUTINES_MAX, and most stacks have less. All
 * pointers may lead to one stack of GOROUTINES_STACK_MAX. Reached: as GOROUTINES_MAX. */
#define GOROUTINES_BYTES_MAX (1ull << 30)

/* As in the runtime, without the mark for stacks under scan. */
enum goroutine_status {
	GOROUTINE_IDLE = 0,
	GOROUTINE_RUNNABLE = 1,
	GOROUTINE_RUNNING = 2,
	GOROUTINE_SYSCALL = 3,
	GOROUTINE_WAITING = 4,
	GOROUTINE_DEAD = 6,
	GOROUTINE_COPYSTACK = 8,
	GOROUTINE_PREEMPTED = 9,
	GOROUTINE_LEAKED = 10, /* waits forever, because nothing can wake it; since Go 1.26 */
	GOROUTINE_DEADEXTRA = 11,
	GOROUTINE_STATUS_MAX,
};

/**
 * struct goroutine - a goroutine at one moment
 * @wait_reason: of a waiting goroutine, "" if unknown; borrowed
 * @start_pc: of the goroutine's first function
 * @go_pc: of its `go` statement; 0 for the runtime's first goroutine
 * @pc, @sp: present return address and stack pointer; 0 for a running goroutine
 * @stack: @n_stack bytes from @sp on; borrowed
 * @limit: end of the stack; above @sp + @n_stack if a part was not read
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
 * struct goroutines_stats - counts of one read
 * @n:          passed to the callback
 * @n_changed:  dropped, because they changed during the read
 * @n_left_out: above GOROUTINES_MAX or GOROUTINES_BYTES_MAX
 */
struct goroutines_stats {
	uint64_t n;
	uint64_t n_changed;
	uint64_t n_left_out;
};

/**
 * goroutines_read() - call @fn for each goroutine except dead ones
 *
 * Each goroutine is shown as of some moment of the read, and these moments differ.
 *
 * Return: 0 (GORUNTIME_OK); GORUNTIME_UNKNOWN_LAYOUT if the goroutines were not found or most of
 * them are implausible; _GONE; _DENIED; the result of @fn other than 0; -errno.
 */
int goroutines_read(const struct goruntime *rt, struct memory *m, goroutine_fn fn, void *ctx,
		    struct goroutines_stats *ret);

/* "waiting", "runnable", ... */
const char *goroutine_status_name(enum goroutine_status status);

#endif
