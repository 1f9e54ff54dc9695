// SPDX-License-Identifier: Apache-2.0
/*
 * All decisions are made on the loop: the index, the cursors, the segments that begin and end. One
 * thread executes them in order, as jobs with values: lock the directory, read everything, write a
 * batch, read some profiles (disk_thread.h). While the disk does not answer, or another process has
 * the lock, the profiles stay in memory.
 *
 * The log has profiles and acknowledgements. Segments are removed in the order of their numbers
 * only: an acknowledgement stands in the profile's segment or a later one, so it lives as long as
 * the profile. A segment is removed when no destination waits for a profile in it, or when the
 * files exceed the ceiling; the unread profiles of the removed segment then count as dropped.
 */
#include "export/spool.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/watchdog.h"
#include "export/destination.h"
#include "export/outbox.h"
#include "export/spool_state.h"

/* Bytes of a segment: a part of all files, within limits. */
#define SEGMENT_SHARE	    32
#define SEGMENT_BYTES_SMALL (64u << 10)
#define SEGMENT_BYTES_LARGE (4u << 20)
/* At the end of the run: time for the disk, before the profiles behind a write go the direct way.
 * The blocked time of the watchdog is longer than the whole end. */
#define FLUSH_WAIT_NS	    (2 * NSEC_PER_SEC)
/* Waiting jobs: an opening, a write, a read for each destination. */
#define JOBS		    (SPOOL_DESTINATIONS_MAX + 2)

void spool_soon(struct spool *s, uint64_t delay_ns)
{
	(void)loop_arm(s->timer, delay_ns, 0);
}

int spool_submit(struct spool *s, struct disk_job *job, const struct disk_job_kind *kind)
{
	job->owner = s;
	return disk_thread_submit(s->thread, job, kind);
}

static uint64_t feed_unread(const struct spool_feed *feed)
{
	uint64_t n = 0;

	for (size_t i = 0; i < feed->s->index.n; i++)
		n += feed->s->index.segments[i]->shares[feed->number].n_unread;
	return n;
}

void spool_answered(struct spool *s)
{
	s->blocked = false;
	for (unsigned int d = 0; d < s->opts.n_destinations; d++)
		s->feeds[d].box->n_on_disk = feed_unread(&s->feeds[d]);
	spool_go_on(s);
	if (spool_is_idle(s) && s->opts.idle)
		s->opts.idle(s->opts.ctx);
}

static void on_sync(void *ctx)
{
	struct spool *s = ctx;

	s->sync_due = true;
	spool_go_on(s);
}

void spool_changes(struct spool *s, int outcome, pid_t holder)
{
	if (outcome < 0)
		outcome = SPOOL_FAILED;
	if (s->health != outcome && s->opts.changed)
		s->opts.changed(s->opts.ctx, outcome, holder);
	s->health = outcome;
}

void spool_go_on(struct spool *s)
{
	if (!s->opened || s->closing)
		return;
	if (!s->writing && spool_has_to_write(s) && spool_write(s))
		spool_soon(s, NSEC_PER_SEC);
	else if (!s->writing && (s->n_acks || s->n_removals))
		spool_soon(s, SPOOL_RETRY_NS);
	for (unsigned int d = 0; d < s->opts.n_destinations; d++)
		spool_feed_read(&s->feeds[d]);
}

static void on_timer(void *ctx)
{
	struct spool *s = ctx;

	spool_go_on(s);
	if (spool_is_idle(s) && s->opts.idle)
		s->opts.idle(s->opts.ctx);
}

/* Until the running job returns, profiles stay in memory. */
static void on_blocked(void *ctx)
{
	struct spool *s = ctx;

	s->blocked = true;
	spool_changes(s, SPOOL_BLOCKED, 0);
	spool_refuse_all(s, SPOOL_BLOCKED);
}

/* The profiles in the running write may get to the disk, so they stay there. */
static void on_flush_late(void *ctx)
{
	struct spool *s = ctx;

	while ((s->writing || !s->opened) && s->pending.first)
		spool_refuse(s, pending_pop(&s->pending), SPOOL_BLOCKED);
}

static void free_disk(void *disk)
{
	spool_disk_free(disk);
}

static int spool_start(struct spool *s, const char *dir)
{
	struct spool_disk *disk = NULL;
	struct disk_thread_opts thread = {
		.loop = s->opts.loop,
		.name = "spool",
		.queue_max = JOBS,
		.blocked_ns = s->opts.blocked_ns,
		.free_disk = free_disk,
		.blocked = on_blocked,
		.ctx = s,
	};
	int r = loop_add_timer(s->opts.loop, on_timer, s, &s->timer);

	if (!r)
		r = loop_add_timer(s->opts.loop, on_sync, s, &s->sync_timer);
	if (!r)
		r = loop_add_timer(s->opts.loop, on_flush_late, s, &s->flush_timer);
	if (!r)
		r = loop_add_timer(s->opts.loop, spool_open_again, s, &s->open_timer);
	if (!r)
		r = spool_disk_new(dir, &disk);
	if (r)
		return r;
	thread.disk = disk;
	r = disk_thread_new(&thread, &s->thread);
	if (r) {
		spool_disk_free(disk);
		return r;
	}
	return spool_lock(s);
}

