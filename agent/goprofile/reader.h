/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_READER_H
#define PODPROF_GOPROFILE_READER_H

/*
 * Reads Go profiles of processes, with the mappings and symbol tables that naming their records
 * takes. Used by one thread: round after round, or for one profile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/pid.h"
#include "goheap/force.h"
#include "goheap/goheap.h"
#include "goheap/goruntime.h"
#include "goheap/kind.h"
#include "goprofile/goalloc.h"

struct buf;
struct go_profile_reader;
struct go_profile_report_opts;
struct go_profile_report_stats;
struct gocore;
struct root;

/* Kinds whose records are counters: of two reads there is a difference. */
#define GO_PROFILE_CUMULATIVE \
	(1u << GO_PROFILE_HEAP | 1u << GO_PROFILE_MUTEX | 1u << GO_PROFILE_BLOCK)

/**
 * struct go_profile_reader_opts
 * @proc:   borrowed
 * @kinds:  to be read: a bit for each enum go_profile_kind
 * @rounds: processes are read again and again, so their records are kept for the differences, until
 *          a round ends in which they were not read. The allocator's counters are read too.
 *          Otherwise nothing is kept of a process but its snapshots.
 * @record_bytes: ceiling for what is kept of all processes together
 * @symbol_bytes: ceiling for symbol tables kept
 */
struct go_profile_reader_opts {
	const struct root *proc;
	unsigned int kinds;
	bool rounds;
	size_t record_bytes;
	size_t symbol_bytes;
};

/**
 * struct go_profile_found - what was read of one Go runtime
 * @number: that of goalloc_who
 * @state:  of the first of the kinds that are read
 * @news:   it was another one at the read before, or this is the first
 * @forced: what came of turning sampling on; FORCE_OUTCOME_MAX where that was not tried
 * @reading: set in rounds
 * @totals: of the heap, where there is a snapshot of it
 * @snaps:  by kind: struct heapsnap, contentionsnap or goroutinesnap; NULL without a profile, and
 *          where the program does not record it
 */
struct go_profile_found {
	unsigned int number;
	enum goruntime_state state;
	bool news;
	enum force_outcome forced;
	struct goalloc_reading reading;
	char go_version[GORUNTIME_VERSION_MAX];
	struct goheap_totals totals;
	void *snaps[GO_PROFILE_KIND_MAX];
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
/* One snapshot of it is not wanted. */
void go_profile_found_drop(struct go_profile_found *found, enum go_profile_kind kind);

/* Memory, as a round left it. */
struct go_profile_memory {
	size_t symbol_bytes;
	size_t address_space_bytes;
	size_t record_bytes;
	size_t file_bytes; /* what is known of files */
};

int go_profile_reader_new(const struct go_profile_reader_opts *opts,
			  struct go_profile_reader **ret);
void go_profile_reader_free(struct go_profile_reader *reader);

/* Read one process; everything in @target but pid and force is set. Of a process that began in the
 * window everything is the window's. Return: 0, also if there is nothing to read; -errno. */
int go_profile_reader_read(struct go_profile_reader *reader, uint64_t window_start_ns,
			   struct go_profile_target *target);
/* The same of a core, by a reader without rounds. */
int go_profile_reader_read_core(struct go_profile_reader *reader, struct gocore *core,
				struct go_profile_target *target);

/**
 * go_profile_reader_encode() - the snapshots of one kind of all @targets, as one profile
 * @ret: gzip-compressed pprof is appended; nothing if there is no snapshot
 *
 * Return: as heap_report(), contention_report(), goroutine_report().
 */
int go_profile_reader_encode(struct go_profile_reader *reader, enum go_profile_kind kind,
			     const struct go_profile_target *targets, size_t n_targets,
			     const struct go_profile_report_opts *opts, struct buf *ret,
			     struct go_profile_report_stats *ret_stats);
/* Processes that were not read in this round are forgotten. */
struct go_profile_memory go_profile_reader_end_round(struct go_profile_reader *reader);

#endif
