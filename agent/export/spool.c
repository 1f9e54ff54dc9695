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
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/watchdog.h"
#include "export/destination.h"
#include "export/disk_thread.h"
#include "export/outbox.h"
#include "export/pending.h"
#include "export/profile.h"

/* Bytes of a segment: a part of all files, within limits. */
#define SEGMENT_SHARE	    32
#define SEGMENT_BYTES_SMALL (64u << 10)
#define SEGMENT_BYTES_LARGE (4u << 20)
/* Profiles and bytes of one write, and of one read. */
#define BATCH_PROFILES	    256
#define BATCH_BYTES	    (1u << 20)
/* Acknowledgements of one write. */
#define BATCH_ACKS	    4096
/* Profiles of one destination in memory: four requests of the largest kind. */
#define LOADED_PROFILES	    1024
/* Runs of profiles whose acknowledgement waits for the disk, 24 bytes each. Reached: further
 * profiles are sent again after a restart. */
#define SPOOL_ACKS_MAX	    65536
/* From a write to fdatasync(): the loss of a power cut. */
#define SYNC_NS		    (5 * NSEC_PER_SEC)
/* Without new profiles, a failed write is repeated after this time. */
#define RETRY_NS	    (5 * NSEC_PER_SEC)
/* From a read without memory or descriptors to the next. */
#define READ_RETRY_NS	    NSEC_PER_SEC
/* At the end of the run: time for the disk, before the profiles behind a write go the direct way.
 * The blocked time of the watchdog is longer than the whole end. */
#define FLUSH_WAIT_NS	    (2 * NSEC_PER_SEC)
/* Time for the disk at the start, before the agent goes on without the spool. */
#define OPEN_WAIT_NS	    (2 * NSEC_PER_SEC)
/* Waiting jobs: an opening, a write, a read for each destination. */
#define JOBS		    (SPOOL_DESTINATIONS_MAX + 2)

/**
 * struct feed - a destination
 * @segment, @at: the cursor: the next profile to read
 * @reading:      a job is on the way
 * @retry_ns:     monotonic; no read before
 * @n_loaded, @loaded_bytes: profiles in memory
 */
