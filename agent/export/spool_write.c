// SPDX-License-Identifier: Apache-2.0
/* Profiles and acknowledgements on their way to the log, and the segments that begin and end. */
#include "export/spool_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/nsec.h"
#include "base/vec.h"
#include "export/destination.h"
#include "export/outbox.h"
#include "export/profile.h"

/* Acknowledgements of one write. */
#define BATCH_ACKS     4096
/* Runs of profiles whose acknowledgement waits for the disk, 24 bytes each. Reached: further
 * profiles are sent again after a restart. */
#define SPOOL_ACKS_MAX 65536
/* From a write to fdatasync(): the loss of a power cut. */
#define SYNC_NS	       (5 * NSEC_PER_SEC)

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

void spool_refuse(struct spool *s, struct pending *pending, int outcome)
{
	s->profiles[outcome < 0 ? SPOOL_FAILED : outcome]++;
	s->opts.refused(s->opts.ctx, pending->p, unwritten_of(pending)->mask);
	pending_free(pending);
}

void spool_refuse_all(struct spool *s, int outcome)
{
	while (s->pending.first)
		spool_refuse(s, pending_pop(&s->pending), outcome);
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

static void ack_add(struct spool *s, const struct spool_ack *ack)
{
	if (s->n_acks && ack_joins(&s->acks[s->n_acks - 1], ack)) {
		s->acks[s->n_acks - 1].n += ack->n; /* of a failed write: a run of several */
		return;
	}
	if (!vec_grow(&s->acks, &s->cap_acks, s->n_acks + 1, sizeof(*s->acks), SPOOL_ACKS_MAX))
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

void spool_acknowledge(struct spool_feed *feed, uint64_t segment_number, uint32_t at)
{
	struct spool_segment *segment = spool_index_find(&feed->s->index, segment_number);
	const struct spool_ack ack = {feed->id, segment_number, at, 1};

	if (!segment)
		return;
	spool_index_end(segment, at, feed->number);
	ack_add(feed->s, &ack);
}

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

static void write_failed(struct spool *s, struct write_job *job)
{
	struct pending *pending;

	while ((pending = pending_pop(&job->profiles)))
		spool_refuse(s, pending, job->job.r);
	for (size_t i = 0; i < job->n_acks; i++)
		ack_add(s, &job->acks[i]);
	s->retry_ns = nsec_monotonic() + SPOOL_RETRY_NS;
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
		spool_index_drop_newest(&s->index);
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

	while (s->pending.first && job->profiles.n < SPOOL_BATCH_PROFILES &&
	       (!size || size + unwritten_of(s->pending.first)->size <= SPOOL_BATCH_BYTES)) {
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
			spool_index_drop_newest(&s->index);
		job->begin = false;
		return -ENOMEM;
	}
	s->next_number += job->begin;
	job->number = segment->number;
	job->off = job->begin ? SPOOL_MAGIC_LEN : segment->bytes;
	return 0;
}

bool spool_has_to_write(const struct spool *s)
{
	if (s->pending.first)
		return true;
	if (nsec_monotonic() < s->retry_ns)
		return false;
	return s->n_acks || s->n_removals || (s->unsynced && (s->sync_due || s->flushing)) ||
	       (s->index.n && s->index.segments[0]->number != s->active &&
		spool_segment_is_done(s->index.segments[0]));
}

int spool_write(struct spool *s)
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
			spool_index_drop_newest(&s->index);
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
