/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GORUNTIMES_H
#define PODPROF_GOHEAP_GORUNTIMES_H

/*
 * All Go runtimes of a process: the executable's, and one in each Go library (-buildmode=c-shared).
 */

#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "goheap/goruntime.h"

struct goimages;
struct memory;
struct root;

/* Runtimes read of a process. Reached:
 * `podprof_go_heap_reads_total{outcome="processes_over_limit"}`: the others are not read. */
#define GORUNTIMES_MAX 8

/**
 * struct goruntimes - the runtimes of a process
 * @items:      the executable's first, then by address
 * @n_left_out: above GORUNTIMES_MAX
 * @mappings:   a checksum of the process's code mappings; changes when a library is loaded or
 *              unloaded; 0 if some files are to be read in a later round (GOIMAGES_WORK)
 */
struct goruntimes {
	struct goruntime items[GORUNTIMES_MAX];
	size_t n;
	size_t n_left_out;
	uint64_t mappings;
};

/**
 * goruntimes_find() - look at a process's mappings
 * @m:     its memory; NULL if reading is not allowed, and then no runtime is certain
 * @known: @mappings of an earlier look, 0 for the first: if unchanged, the call does nothing else
 * @ret:   set if there is a runtime, or if nothing has changed
 *
 * Return: GORUNTIME_OK with a readable runtime; _UNKNOWN_LAYOUT with unreadable runtimes
 * only; _TOO_LARGE if a file takes too much work, now or at all, and the others have no runtime;
 * _NO_RUNTIME, _GONE, _DENIED; GORUNTIMES_UNCHANGED; -errno.
 */
int goruntimes_find(struct goimages *images, const struct root *proc, const struct pid_id *id,
		    struct memory *m, uint64_t known, struct goruntimes *ret);
#define GORUNTIMES_UNCHANGED GORUNTIME_STATE_MAX

/* The runtime to use instead of a list: the first readable runtime, else the first. NULL if
 * there is none. */
const struct goruntime *goruntimes_first(const struct goruntimes *list);

#endif