struct feed {
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
	struct feed feeds[SPOOL_DESTINATIONS_MAX];
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

static void spool_go_on(struct spool *s);

static void spool_soon(struct spool *s, uint64_t delay_ns)
{
	(void)loop_arm(s->timer, delay_ns, 0);
}

static int spool_submit(struct spool *s, struct disk_job *job, const struct disk_job_kind *kind)
{
	job->owner = s;
	return disk_thread_submit(s->thread, job, kind);
}

static uint64_t feed_unread(const struct feed *feed)
{
	uint64_t n = 0;

	for (size_t i = 0; i < feed->s->index.n; i++)
		n += feed->s->index.segments[i]->shares[feed->number].n_unread;
	return n;
}

/* After a job: the disk answers. */
static void spool_answered(struct spool *s)
{
	s->blocked = false;
	for (unsigned int d = 0; d < s->opts.n_destinations; d++)
		s->feeds[d].box->n_on_disk = feed_unread(&s->feeds[d]);
	spool_go_on(s);
	if (spool_is_idle(s) && s->opts.idle)
		s->opts.idle(s->opts.ctx);
}

/* ---- profiles that wait for the disk */

/* @pending: first, for pending_free(). @size: of the record. */
struct unwritten {
	struct pending pending;
	uint8_t mask;
	size_t size;
};

static struct unwritten *unwritten_of(struct pending *pending)
{
	return container_of(pending, struct unwritten, pending);
}

static void spool_refuse(struct spool *s, struct pending *pending, int outcome)
{
	s->profiles[outcome < 0 ? SPOOL_FAILED : outcome]++;
	s->opts.refused(s->opts.ctx, pending->p, unwritten_of(pending)->mask);
	pending_free(pending);
}

static void spool_changes(struct spool *s, int outcome, pid_t holder)
{
	if (outcome < 0)
		outcome = SPOOL_FAILED;
	if (s->health != outcome && s->opts.changed)
		s->opts.changed(s->opts.ctx, outcome, holder);
	s->health = outcome;
}

static int put(struct spool *s, struct queued_profile *p, uint8_t mask)
{
	size_t size = spool_profile_size(p->profile, s->opts.n_destinations);
	struct unwritten *unwritten;

	if (s->blocked || s->pending.bytes + p->bytes > s->opts.waiting_bytes)
		return SPOOL_BLOCKED;
	if (size > SPOOL_RECORD_MAX || size > s->opts.max_bytes / 4)
		return SPOOL_TOO_LARGE;
	unwritten = malloc(sizeof(*unwritten));
	if (!unwritten)
		return SPOOL_FAILED;
	*unwritten = (struct unwritten){.pending.p = p, .mask = mask, .size = size};
	p->refs++;
	pending_push(&s->pending, &unwritten->pending);
	return 0;
}

int spool_put(struct spool *s, struct queued_profile *p, uint8_t mask)
{
	int r = put(s, p, mask);

	if (r)
		s->profiles[r]++;
	else
		spool_go_on(s);
	return r;
}

/* ---- acknowledgements */

static bool ack_joins(const struct spool_ack *last, const struct spool_ack *ack)
{
	return last->destination == ack->destination && last->segment == ack->segment &&
	       last->first + last->n == ack->first;
}

static void spool_acknowledge(struct spool *s, const struct spool_ack *ack)
{
	struct spool_ack *acks;

	if (s->n_acks && ack_joins(&s->acks[s->n_acks - 1], ack)) {
		s->acks[s->n_acks - 1].n += ack->n; /* of a failed write: a run of several */
		return;
	}
	if (s->n_acks == s->cap_acks) {
		size_t cap = s->cap_acks ? 2 * s->cap_acks : 64;

		acks = cap > SPOOL_ACKS_MAX ? NULL : reallocarray(s->acks, cap, sizeof(*acks));
		if (!acks)
			return;
		s->acks = acks;
		s->cap_acks = cap;
	}
	s->acks[s->n_acks++] = *ack;
}

/* Acknowledgements in segments that go are of no use. */
static void spool_forget_acks(struct spool *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_acks; i++)
		if (spool_index_find(&s->index, s->acks[i].segment))
			s->acks[n++] = s->acks[i];
	s->n_acks = n;
}

static void feed_end(struct feed *feed, uint64_t segment_number, uint32_t at)
{
	struct spool_segment *segment = spool_index_find(&feed->s->index, segment_number);
	const struct spool_ack ack = {feed->id, segment_number, at, 1};

	if (!segment)
		return;
	spool_index_end(segment, at, feed->number);
	spool_acknowledge(feed->s, &ack);
}

/* The last reference of a profile from the disk. */
static void on_ended(struct queued_profile *p)
{
	struct feed *feed = p->spool;

	feed->n_loaded--;
	feed->loaded_bytes -= p->bytes;
	if (!p->stays)
		feed_end(feed, p->segment, p->place);
	if (!feed->s->closing)
		spool_soon(feed->s, 0);
}

/* A segment may go while its profiles are in memory. */
static bool on_disk(const struct queued_profile *p)
{
	const struct feed *feed = p->spool;

	return spool_index_find(&feed->s->index, p->segment);
}

static const struct queued_source spool_source = {.ended = on_ended, .on_disk = on_disk};

/* ---- writing */

/**
 * struct write_job - the next part of the log
 * @removals:   oldest segments to remove first; @n_removed: number of successes
 * @begin:      begin the segment @number
 * @off:        of the batch in the segment
 * @open:       result: the segment can be written further
 * @written:    result: bytes of the batch
 */
