/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_SPOOL_STATE_H
#define PODPROF_EXPORT_SPOOL_STATE_H

/*
 * The spool's state on the loop, for its parts only: spool_write.c appends to the log, spool_read.c
 * reads for the destinations, spool_open.c locks and reads the directory, spool.c decides which of
 * these is next.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/nsec.h"
#include "export/disk_thread.h"
#include "export/pending.h"
#include "export/spool.h"

struct loop_source;

/* Profiles and bytes of one write, and of one read. */
#define SPOOL_BATCH_PROFILES 256
#define SPOOL_BATCH_BYTES    (1u << 20)
/* Without new profiles, a failed write is repeated after this time. */
#define SPOOL_RETRY_NS	     (5 * NSEC_PER_SEC)

/**
 * struct spool_feed - a destination
 * @segment, @at: the cursor: the next profile to read
 * @reading:      a job is on the way
 * @retry_ns:     monotonic; no read before
 * @n_loaded, @loaded_bytes: profiles in memory
 */
struct spool_feed {
	struct spool *s;
	unsigned int number;
	struct outbox *box;
	uint64_t id;
	const char *name;
	uint64_t segment;
	size_t at;
	bool reading;
	uint64_t retry_ns;
	size_t n_loaded;
	uint64_t loaded_bytes;
};

/**
 * @removals:  segments to remove, no longer in the index
 * @active:    the number of the open segment, the last of the index; 0: none
 * @starting:  spool_new() runs
 * @locked:    the directory is open and ours
 * @opened:    the earlier runs' profiles are in the index; before, profiles wait or are refused
 * @open_r:    outcome of the last opening; @open_timer: the next attempt
 * @busy:      another process has the lock
 * @blocked:   profiles stay in memory
 * @acks:      to write
 * @unsynced:  bytes were written since fdatasync(); @sync_due: long enough ago
 * @retry_ns:  monotonic; no write without new profiles before
 * @health:    outcome of the last write
 */
struct spool {
	struct spool_opts opts;
	struct disk_thread *thread;
	struct loop_source *timer;
	struct loop_source *sync_timer;
	struct loop_source *flush_timer;
	struct loop_source *open_timer;
	struct spool_feed feeds[SPOOL_DESTINATIONS_MAX];
	struct spool_index index;
	uint64_t removals[SPOOL_SEGMENTS_MAX];
	size_t n_removals;
	uint64_t active;
	uint64_t next_number;
	uint64_t segment_bytes;
	struct pending_list pending;
	struct spool_ack *acks;
	size_t n_acks, cap_acks;
	bool starting, locked, opened, busy, writing, blocked;
	bool unsynced, sync_due, flushing, closing;
	int open_r;
	uint64_t retry_ns;
	int health;
	uint64_t profiles[SPOOL_COUNTED];
	uint64_t recovered;
	uint64_t damaged;
};

/* spool.c */
/* Begins what can begin: a write, reads. */
void spool_go_on(struct spool *s);
/* Goes on after the delay. */
void spool_soon(struct spool *s, uint64_t delay_ns);
/* Gives the job to the disk's thread. 0 or -errno. */
int spool_submit(struct spool *s, struct disk_job *job, const struct disk_job_kind *kind);
/* After a job: the disk answers. */
void spool_answered(struct spool *s);
/* The health of the spool is @outcome, or an -errno; @holder: the process with the lock, or 0. */
void spool_changes(struct spool *s, int outcome, pid_t holder);

/* spool_write.c */
/* The caller of spool_put() gets the profile back, and it counts as @outcome or, for an -errno, as
 * failed. Takes @pending. */
void spool_refuse(struct spool *s, struct pending *pending, int outcome);
/* ... all that wait. */
void spool_refuse_all(struct spool *s, int outcome);
/* The destination has ended with the profile @at of the segment. */
void spool_acknowledge(struct spool_feed *feed, uint64_t segment_number, uint32_t at);
bool spool_has_to_write(const struct spool *s);
/* Begins the next write. 0 or -errno: nothing is written, its profiles are refused. */
int spool_write(struct spool *s);

/* spool_read.c */
/* Begins a read for the destination, if it has room. */
void spool_feed_read(struct spool_feed *feed);

/* spool_open.c */
/* Begins to lock and read the directory. 0 or -errno. */
int spool_lock(struct spool *s);
/* A loop_timer_fn: the next attempt. */
void spool_open_again(void *spool);

#endif
