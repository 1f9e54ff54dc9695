/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOSCHED_H
#define PODPROF_GOHEAP_GOSCHED_H

/* How many goroutines a Go program has, as runtime.NumGoroutine counts them. Since Go 1.17. */

#include <stddef.h>
#include <stdint.h>

struct goruntime;
struct memory;

/* Processors of a program (GOMAXPROCS): as many as the machine has, by default. With more the
 * goroutines are not counted. Reached: its goroutines are not counted. */
#define GOSCHED_PROCS_MAX 1024

/* Kept from read to read of one process; {0} at first. */
struct gosched {
	uint64_t free_at; /* of gFree in a processor; 0: not known */
};

/**
 * gosched_read() - three calls
 *
 * Ended goroutines move between lists while these are read, so that of a program that begins and
 * ends many at the time the number may be off by some, as NumGoroutine's is.
 *
 * Return: 0, an outcome of gototals_read(), -errno.
 */
int gosched_read(const struct goruntime *rt, struct memory *m, struct gosched *s, uint64_t *ret);

#endif