struct write_job {
	struct disk_job job;
	uint64_t removals[SPOOL_SEGMENTS_MAX];
	size_t n_removals, n_removed;
	bool begin, sync, open, began;
	uint64_t number;
	uint64_t off;
	struct pending_list profiles;
	uint64_t ids[SPOOL_DESTINATIONS_MAX];
	unsigned int n_ids;
	struct spool_ack *acks;
	size_t n_acks;
	size_t written;
};

static size_t ids_of_mask(const struct write_job *job, uint8_t mask,
			  uint64_t ret[SPOOL_DESTINATIONS_MAX])
{
	size_t n = 0;

	for (unsigned int d = 0; d < job->n_ids; d++)
		if (mask & 1u << d)
			ret[n++] = job->ids[d];
	return n;
}

static int write_batch(struct write_job *job)
{
	_cleanup_(buf_deinit) struct buf bytes = BUF_INIT(SIZE_MAX);
	uint64_t ids[SPOOL_DESTINATIONS_MAX];
	int r = 0;

	for (struct pending *at = job->profiles.first; !r && at; at = at->next) {
		size_t n = ids_of_mask(job, unwritten_of(at)->mask, ids);

		r = spool_profile_append(&bytes, at->p->profile, at->p->id, ids, n);
	}
	if (!r && job->n_acks)
		r = spool_acks_append(&bytes, job->acks, job->n_acks);
	if (!r && bytes.len)
		r = spool_disk_write(job->job.disk, job->off, bytes.data, bytes.len);
	job->written = r ? 0 : bytes.len;
	return r;
}

static void write_run(struct disk_job *base)
{
	struct write_job *job = container_of(base, struct write_job, job);
	struct spool_disk *disk = job->job.disk;
	int r = 0;

	while (job->n_removed < job->n_removals &&
	       !spool_disk_remove(disk, job->removals[job->n_removed]))
		job->n_removed++;
	if (job->begin) {
		r = spool_disk_begin(disk, job->number);
		job->began = !r;
	}
	if (!r)
		r = write_batch(job);
	if (!r && job->sync) {
		r = spool_disk_sync(disk);
		/* these profiles go from memory: they must not come back after a restart */
		if (r && job->written)
			spool_disk_cut(disk, job->off);
	}
	job->open = spool_disk_is_open(disk);
	job->job.r = r;
}

static void write_job_free(struct write_job *job)
{
	struct pending *pending;

	while ((pending = pending_pop(&job->profiles)))
		pending_free(pending);
	free(job->acks);
	free(job);
}

/* Other jobs may have the same profiles. */
static void write_abandoned(struct disk_job *base)
{
	pending_orphan(&container_of(base, struct write_job, job)->profiles);
}

static void write_drop(struct disk_job *base)
{
	write_job_free(container_of(base, struct write_job, job));
}

/* The batch is on disk. */
static void write_index(struct spool *s, struct write_job *job)
{
	struct spool_segment *segment = spool_index_find(&s->index, job->number);
	uint32_t off = (uint32_t)job->off;
	uint64_t ids[SPOOL_DESTINATIONS_MAX];

	if (!job->written)
		return; /* removals only; there may be no segment */
	for (struct pending *at = job->profiles.first; at; at = at->next) {
		const struct unwritten *unwritten = unwritten_of(at);
		const struct profile *profile = at->p->profile;
		const struct spool_place place = {off, (uint32_t)profile->pprof_len,
						  (uint32_t)profile->pprof_delta_len,
						  unwritten->mask};

		spool_index_add(&s->index, segment, &place, profile->start_ns);
		off += (uint32_t)spool_profile_size(profile,
						    ids_of_mask(job, unwritten->mask, ids));
		s->profiles[SPOOL_OK]++;
	}
	spool_index_add_bytes(&s->index, segment, job->written);
	if (!job->sync && !s->unsynced) {
		s->unsynced = true;
		(void)loop_arm(s->sync_timer, SYNC_NS, 0);
	}
}

