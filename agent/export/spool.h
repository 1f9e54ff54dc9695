/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_SPOOL_H
#define PODPROF_EXPORT_SPOOL_H

/*
 * The spool: profiles on disk until each has ended for every destination: sent, refused or too old.
 * There is one log for all destinations, and a cursor and acknowledgements for each destination.
 * The spool writes a profile to disk and then reads profiles into the destinations' outboxes, a few
 * at a time. So the memory of a backlog hardly depends on its length. The log survives the end of
 * the agent at any point (docs/design/spool.md).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/spool_disk.h"

struct loop;
struct metric_sink;
struct outbox;
struct queued_profile;
struct spool;

/* A destination with a spool. @id: unique among the destinations, and the same after a restart. */
struct spool_destination {
	struct outbox *box;
	uint64_t id;
	const char *name; /* in metrics */
};

/**
 * struct spool_opts - everything is borrowed and must outlive the spool
 * @max_bytes:     ceiling of all files
 * @waiting_bytes: memory of profiles that wait for the disk
 * @loaded_bytes:  memory of one destination's profiles from the disk
 * @blocked_ns:    time without an answer of the disk, and from a failed opening to the next; 0:
 *                 WATCHDOG_BLOCKED_NS
 * @open_wait_ns:  how long spool_new() waits for the disk; 0: DISK_THREAD_WAIT_NS
 * @refused:       the disk did not take the profile: the caller keeps it in memory for these
 *                 destinations, a mask of indices into @destinations. Copies the reference.
 * @loaded:        the outbox of a destination has new profiles
 * @changed:       the outcome of writes, or of an opening, has changed; for the log. @holder: for
 *                 SPOOL_BUSY: the process with the lock; 0: unknown. Also inside of spool_new()
 * @idle:          spool_is_idle() may be true from now on
 */
struct spool_opts {
	struct loop *loop;
	const char *dir;
	uint64_t max_bytes;
	uint64_t waiting_bytes;
	uint64_t loaded_bytes;
	uint64_t blocked_ns;
	uint64_t open_wait_ns;
	const struct spool_destination *destinations;
	unsigned int n_destinations; /* at most SPOOL_DESTINATIONS_MAX */
	void (*refused)(void *ctx, struct queued_profile *p, uint8_t mask);
	void (*loaded)(void *ctx, unsigned int destination);
	void (*changed)(void *ctx, enum spool_outcome outcome, pid_t holder);
	void (*idle)(void *ctx);
	void *ctx;
};

/* Locks the directory, and reads the profiles of earlier runs in the background. 0, -errno of our
 * side, or an outcome of spool_disk_open(). Without an answer of the disk within @open_wait_ns, and
 * while another process has the lock, the result is 0: profiles stay in memory until the spool has
 * the directory. */
int spool_new(const struct spool_opts *opts, struct spool **ret);
/* Profiles on disk stay there. The outboxes must be empty. */
void spool_free(struct spool *s);

/* Keeps a reference of @p until the profile is on disk or @refused. 0, or the outcome (counted) for
 * which the caller keeps the profile in memory at once. */
int spool_put(struct spool *s, struct queued_profile *p, uint8_t mask);
/* For the end of the run: starts writing all profiles to the disk, with fdatasync(), and reads
 * profiles for the destinations. If a write takes more than 2 s, the profiles behind the write are
 * @refused. */
void spool_flush(struct spool *s);
/* Whether the spool has no work: all profiles and acknowledgements are on disk, and all profiles on
 * disk were read into the outboxes. Also true if the disk is blocked or refuses writes. */
bool spool_is_idle(const struct spool *s);
/* A metric_collect_fn. */
void spool_collect(void *spool, struct metric_sink *sink);

#endif
