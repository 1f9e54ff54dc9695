// SPDX-License-Identifier: Apache-2.0
/* Profiles on their way from the log to the destinations' outboxes. */
#include "export/spool_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/nsec.h"
#include "export/destination.h"
#include "export/outbox.h"
#include "export/profile.h"

/* Profiles of one destination in memory: four requests of the largest kind. */
#define LOADED_PROFILES 1024
/* From a read without memory or descriptors to the next. */
#define READ_RETRY_NS	NSEC_PER_SEC

/* The last reference of a profile from the disk. */
static void on_ended(struct queued_profile *p)
{
	struct spool_feed *feed = p->spool;

	feed->n_loaded--;
	feed->loaded_bytes -= p->bytes;
	if (!p->stays)
		spool_acknowledge(feed, p->segment, p->place);
	if (!feed->s->closing)
		spool_soon(feed->s, 0);
}

/* A segment may go while its profiles are in memory. */
static bool on_disk(const struct queued_profile *p)
{
	const struct spool_feed *feed = p->spool;

	return spool_index_find(&feed->s->index, p->segment);
}

static const struct queued_source spool_source = {.ended = on_ended, .on_disk = on_disk};

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
	struct spool_feed *feed;
	uint64_t segment;
	bool deltas;
	struct read_item items[SPOOL_BATCH_PROFILES];
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
	struct spool_feed *feed = job->feed;
	struct queued_profile *p;
	int r = item->r;

	if (!r)
		r = queued_profile_new(feed->box->budget, item->profile, &p);
	if (r < 0)
		return r;
	if (r) {
		read_count(job, item, EXPORT_DROPPED_DAMAGED);
		s->damaged++;
		spool_acknowledge(feed, job->segment, item->place);
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
	struct spool_feed *feed = job->feed;

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
static struct spool_segment *feed_segment(struct spool_feed *feed)
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

static void read_job_fill(struct spool_feed *feed, struct spool_segment *segment,
			  struct read_job *job)
{
	size_t bytes = 0;

	for (; feed->at < segment->n && job->n < SPOOL_BATCH_PROFILES; feed->at++) {
		const struct spool_place *place = &segment->places[feed->at];
		size_t len = place_len(segment, feed->at);

		if (!(place->live & 1u << feed->number))
			continue;
		if (bytes && bytes + len > SPOOL_BATCH_BYTES)
			return;
		bytes += len;
		job->items[job->n++] = (struct read_item){
			.place = (uint32_t)feed->at, .off = place->off, .len = len};
		spool_index_read(&feed->s->index, segment, feed->at, feed->number);
	}
}

void spool_feed_read(struct spool_feed *feed)
{
	struct spool *s = feed->s;
	struct spool_segment *segment;
	struct read_job *job;
	uint64_t now_ns;

	if (feed->reading || feed->n_loaded + SPOOL_BATCH_PROFILES > LOADED_PROFILES ||
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
