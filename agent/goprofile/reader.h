/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOPROFILE_READER_H
#define PODPROF_GOPROFILE_READER_H

/*
 * Reads Go profiles of processes, and caches the mappings and symbol tables for naming their
 * records. For one thread: round after round, or for a single profile.
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

/* Kinds with counters as records, so two reads have a difference. */
#define GO_PROFILE_CUMULATIVE \
	(1u << GO_PROFILE_HEAP | 1u << GO_PROFILE_MUTEX | 1u << GO_PROFILE_BLOCK)

/**
 * struct go_profile_reader_opts
 * @proc: borrowed until the reader is made
 * @kinds: to read: a bit for each enum go_profile_kind
 * @rounds: processes are read repeatedly. Records are kept for the differences, until the end of a
 *          round without a read of the process. The allocator's counters are read, too. Otherwise
 *          only the snapshots of a process are kept.
 * @record_bytes: ceiling for the kept data of all processes together
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
 * struct go_profile_found - the data read of a Go runtime
 * @number:  as in goalloc_who
 * @state:   of the first kind read
 * @news:    the state has changed since the read before, or this is the first read
 * @forced:  outcome of turning sampling on; FORCE_OUTCOME_MAX without an attempt
 * @reading: set in rounds
 * @totals:  of the heap, if there is a heap snapshot
 * @snaps:   by kind: struct heapsnap, contentionsnap or goroutinesnap; NULL without a profile, and
 *           if the program does not record the kind
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

/* A process: the identity, the request, and the data read, which the target owns. Without a Go
 * runtime @state gives the reason. */
struct go_profile_target {
	struct pid_id pid;
	unsigned int first_number; /* of the runtimes, if the reader does not know the process; 0
				    * is 1 */
	bool force;		   /* turn sampling on, if never on before */
	enum goruntime_state state;
	bool full; /* over a ceiling: not read, without a snapshot, or read afresh the next time */
	struct go_profile_found *found;
	size_t n_found;
};

void go_profile_target_deinit(struct go_profile_target *target);
/* Free one snapshot. */
void go_profile_found_drop(struct go_profile_found *found, enum go_profile_kind kind);

/* Memory at the end of a round. */
struct go_profile_memory {
	size_t symbol_bytes;
	size_t address_space_bytes;
	size_t record_bytes;
	size_t file_bytes; /* cached facts about files */
};

int go_profile_reader_new(const struct go_profile_reader_opts *opts,
			  struct go_profile_reader **ret);
void go_profile_reader_free(struct go_profile_reader *reader);

/* Call before the processes of another container: each container has its own budget of work on
 * files (GOIMAGES_WORK, GOIMAGES_FILES_MAX). */
void go_profile_reader_begin(struct go_profile_reader *reader);
/* Read one process; sets everything in @target except pid, first_number and force. All counts of a
 * process that began at @window_start_ns (boot clock) or later belong to the window. Return: 0,
 * also without anything to read; -errno. */
int go_profile_reader_read(struct go_profile_reader *reader, uint64_t window_start_ns,
			   struct go_profile_target *target);
/* The same for a core, with a reader without rounds. */
int go_profile_reader_read_core(struct go_profile_reader *reader, struct gocore *core,
				struct go_profile_target *target);

/**
 * go_profile_reader_encode() - encode the snapshots of one kind of all @targets as one profile
 * @ret: gzip-compressed pprof is appended; nothing without a snapshot
 *
 * Return: as heap_report(), contention_report(), goroutine_report().
 */
int go_profile_reader_encode(struct go_profile_reader *reader, enum go_profile_kind kind,
			     const struct go_profile_target *targets, size_t n_targets,
			     const struct go_profile_report_opts *opts, struct buf *ret,
			     struct go_profile_report_stats *ret_stats);
/* The same for the difference of two reads of the same @n_targets processes. A process without a
 * snapshot in @after, or with other runtimes than in @before, is left out of both. Members of @opts
 * for differences are set here. */
int go_profile_reader_encode_difference(struct go_profile_reader *reader, enum go_profile_kind kind,
					const struct go_profile_target *before,
					const struct go_profile_target *after, size_t n_targets,
					const struct go_profile_report_opts *opts, struct buf *ret,
					struct go_profile_report_stats *ret_stats);
/* Forget processes without a read in this round. */
struct go_profile_memory go_profile_reader_end_round(struct go_profile_reader *reader);

#endif
