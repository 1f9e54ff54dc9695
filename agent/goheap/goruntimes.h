/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GORUNTIMES_H
#define PODPROF_GOHEAP_GORUNTIMES_H

/*
 * All Go runtimes of a process: of its executable, and of each library in it that is written in Go
 * (-buildmode=c-shared), which has one of its own.
 */

#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "goheap/goruntime.h"

struct goimages;
struct memory;
struct root;

/* Runtimes of one process that are read. Reached:
 * `podprof_go_heap_reads_total{outcome="processes_over_limit"}`: the others are not read. */
#define GORUNTIMES_MAX 8

/**
 * struct goruntimes - what was found
 * @items:      the executable's first, then by their addresses
 * @n_left_out: above GORUNTIMES_MAX
 * @mappings:   of the process's code, as one number: another one when a library has come or gone
 */
struct goruntimes {
	struct goruntime items[GORUNTIMES_MAX];
	size_t n;
	size_t n_left_out;
	uint64_t mappings;
};

/**
 * goruntimes_find() - look at a process's mappings
 * @m:     its memory; NULL where that may not be read, and then nothing is certain
 * @known: @mappings of an earlier look: if it is the same, nothing else is done; 0 for the first
 * @ret:   set where the state says that there is a runtime, or that nothing has changed
 *
 * Return: GORUNTIME_OK if one of them can be read; _UNKNOWN_LAYOUT if none of those there are;
 * _NO_RUNTIME, _GONE, _DENIED; GORUNTIMES_UNCHANGED; -errno.
 */
int goruntimes_find(struct goimages *images, const struct root *proc, const struct pid_id *id,
		    struct memory *m, uint64_t known, struct goruntimes *ret);
#define GORUNTIMES_UNCHANGED GORUNTIME_STATE_MAX

/* The one that is meant where there can be only one: the first that can be read, else the first.
 * NULL if there is none. */
const struct goruntime *goruntimes_first(const struct goruntimes *list);

#endif
