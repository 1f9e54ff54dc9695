/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOVARS_H
#define PODPROF_GOHEAP_GOVARS_H

/*
 * Finds the variables of a Go runtime by the code that uses them, for programs without symbols.
 */

#include <stdbool.h>
#include <stdint.h>

struct elffile;
struct gomodule;

/**
 * struct govars_sched - the counters of goroutines (gototals.h)
 * @allglen: largest number so far
 * @allp:    slice of the processors
 * @free:    sched.gFree: ended goroutines, for reuse
 * @system:  sched.ngsys: the runtime's own
 * @split:   two lists count the free goroutines, as since Go 1.25; otherwise one count is for both
 */
struct govars_sched {
	uint64_t allglen;
	uint64_t allp;
	uint64_t free;
	uint64_t system;
	bool split;
};

/**
 * struct govars - vaddrs, 0 if the code does not reveal them
 * @mbuckets: head of the list of heap records
 * @rate: MemProfileRate, confirmed by three places in the code, so it may be written to
 * @cycle: mProfCycle, or mProf
 * @old_cycle: @cycle is mProf, of Go before 1.19
 * @can_profile: the program contains the function that reads heap profiles, so the linker has left
 *               profiling on
 * @heap_stats: memstats.heapStats
 * @total_alloc: gcController.totalAlloc, before totalFree; 0 before Go 1.19
 * @bbuckets, @xbuckets: heads of the lists of the block and mutex profiles
 * @block_rate, @mutex_rate: blockprofilerate, mutexprofilerate
 * @ticks: ticks.val, the processor's ticks in a second
 * @controller: gcController
 * @heap_live: gcController.heapLive, if there is no totalAlloc; 0 in Go 1.18
 * @allgs: slice of all goroutines
 * @wait_reasons: array of strings
 * @sched: all or nothing
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

/* 0, also if few variables were found; GOMODULE_MALFORMED; -errno. */
int govars_find(const struct elffile *file, const struct gomodule *module, struct govars *ret);

#endif