static void spool_drop_newest(struct spool *s)
{
	struct spool_segment *newest = s->index.segments[s->index.n - 1];

	s->index.bytes -= newest->bytes;
	s->index.n--;
	free(newest->places);
	free(newest);
}

static void write_failed(struct spool *s, struct write_job *job)
{
	struct pending *pending;

	while ((pending = pending_pop(&job->profiles)))
		spool_refuse(s, pending, job->job.r);
	for (size_t i = 0; i < job->n_acks; i++)
		spool_acknowledge(s, &job->acks[i]);
	s->retry_ns = nsec_monotonic() + RETRY_NS;
}

static void write_done(struct disk_job *base)
{
	struct write_job *job = container_of(base, struct write_job, job);
	struct spool *s = job->job.owner;

	s->writing = false;
	if (s->closing) {
		write_job_free(job);
		return;
	}
	s->n_removals -= job->n_removed;
	memmove(s->removals, s->removals + job->n_removed, s->n_removals * sizeof(s->removals[0]));
	if (job->begin && job->began)
		spool_index_add_bytes(&s->index, spool_index_find(&s->index, job->number),
				      SPOOL_MAGIC_LEN);
	else if (job->begin)
		spool_drop_newest(s);
	s->active = job->open ? job->number : 0;
	if (job->job.r)
		write_failed(s, job);
	else
		write_index(s, job);
	if (job->profiles.n || job->job.r)
		spool_changes(s, job->job.r, 0);
	write_job_free(job);
	spool_answered(s);
}

static const struct disk_job_kind write_kind = {
	.run = write_run, .done = write_done, .abandoned = write_abandoned, .drop = write_drop};

/* The unread profiles of the oldest segment are lost. */
static void spool_evict(struct spool *s)
{
	const struct spool_segment *oldest = s->index.segments[0];
	uint64_t now_ns = nsec_wall();

	for (unsigned int d = 0; d < s->opts.n_destinations; d++) {
		struct outbox *box = s->feeds[d].box;
		const struct spool_share *share = &oldest->shares[d];
		bool old = now_ns > oldest->newest_start_ns &&
			   now_ns - oldest->newest_start_ns > box->kind->limits.age_ns;
		enum export_outcome outcome = old ? EXPORT_DROPPED_OLD : EXPORT_DROPPED_FULL;

		box->profiles[outcome] += share->n_unread;
		box->payload[outcome] += share->unread_bytes;
	}
}

static void spool_remove_oldest(struct spool *s)
{
	if (s->index.segments[0]->number == s->active)
		s->active = 0;
	s->removals[s->n_removals++] = s->index.segments[0]->number;
	spool_index_drop_oldest(&s->index);
}

/* Room for @size bytes more and @n profiles. */
static void spool_make_room(struct spool *s, uint64_t size, size_t n)
{
	while (s->index.n && s->n_removals < SPOOL_SEGMENTS_MAX &&
	       s->index.segments[0]->number != s->active &&
	       spool_segment_is_done(s->index.segments[0]))
		spool_remove_oldest(s);
	while (s->index.n && s->n_removals < SPOOL_SEGMENTS_MAX &&
	       (s->index.bytes + size > s->opts.max_bytes ||
		s->index.n_profiles + n > SPOOL_PROFILES_MAX || s->index.n >= SPOOL_SEGMENTS_MAX)) {
		spool_evict(s);
		spool_remove_oldest(s);
	}
}

/* Moves profiles into the job. Returns the bytes of their records. */
static uint64_t write_job_fill(struct spool *s, struct write_job *job)
{
	uint64_t size = 0;

	while (s->pending.first && job->profiles.n < BATCH_PROFILES &&
	       (!size || size + unwritten_of(s->pending.first)->size <= BATCH_BYTES)) {
		struct pending *pending = pending_pop(&s->pending);

		size += unwritten_of(pending)->size;
		pending_push(&job->profiles, pending);
	}
	return size;
}

