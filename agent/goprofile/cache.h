/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_CACHE_H
#define PODPROF_GOPROFILE_CACHE_H

/*
 * The readers of Go heaps, one for each process of the node, with the mappings and symbol tables
 * that naming their records takes. Used by one thread, round after round.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "goheap/force.h"
#include "goheap/contention.h"
#include "goheap/goruntime.h"
#include "goprofile/goalloc.h"

struct buf;
struct go_profile_cache;
struct go_profile_report_opts;
struct go_profile_report_stats;
struct contentionsnap;
struct heapsnap;
struct root;

struct go_profile_cache_opts {
	const struct root *proc; /* borrowed */
	size_t heap_bytes;	 /* ceiling for all processes' records together */
	size_t symbol_bytes;	 /* ceiling for symbol tables kept */
	bool no_contention;	 /* mutex and block profiles are not read */
};

/**
 * struct go_profile_found - what was read of one Go runtime
 * @number: that of goalloc_who
 * @news:   its state was another one at the read before, or this is the first
 * @forced: what came of turning sampling on; FORCE_OUTCOME_MAX where that was not tried
 * @snap:   NULL without a profile
 * @contention: mutex and block profiles, where the program has them on; NULL where not
 */
struct go_profile_found {
	unsigned int number;
	enum goruntime_state state;
	bool news;
	enum force_outcome forced;
	struct goalloc_reading reading;
	char go_version[GORUNTIME_VERSION_MAX];
	struct heapsnap *snap;
	struct contentionsnap *contention[CONTENTION_KIND_MAX];
};

/* One process: who it is and what is wanted, and what was read; owns that. Without a Go runtime
 * @state says why. */
struct go_profile_target {
	struct pid_id pid;
	bool force; /* turn sampling on where it has never been on */
	enum goruntime_state state;
	bool full; /* a ceiling: it was not read, or is read afresh the next time */
	struct go_profile_found *found;
	size_t n_found;
};

void go_profile_target_deinit(struct go_profile_target *target);

/* Memory, as a round left it. */
struct go_profile_memory {
	size_t symbol_bytes;
	size_t address_space_bytes;
	size_t record_bytes;
	size_t file_bytes; /* what is known of files */
};

int go_profile_cache_new(const struct go_profile_cache_opts *opts, struct go_profile_cache **ret);
void go_profile_cache_free(struct go_profile_cache *all);

/* Read one process; everything in @target but pid and force is set. Of a process that began in the
 * window everything is the window's. Return: 0, also if there is nothing to read; -errno. */
int go_profile_cache_read(struct go_profile_cache *all, uint64_t window_start_ns,
			  struct go_profile_target *target);
/* heap_report() with the readers' own symbol tables. */
int go_profile_cache_encode(struct go_profile_cache *all, struct heapsnap **snaps, size_t n,
			    const struct go_profile_report_opts *opts, struct buf *ret,
			    struct go_profile_report_stats *ret_stats);
/* contention_report(), likewise. */
int go_profile_cache_encode_contention(struct go_profile_cache *all, struct contentionsnap **snaps,
				       size_t n, const struct go_profile_report_opts *opts,
				       struct buf *ret, struct go_profile_report_stats *ret_stats);
/* Processes that were not read in this round are forgotten. */
struct go_profile_memory go_profile_cache_end_round(struct go_profile_cache *all);

#endif
