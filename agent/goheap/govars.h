/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOVARS_H
#define PODPROF_GOHEAP_GOVARS_H

/*
 * Where the runtime of a Go program keeps its variables, by the code that uses them: for programs
 * without symbols.
 */

#include <stdbool.h>
#include <stdint.h>

struct elffile;
struct gomodule;

/**
 * struct govars_sched - where goroutines are counted (gosched.h)
 * @allglen: how many there have been at a time
 * @allp:    slice of the processors
 * @free:    sched.gFree: goroutines that have ended, to be used again
 * @system:  sched.ngsys: the runtime's own
 * @split:   the free ones are counted in two lists and not once for both, as since Go 1.25
 */
struct govars_sched {
	uint64_t allglen;
	uint64_t allp;
	uint64_t free;
	uint64_t system;
	bool split;
};

/**
 * struct govars - vaddrs, 0 where the code does not tell
 * @mbuckets:    head of the list of heap records
 * @rate:        MemProfileRate, which three places agree upon: it may be written to
 * @cycle:       mProfCycle, or mProf
 * @old_cycle:   it is mProf, of Go before 1.19
 * @can_profile: the function that reads heap profiles is in the program, so the linker has left
 *               them on
 * @heap_stats:  memstats.heapStats
 * @total_alloc: gcController.totalAlloc, before totalFree; 0 before Go 1.19
 * @bbuckets, @xbuckets: heads of the lists of what was waited for, and of whom others waited for
 * @block_rate, @mutex_rate: blockprofilerate, mutexprofilerate
 * @ticks:       ticks.val, the processor's ticks in a second
 * @controller:  gcController
 * @heap_live:   gcController.heapLive, where there is no totalAlloc; 0 in Go 1.18
 * @allgs:       slice of all goroutines
 * @wait_reasons: array of strings
 * @sched:       all or nothing
 */
struct govars {
	uint64_t mbuckets;
	uint64_t rate;
	uint64_t cycle;
	bool old_cycle;
	bool can_profile;
	uint64_t heap_stats;
	uint64_t total_alloc;
	uint64_t bbuckets;
	uint64_t xbuckets;
	uint64_t block_rate;
	uint64_t mutex_rate;
	uint64_t ticks;
	uint64_t controller;
	uint64_t heap_live;
	uint64_t allgs;
	uint64_t wait_reasons;
	struct govars_sched sched;
};

/* 0, also if little was found; GOMODULE_MALFORMED; -errno. */
int govars_find(const struct elffile *file, const struct gomodule *module, struct govars *ret);

#endif