static int write_job_take_acks(struct spool *s, struct write_job *job)
{
	size_t n = s->n_acks < BATCH_ACKS ? s->n_acks : BATCH_ACKS;

	job->acks = calloc(n + 1, sizeof(*job->acks)); /* + 1: not of size 0 */
	if (!job->acks)
		return -ENOMEM;
	if (!n)
		return 0;
	memcpy(job->acks, s->acks, n * sizeof(*job->acks));
	job->n_acks = n;
	s->n_acks -= n;
	memmove(s->acks, s->acks + n, s->n_acks * sizeof(*s->acks));
	return 0;
}

/* The segment of the batch, with room in the index. */
static int write_job_place(struct spool *s, struct write_job *job, uint64_t size)
{
	struct spool_segment *segment = s->active ? spool_index_find(&s->index, s->active) : NULL;
	int r = 0;

	if (!job->profiles.n && !job->n_acks) {
		job->number = s->active;
		return 0;
	}
	job->begin = !segment || segment->bytes + size > s->segment_bytes;
	if (job->begin)
		r = spool_index_add_segment(&s->index, s->next_number, &segment);
	if (r) {
		job->begin = false; /* the newest segment is an earlier one, and stays */
		return r;
	}
	if (spool_index_reserve(segment, job->profiles.n)) {
		if (job->begin)
			spool_drop_newest(s);
		job->begin = false;
		return -ENOMEM;
	}
	s->next_number += job->begin;
	job->number = segment->number;
	job->off = job->begin ? SPOOL_MAGIC_LEN : segment->bytes;
	return 0;
}

static bool spool_has_to_write(const struct spool *s)
{
	if (s->pending.first)
		return true;
	if (nsec_monotonic() < s->retry_ns)
		return false;
	return s->n_acks || s->n_removals || (s->unsynced && (s->sync_due || s->flushing)) ||
	       (s->index.n && s->index.segments[0]->number != s->active &&
		spool_segment_is_done(s->index.segments[0]));
}

static int spool_write(struct spool *s)
{
	struct write_job *job = calloc(1, sizeof(*job));
	uint64_t size;
	int r;

	if (!job)
		return -ENOMEM;
	pending_init(&job->profiles);
	size = write_job_fill(s, job) + SPOOL_RECORD_HEADER_ROOM + SPOOL_MAGIC_LEN;
	size += (s->n_acks < BATCH_ACKS ? s->n_acks : BATCH_ACKS) * SPOOL_ACK_LEN;
	spool_make_room(s, size, job->profiles.n);
	spool_forget_acks(s);
	job->n_removals = s->n_removals;
	memcpy(job->removals, s->removals, s->n_removals * sizeof(s->removals[0]));
	for (job->n_ids = 0; job->n_ids < s->opts.n_destinations; job->n_ids++)
		job->ids[job->n_ids] = s->feeds[job->n_ids].id;
	r = write_job_take_acks(s, job);
	if (!r)
		r = write_job_place(s, job, size);
	job->sync = s->sync_due || s->flushing;
	if (!r)
		r = spool_submit(s, &job->job, &write_kind);
	if (r) {
		if (job->begin)
			spool_drop_newest(s);
		job->job.r = SPOOL_FAILED;
		write_failed(s, job);
		write_job_free(job);
		return r;
	}
	s->writing = true;
	if (job->sync)
		s->unsynced = s->sync_due = false;
	return 0;
}

static void on_sync(void *ctx)
{
	struct spool *s = ctx;

	s->sync_due = true;
	spool_go_on(s);
}

/* ---- reading for a destination */

/* One profile of a read. @r, @profile: result; @r above 0: damaged. */
struct read_item {
	uint32_t place;
	uint32_t off;
	size_t len;
	struct profile *profile;
	char id[QUEUED_PROFILE_ID_LEN + 1];
	int r;
};

