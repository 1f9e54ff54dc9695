/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOSCHED_H
#define PODPROF_GOHEAP_GOSCHED_H

/* The number of goroutines of a Go program, as runtime.NumGoroutine counts them. Since Go 1.17. */

#include <stddef.h>
#include <stdint.h>

struct goruntime;
struct memory;

/* Processors of a program (GOMAXPROCS), by default as many as the machine has. Reached: its
 * goroutines are not counted. */
#define GOSCHED_PROCS_MAX 1024

/* Kept between the reads of a process; {0} at first. */
struct gosched {
	uint64_t free_at; /* of gFree in a processor; 0: not known */
};

/**
 * gosched_read() - count goroutines, in three calls
 *
 * Ended goroutines move between lists during the read. The number may be slightly off for a program
 * that starts and ends many at that moment, as NumGoroutine's is.
 *
 * Return: 0, an outcome of gototals_read(), -errno.
 */
int gosched_read(const struct goruntime *rt, struct memory *m, struct gosched *s, uint64_t *ret);

#endif