DEFINE_CLEANUP(struct spool *, spool_freep, spool_free);

static uint64_t segment_bytes(uint64_t max_bytes)
{
	uint64_t bytes = max_bytes / SEGMENT_SHARE;

	if (bytes < SEGMENT_BYTES_SMALL)
		return SEGMENT_BYTES_SMALL;
	return bytes < SEGMENT_BYTES_LARGE ? bytes : SEGMENT_BYTES_LARGE;
}

int spool_new(const struct spool_opts *opts, struct spool **ret)
{
	_cleanup_(spool_freep) struct spool *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	s->opts.destinations = NULL; /* copied below */
	if (!s->opts.blocked_ns)
		s->opts.blocked_ns = WATCHDOG_BLOCKED_NS;
	s->segment_bytes = segment_bytes(opts->max_bytes);
	pending_init(&s->pending);
	for (unsigned int d = 0; d < opts->n_destinations; d++) {
		const struct spool_destination *destination = &opts->destinations[d];

		s->feeds[d] = (struct spool_feed){.s = s,
						  .number = d,
						  .box = destination->box,
						  .id = destination->id,
						  .name = destination->name};
		if (destination->box->kind->deltas)
			s->index.deltas |= (uint8_t)(1u << d);
	}
	s->starting = true;
	r = spool_start(s, opts->dir);
	if (r)
		return r;
	if (!disk_thread_wait(s->thread, opts->open_wait_ns))
		spool_changes(s, SPOOL_BLOCKED, 0); /* opened by the loop, later */
	else if (s->open_r && !s->busy)
		return s->open_r;
	s->starting = false;
	*ret = take_ptr(s);
	return 0;
}

void spool_free(struct spool *s)
{
	if (!s)
		return;
	s->closing = true;
	disk_thread_free(s->thread);
	while (s->pending.first)
		pending_free(pending_pop(&s->pending));
	spool_index_deinit(&s->index);
	loop_remove(s->timer);
	loop_remove(s->sync_timer);
	loop_remove(s->flush_timer);
	loop_remove(s->open_timer);
	free(s->acks);
	free(s);
}

void spool_flush(struct spool *s)
{
	s->flushing = true;
	(void)loop_arm(s->flush_timer, FLUSH_WAIT_NS, 0);
	spool_go_on(s);
}

bool spool_is_idle(const struct spool *s)
{
	if (s->blocked || (s->health && !s->pending.first && !s->writing))
		return true; /* the disk takes nothing */
	if (!s->opened || s->pending.first || s->writing || s->n_acks || s->unsynced)
		return false;
	for (unsigned int d = 0; d < s->opts.n_destinations; d++) {
		if (s->feeds[d].reading)
			return false;
		for (size_t i = 0; i < s->index.n; i++)
			if (s->index.segments[i]->shares[d].n_unread)
				return false;
	}
	return true;
}

static uint64_t feed_waiting(const struct spool *s, unsigned int d)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->index.n; i++)
		n += s->index.segments[i]->shares[d].n_live;
	return n;
}

void spool_collect(void *spool, struct metric_sink *sink)
{
	static const struct metric_family_desc bytes = {"podprof_spool_bytes", METRIC_GAUGE,
							"Size of the spool's files.", "bytes"};
	static const struct metric_family_desc limit = {"podprof_spool_limit_bytes", METRIC_GAUGE,
							"Limit of the spool's files.", "bytes"};
	static const struct metric_family_desc waiting = {
		"podprof_spool_pending_profiles", METRIC_GAUGE,
		"Profiles on disk without an end at a destination.", NULL};
	static const struct metric_family_desc profiles = {"podprof_spool_profiles", METRIC_COUNTER,
							   "Profiles for the spool by outcome.",
							   NULL};
	static const struct metric_family_desc recovered = {
		"podprof_spool_recovered", METRIC_COUNTER,
		"Profiles of earlier runs that the spool had at the start.", NULL};
	static const struct metric_family_desc damaged = {
		"podprof_spool_damaged", METRIC_COUNTER,
		"Files with an unreadable end at the start, and profiles that cannot be read.",
		NULL};
	static const struct metric_family_desc busy = {
		"podprof_spool_busy", METRIC_GAUGE,
		"1 while another process has the lock of the spool's directory.", NULL};
	const struct spool *s = spool;
	const char *names[SPOOL_COUNTED];

	for (int i = 0; i < SPOOL_COUNTED; i++)
		names[i] = spool_outcome_name(i);
	metric_family(sink, &bytes);
	metric_u64(sink, s->index.bytes, NULL, 0);
	metric_family(sink, &limit);
	metric_u64(sink, s->opts.max_bytes, NULL, 0);
	metric_family(sink, &waiting);
	for (unsigned int d = 0; d < s->opts.n_destinations; d++)
		metric_u64(sink, feed_waiting(s, d),
			   &(struct metric_label){"destination", s->feeds[d].name}, 1);
	metric_by_name(sink, &profiles, "outcome", s->profiles, names, SPOOL_COUNTED);
	metric_family(sink, &busy);
	metric_u64(sink, s->busy, NULL, 0);
	metric_family(sink, &recovered);
	metric_u64(sink, s->recovered, NULL, 0);
	metric_family(sink, &damaged);
	metric_u64(sink, s->damaged, NULL, 0);
}