struct read_job {
	struct disk_job job;
	struct feed *feed;
	uint64_t segment;
	bool deltas;
	struct read_item items[BATCH_PROFILES];
	size_t n;
};

static int read_item(const struct read_job *job, struct read_item *item)
{
	_cleanup_(buf_deinit) struct buf bytes =
		BUF_INIT(SPOOL_RECORD_MAX + SPOOL_RECORD_HEADER_ROOM);
	struct spool_record record;
	struct cursor c;
	int r = spool_disk_read(job->job.disk, job->segment, item->off, item->len, &bytes);

	if (r)
		return r;
	cursor_init(&c, bytes.data, bytes.len);
	r = spool_record_next(&c, &record);
	if (!r)
		r = spool_profile_read(&record, job->deltas, &item->profile, item->id);
	return r;
}

static void read_run(struct disk_job *base)
{
	struct read_job *job = container_of(base, struct read_job, job);

	int r = 0;

	for (size_t i = 0; r >= 0 && i < job->n; i++) {
		r = job->items[i].r = read_item(job, &job->items[i]);
		work_alive(&base->work);
	}
}

static void read_drop(struct disk_job *base)
{
	struct read_job *job = container_of(base, struct read_job, job);

	for (size_t i = 0; i < job->n; i++)
		profile_free(job->items[i].profile);
	free(job);
}

static void read_count(const struct read_job *job, const struct read_item *item,
		       enum export_outcome outcome)
{
	job->feed->box->profiles[outcome]++;
	job->feed->box->payload[outcome] += item->len;
}

/* 0, or -errno: the profile is as good as before. */
static int read_deliver(struct spool *s, const struct read_job *job, struct read_item *item)
{
	struct feed *feed = job->feed;
	struct queued_profile *p;
	int r = item->r;

	if (!r)
		r = queued_profile_new(feed->box->budget, item->profile, &p);
	if (r < 0)
		return r;
	if (r) {
		read_count(job, item, EXPORT_DROPPED_DAMAGED);
		s->damaged++;
		feed_end(feed, job->segment, item->place);
		return 0;
	}
	item->profile = NULL;
	memcpy(p->id, item->id, sizeof(p->id));
	p->source = &spool_source;
	p->spool = feed;
	p->segment = job->segment;
	p->place = item->place;
	feed->n_loaded++;
	feed->loaded_bytes += p->bytes;
	outbox_push(feed->box, p, nsec_wall());
	queued_profile_unref(p);
	return 0;
}

/* Our side failed at item @from: this profile and the following ones stay on disk, and the cursor
 * goes back. If the segment has gone meanwhile, they are lost like its other profiles. */
static void read_again(struct spool *s, struct read_job *job, size_t from)
{
	struct spool_segment *segment = spool_index_find(&s->index, job->segment);
	struct feed *feed = job->feed;

	for (size_t i = from; i < job->n; i++)
		if (segment)
			spool_index_unread(&s->index, segment, job->items[i].place, feed->number);
		else
			read_count(job, &job->items[i], EXPORT_DROPPED_FULL);
	if (segment) {
		feed->segment = job->segment;
		feed->at = job->items[from].place;
	}
	feed->retry_ns = nsec_monotonic() + READ_RETRY_NS;
}

static void read_done(struct disk_job *base)
{
	struct read_job *job = container_of(base, struct read_job, job);
	struct spool *s = job->job.owner;

	job->feed->reading = false;
	if (!s->closing) {
		size_t i = 0;

		while (i < job->n && !read_deliver(s, job, &job->items[i]))
			i++;
		if (i < job->n)
			read_again(s, job, i);
		s->opts.loaded(s->opts.ctx, job->feed->number);
		spool_answered(s);
	}
	for (size_t i = 0; i < job->n; i++)
		profile_free(job->items[i].profile);
	free(job);
}

static const struct disk_job_kind read_kind = {
	.run = read_run, .done = read_done, .drop = read_drop};

/* The first segment at or behind the cursor with a profile to read; NULL if there is none. */
static struct spool_segment *feed_segment(struct feed *feed)
{
	const struct spool_index *x = &feed->s->index;

	for (size_t i = 0; i < x->n; i++) {
		struct spool_segment *segment = x->segments[i];

		if (segment->number < feed->segment || !segment->shares[feed->number].n_unread)
			continue;
		if (segment->number > feed->segment)
			feed->at = 0;
		feed->segment = segment->number;
		return segment;
	}
	return NULL;
}

static size_t place_len(const struct spool_segment *segment, size_t at)
{
	uint64_t end = at + 1 < segment->n ? segment->places[at + 1].off : segment->bytes;
	uint64_t len = end - segment->places[at].off;

	return len < SPOOL_RECORD_MAX ? len : SPOOL_RECORD_MAX;
}

static void read_job_fill(struct feed *feed, struct spool_segment *segment, struct read_job *job)
{
	size_t bytes = 0;

	for (; feed->at < segment->n && job->n < BATCH_PROFILES; feed->at++) {
		const struct spool_place *place = &segment->places[feed->at];
		size_t len = place_len(segment, feed->at);

		if (!(place->live & 1u << feed->number))
			continue;
		if (bytes && bytes + len > BATCH_BYTES)
			return;
		bytes += len;
		job->items[job->n++] = (struct read_item){
			.place = (uint32_t)feed->at, .off = place->off, .len = len};
		spool_index_read(&feed->s->index, segment, feed->at, feed->number);
	}
}

static void feed_read(struct feed *feed)
{
	struct spool *s = feed->s;
	struct spool_segment *segment;
	struct read_job *job;
	uint64_t now_ns;

	if (feed->reading || feed->n_loaded + BATCH_PROFILES > LOADED_PROFILES ||
	    feed->loaded_bytes >= s->opts.loaded_bytes)
		return;
	segment = feed_segment(feed);
	if (!segment)
		return;
	now_ns = nsec_monotonic();
	if (now_ns < feed->retry_ns) {
		spool_soon(s, feed->retry_ns - now_ns);
		return;
	}
	job = calloc(1, sizeof(*job));
	if (!job) {
		spool_soon(s, NSEC_PER_SEC);
		return;
	}
	job->feed = feed;
	job->segment = segment->number;
	job->deltas = feed->box->kind->deltas;
	read_job_fill(feed, segment, job);
	feed->reading = true;
	/* JOBS has room for this one */
	if (spool_submit(s, &job->job, &read_kind)) {
		job->job.work.cancelled = 1;
		for (size_t i = 0; i < job->n; i++)
			job->items[i].r = -ENOMEM;
		read_done(&job->job);
	}
}

/* ---- opening */

static void spool_refuse_all(struct spool *s, int outcome)
{
	while (s->pending.first)
		spool_refuse(s, pending_pop(&s->pending), outcome);
}

/* Until the next attempt the profiles stay in memory. */
static void open_failed(struct spool *s, int r, pid_t holder)
{
	s->open_r = r;
	s->busy = r == SPOOL_BUSY;
	s->blocked = true;
	if (s->starting && !s->busy)
		return; /* the outcome of spool_new() */
	spool_changes(s, r, holder);
	spool_refuse_all(s, s->busy ? SPOOL_BLOCKED : r);
	(void)loop_arm(s->open_timer, s->opts.blocked_ns, 0);
	if (s->opts.idle)
		s->opts.idle(s->opts.ctx);
}

/* The profiles of earlier runs. */
struct open_job {
	struct disk_job job;
	uint64_t ids[SPOOL_DESTINATIONS_MAX];
	unsigned int n_ids;
	uint8_t deltas;
	struct spool_contents contents;
};

static void open_run(struct disk_job *base)
{
	struct open_job *job = container_of(base, struct open_job, job);

	job->job.r = spool_disk_read_all(job->job.disk, job->ids, job->n_ids, job->deltas,
					 &job->contents);
}

static void open_drop(struct disk_job *base)
{
	struct open_job *job = container_of(base, struct open_job, job);

	spool_index_deinit(&job->contents.index);
	free(job);
}

static void open_done(struct disk_job *base)
{
	struct open_job *job = container_of(base, struct open_job, job);
	struct spool *s = job->job.owner;

	if (s->closing) {
		spool_index_deinit(&job->contents.index);
		free(job);
		return;
	}
	if (job->job.r) {
		open_failed(s, job->job.r, 0);
		free(job);
		return;
	}
	s->opened = true;
	s->index = job->contents.index;
	s->next_number = job->contents.next_number;
	s->damaged += job->contents.n_damaged;
	for (size_t i = 0; i < s->index.n; i++)
		for (size_t k = 0; k < s->index.segments[i]->n; k++)
			s->recovered += s->index.segments[i]->places[k].live != 0;
	free(job);
	spool_changes(s, SPOOL_OK, 0);
	spool_answered(s);
}

static const struct disk_job_kind open_kind = {
	.run = open_run, .done = open_done, .drop = open_drop};

static int spool_read_all(struct spool *s)
{
	struct open_job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	job->deltas = s->index.deltas;
	for (; job->n_ids < s->opts.n_destinations; job->n_ids++)
		job->ids[job->n_ids] = s->feeds[job->n_ids].id;
	r = spool_submit(s, &job->job, &open_kind);
	if (r)
		free(job);
	return r;
}

/* Before the profiles: the start waits for the lock, but not for the reading. */
struct lock_job {
	struct disk_job job;
	pid_t holder;
};

static void lock_run(struct disk_job *base)
{
	struct lock_job *job = container_of(base, struct lock_job, job);

	base->r = spool_disk_open(base->disk, &job->holder);
}

static void lock_drop(struct disk_job *base)
{
	free(container_of(base, struct lock_job, job));
}

static void lock_done(struct disk_job *base)
{
	struct lock_job *job = container_of(base, struct lock_job, job);
	struct spool *s = base->owner;
	int r = base->r;

	if (!s->closing) {
		s->busy = false;
		s->locked = !r;
		if (s->locked)
			r = spool_read_all(s);
		if (r)
			open_failed(s, r, job->holder);
	}
	free(job);
}

static const struct disk_job_kind lock_kind = {
	.run = lock_run, .done = lock_done, .drop = lock_drop};

static int spool_lock(struct spool *s)
{
	struct lock_job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	r = spool_submit(s, &job->job, &lock_kind);
	if (r)
		free(job);
	return r;
}

static void on_open_timer(void *ctx)
{
	struct spool *s = ctx;

	if (s->locked ? spool_read_all(s) : spool_lock(s))
		(void)loop_arm(s->open_timer, s->opts.blocked_ns, 0);
}

/* ---- the whole */

static void spool_go_on(struct spool *s)
{
	if (!s->opened || s->closing)
		return;
	if (!s->writing && spool_has_to_write(s) && spool_write(s))
		spool_soon(s, NSEC_PER_SEC);
	else if (!s->writing && (s->n_acks || s->n_removals))
		spool_soon(s, RETRY_NS);
	for (unsigned int d = 0; d < s->opts.n_destinations; d++)
		feed_read(&s->feeds[d]);
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
		r = loop_add_timer(s->opts.loop, on_open_timer, s, &s->open_timer);
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

		s->feeds[d] = (struct feed){.s = s,
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
	if (!disk_thread_wait(s->thread, opts->open_wait_ns ? opts->open_wait_ns : OPEN_WAIT_NS))
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
