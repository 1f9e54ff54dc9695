// SPDX-License-Identifier: Apache-2.0
/*
 * A ring (sideband_ring.h) holds the records of some ten milliseconds where processes make them as
 * fast as they can, and the loop may be late by seconds. So the drain thread copies the records out
 * of a filling ring into a queue of the ring's CPU; the owner takes the queues just before the
 * samples. The lock guards rings and queues. Nobody holds it for longer than such a copy takes.
 *
 * Order. Each ring is ordered by time, and a heap of CPUs merges the queues. The time is the boot
 * clock, the clock of process start times.
 *
 * CPU hot-plug is handled as in perf_events.c, with one difference: a CPU that comes online may
 * have run unnoticed for a while, so its earlier events count as lost.
 */
#include "profile/sideband.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/vec.h"
#include "profile/perf_events.h"
#include "profile/sideband_ring.h"

/* From this part of the ceiling on the owner takes the queues at once. */
#define SIDEBAND_QUEUES_WAKE 8
/* An empty queue above this gives its memory back. */
#define SIDEBAND_QUEUE_KEEP  ((size_t)64 << 10)

/**
 * struct queue - copied records
 * @at:  the next one
 * @len: end of the last one
 */
struct queue {
	uint8_t *data;
	size_t at;
	size_t len;
	size_t cap;
};

/**
 * struct lane - one CPU
 * @in:  fetched records
 * @out: records under delivery, older than those of @in; the owner's
 */
struct lane {
	struct sideband_ring ring;
	bool online;
	struct queue in;
	struct queue out;
};

/**
 * struct loss - missing records
 * @is:       there are some
 * @since_ns: they are not older
 */
struct loss {
	bool is;
	uint64_t since_ns;
};

struct sideband {
	const struct root *sys;
	size_t ring_bytes; /* 0: not known yet */
	size_t queue_bytes;
	int epoll;
	pthread_mutex_t lock;
	struct lane *lanes; /* by CPU number */
	size_t n_lanes;
	size_t lanes_cap;
	uint32_t *heap; /* lanes with a record, the oldest first; as large as @lanes */
	size_t n_heap;
	size_t heap_cap;
	size_t queued;		/* bytes of @in and @out of all lanes */
	struct loss loss;	/* of the fetches since the last delivery */
	struct loss untold;	/* the owner's: to be told after the queues */
	uint64_t n_gaps;	/* the owner's: times that this was told */
	uint64_t last_ns;	/* of the last delivered record */
	uint64_t fetched_ns[2]; /* start of the last fetch and of the one before */
	int error;		/* of the last failure to open an event */
	uint64_t kinds[SIDEBAND_KIND_MAX];
	uint64_t outside;
	uint64_t odd;
	uint64_t lost;
	uint64_t n_full; /* records for which the queues had no room */
};

DEFINE_CLEANUP(struct sideband *, sideband_freep, sideband_free);

static void lose(struct loss *loss, uint64_t since_ns)
{
	if (!loss->is || since_ns < loss->since_ns)
		loss->since_ns = since_ns;
	loss->is = true;
}

/* ---------------------------------------------------------------- queues */

/* The bytes of a record at the end of @q, which does not count them yet. NULL without memory. */
static uint8_t *queue_room(struct queue *q, size_t n)
{
	if (vec_grow(&q->data, &q->cap, q->len + n, 1, 2 * SIDEBAND_QUEUES_MAX))
		return NULL;
	return q->data + q->len;
}

static uint16_t queue_size(const struct queue *q)
{
	uint16_t size;

	memcpy(&size, q->data + q->at + 6, sizeof(size)); /* behind type and misc */
	return size;
}

static uint64_t queue_time(const struct queue *q)
{
	uint64_t time_ns;

	memcpy(&time_ns, q->data + q->at + queue_size(q) - sizeof(time_ns), sizeof(time_ns));
	return time_ns;
}

static void queue_reset(struct queue *q)
{
	q->at = q->len = 0;
	if (q->cap <= SIDEBAND_QUEUE_KEEP)
		return;
	free(q->data);
	*q = (struct queue){0};
}

/* ---------------------------------------------------------------- fetching, with the lock */

struct fetch {
	struct sideband *sb;
	struct lane *lane;
};

/* A fetched record at the end of the lane's queue joins the queue if a receiver wants it. */
static void judge(struct sideband *sb, struct queue *q, const uint8_t *data, size_t n)
{
	struct sideband_record record;
	int r = sideband_decode(data, n, &record);

	sb->outside += r == SIDEBAND_OUTSIDE;
	sb->odd += r == SIDEBAND_ODD;
	if (r == SIDEBAND_ODD || (!r && record.kind == SIDEBAND_LOST))
		lose(&sb->loss, sb->fetched_ns[1]);
	if (r)
		return;
	sb->kinds[record.kind]++;
	sb->lost += record.n_lost;
	if (record.kind == SIDEBAND_LOST)
		return;
	if (sb->queued + n > sb->queue_bytes) {
		sb->n_full++;
		lose(&sb->loss, record.time_ns);
		return;
	}
	q->len += n;
	sb->queued += n;
}

static void take_raw(void *ctx, const void *a, size_t n_a, const void *b, size_t n_b)
{
	const struct fetch *fetch = ctx;
	struct queue *q = &fetch->lane->in;
	uint8_t *data = queue_room(q, n_a + n_b);

	if (!data) {
		fetch->sb->n_full++;
		lose(&fetch->sb->loss, fetch->sb->fetched_ns[1]);
		return;
	}
	memcpy(data, a, n_a);
	memcpy(data + n_a, b, n_b);
	judge(fetch->sb, q, data, n_a + n_b);
}

/* Copies the records of the lane's ring into its queue. */
static void lane_fetch(struct sideband *sb, struct lane *lane)
{
	struct fetch fetch = {.sb = sb, .lane = lane};
	int r = sideband_ring_read(&lane->ring, take_raw, &fetch);

	sb->odd += r == SIDEBAND_RING_ODD;
	if (r)
		lose(&sb->loss, sb->fetched_ns[1]);
}

/* ---------------------------------------------------------------- events */

static void lane_open(struct sideband *sb, size_t cpu)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	struct lane *lane = &sb->lanes[cpu];
	int r = sideband_ring_open(&lane->ring, (int)cpu, sb->ring_bytes);

	if (r == -ENODEV || r == -ENXIO)
		return; /* it went offline after we read the list */
	if (!r && epoll_ctl(sb->epoll, EPOLL_CTL_ADD, lane->ring.fd, &event) < 0) {
		r = -errno;
		sideband_ring_close(&lane->ring);
	}
	if (r)
		sb->error = r;
}

/* The ring of a CPU that went offline still has its last records. */
static void lane_close(struct sideband *sb, struct lane *lane)
{
	lane_fetch(sb, lane);
	sideband_ring_close(&lane->ring);
}

static bool has_event(const struct lane *lane)
{
	return lane->ring.fd >= 0;
}

static void mark_online(void *ctx, unsigned int cpu)
{
	struct sideband *sb = ctx;
	size_t n = (size_t)cpu + 1;

	if (vec_grow(&sb->lanes, &sb->lanes_cap, n, sizeof(*sb->lanes), PERF_EVENTS_CPUS_MAX) ||
	    vec_grow(&sb->heap, &sb->heap_cap, n, sizeof(*sb->heap), PERF_EVENTS_CPUS_MAX)) {
		sb->error = -ENOMEM;
		return;
	}
	for (; sb->n_lanes < n; sb->n_lanes++)
		sb->lanes[sb->n_lanes] = (struct lane){.ring = {.fd = -1}};
	sb->lanes[cpu].online = true;
}

/* Of each of @n_cpus rings. */
static size_t bytes_for(size_t n_cpus)
{
	size_t bytes = SIDEBAND_RING_BYTES_MOST;

	while (bytes > SIDEBAND_RING_BYTES && bytes * n_cpus > SIDEBAND_RINGS_BYTES)
		bytes /= 2;
	return bytes;
}

static int follow(struct sideband *sb)
{
	int r;

	for (size_t i = 0; i < sb->n_lanes; i++)
		sb->lanes[i].online = false;
	r = perf_events_for_each_online(sb->sys, mark_online, sb);
	if (r)
		return r;
	if (!sb->ring_bytes)
		sb->ring_bytes = bytes_for(sb->n_lanes);
	for (size_t cpu = 0; cpu < sb->n_lanes; cpu++) {
		struct lane *lane = &sb->lanes[cpu];

		if (has_event(lane) && (!lane->online || !sideband_ring_alive(&lane->ring)))
			lane_close(sb, lane);
		if (!has_event(lane) && lane->online) {
			lane_open(sb, cpu);
			lose(&sb->loss, 0); /* the CPU may have been online for a second */
		}
	}
	return 0;
}

int sideband_follow(struct sideband *sb)
{
	int r;

	pthread_mutex_lock(&sb->lock);
	r = follow(sb);
	pthread_mutex_unlock(&sb->lock);
	return r;
}

/* Only the owner opens and closes events, so its looks at them need no lock. */
bool sideband_whole(const struct sideband *sb)
{
	for (size_t cpu = 0; cpu < sb->n_lanes; cpu++)
		if (sb->lanes[cpu].online && !has_event(&sb->lanes[cpu]))
			return false;
	return true;
}

/* ---------------------------------------------------------------- life */

static void close_rings(struct sideband *sb)
{
	for (size_t i = 0; i < sb->n_lanes; i++)
		sideband_ring_close(&sb->lanes[i].ring);
}

/* Where the kernel locks less memory for podprof, all rings are smaller. */
static int sideband_init(struct sideband *sb)
{
	int r;

	sb->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (sb->epoll < 0)
		return -errno;
	r = follow(sb);
	while (!r && sb->error == -EPERM && sb->ring_bytes > SIDEBAND_RING_BYTES) {
		close_rings(sb);
		sb->ring_bytes /= 2;
		sb->error = 0;
		r = follow(sb);
	}
	if (r)
		return r < 0 ? r : -ENOENT;
	sb->loss = (struct loss){0};
	if (sideband_n_open(sb))
		return 0;
	return sb->error ? sb->error : -ENODEV;
}

int sideband_new(const struct sideband_opts *opts, struct sideband **ret)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_(sideband_freep) struct sideband *sb = calloc(1, sizeof(*sb));
	int r;

	if (!sb)
		return -ENOMEM;
	pthread_mutex_init(&sb->lock, NULL);
	sb->epoll = -1;
	sb->sys = opts->sys;
	sb->ring_bytes = opts->ring_bytes && opts->ring_bytes < page ? page : opts->ring_bytes;
	sb->queue_bytes = opts->queue_bytes ? opts->queue_bytes : SIDEBAND_QUEUES_MAX;
	if (sb->ring_bytes & (sb->ring_bytes - 1))
		return -EINVAL;
	r = sideband_init(sb);
	if (r)
		return r;
	*ret = take_ptr(sb);
	return 0;
}

void sideband_free(struct sideband *sb)
{
	if (!sb)
		return;
	close_rings(sb);
	for (size_t i = 0; i < sb->n_lanes; i++) {
		free(sb->lanes[i].in.data);
		free(sb->lanes[i].out.data);
	}
	if (sb->epoll >= 0)
		close(sb->epoll);
	pthread_mutex_destroy(&sb->lock);
	free(sb->lanes);
	free(sb->heap);
	free(sb);
}

/* ---------------------------------------------------------------- all rings, with the lock */

/* Clear the wakeups. The kernel wakes again only when another eighth of a ring
 * (SIDEBAND_RING_WAKE) is full. */
static void forget_wakeups(struct sideband *sb)
{
	struct epoll_event events[64];

	while (epoll_wait(sb->epoll, events, array_size(events), 0) == array_size(events))
		continue;
}

/* A dropped record is no older than the start of the fetch before the last. */
static void fetch_all(struct sideband *sb)
{
	const uint64_t before_ns = sb->fetched_ns[0], now_ns = nsec_boot();

	forget_wakeups(sb);
	for (size_t i = 0; i < sb->n_lanes; i++)
		if (has_event(&sb->lanes[i]))
			lane_fetch(sb, &sb->lanes[i]);
	sb->fetched_ns[1] = before_ns;
	sb->fetched_ns[0] = now_ns;
}

bool sideband_fetch(struct sideband *sb)
{
	bool wake;

	pthread_mutex_lock(&sb->lock);
	fetch_all(sb);
	wake = sb->queued > sb->queue_bytes / SIDEBAND_QUEUES_WAKE || sb->loss.is;
	pthread_mutex_unlock(&sb->lock);
	return wake;
}

/* ---------------------------------------------------------------- delivery */

static bool has_record(const struct lane *lane)
{
	return lane->out.at < lane->out.len;
}

static uint64_t heap_time(const struct sideband *sb, size_t i)
{
	return queue_time(&sb->lanes[sb->heap[i]].out);
}

static void heap_swap(struct sideband *sb, size_t a, size_t b)
{
	uint32_t lane = sb->heap[a];

	sb->heap[a] = sb->heap[b];
	sb->heap[b] = lane;
}

static void heap_add(struct sideband *sb, size_t lane)
{
	size_t i = sb->n_heap++;

	sb->heap[i] = (uint32_t)lane;
	for (; i && heap_time(sb, i) < heap_time(sb, (i - 1) / 2); i = (i - 1) / 2)
		heap_swap(sb, i, (i - 1) / 2);
}

/* Restore the heap after the first lane has moved to a later record. */
static void heap_sink(struct sideband *sb)
{
	size_t i = 0, child;

	while ((child = 2 * i + 1) < sb->n_heap) {
		if (child + 1 < sb->n_heap && heap_time(sb, child + 1) < heap_time(sb, child))
			child++;
		if (heap_time(sb, i) <= heap_time(sb, child))
			return;
		heap_swap(sb, i, child);
		i = child;
	}
}

/* Adds the records of @in to @out. False without memory. */
static bool queue_append(struct queue *out, const struct queue *in)
{
	uint8_t *room;

	if (!in->len)
		return true;
	out->len -= out->at;
	memmove(out->data, out->data + out->at, out->len);
	out->at = 0;
	room = queue_room(out, in->len);
	if (!room)
		return false;
	memcpy(room, in->data, in->len);
	out->len += in->len;
	return true;
}

/* Moves the fetched records of @lane behind those under delivery. Without memory they are lost. */
static void lane_take(struct sideband *sb, struct lane *lane)
{
	const struct queue out = lane->out;

	if (!has_record(lane)) {
		lane->out = lane->in;
		lane->in = out;
	} else if (!queue_append(&lane->out, &lane->in)) {
		lose(&sb->loss, sb->last_ns);
		sb->queued -= lane->in.len;
	}
	queue_reset(&lane->in);
}

static void take_all(struct sideband *sb)
{
	pthread_mutex_lock(&sb->lock);
	fetch_all(sb);
	for (size_t i = 0; i < sb->n_lanes; i++)
		lane_take(sb, &sb->lanes[i]);
	if (sb->loss.is)
		lose(&sb->untold, sb->loss.since_ns);
	sb->loss = (struct loss){0};
	pthread_mutex_unlock(&sb->lock);
}

/* Delivers the first record of @lane; the number of its bytes. */
static size_t deliver(struct sideband *sb, struct lane *lane, sideband_fn fn, void *ctx)
{
	const size_t n = queue_size(&lane->out);
	struct sideband_record record;

	/* decoded before: it is in the queue */
	(void)sideband_decode(lane->out.data + lane->out.at, n, &record);
	sb->last_ns = record.time_ns;
	fn(ctx, &record);
	lane->out.at += n;
	return n;
}

static void tell_lost(struct sideband *sb, sideband_fn fn, void *ctx)
{
	const struct sideband_record record = {.kind = SIDEBAND_LOST,
					       .time_ns = sb->last_ns,
					       .since_ns = sb->untold.since_ns,
					       .name = ""};

	if (sb->untold.is)
		fn(ctx, &record);
	sb->n_gaps += sb->untold.is;
	sb->untold = (struct loss){0};
}

size_t sideband_drain(struct sideband *sb, uint64_t until_ns, size_t max, sideband_fn fn, void *ctx)
{
	size_t n = 0, n_bytes = 0;

	take_all(sb);
	sb->n_heap = 0;
	for (size_t i = 0; i < sb->n_lanes; i++)
		if (has_record(&sb->lanes[i]))
			heap_add(sb, i);
	for (; n < max && sb->n_heap && heap_time(sb, 0) < until_ns; n++) {
		struct lane *lane = &sb->lanes[sb->heap[0]];

		n_bytes += deliver(sb, lane, fn, ctx);
		if (!has_record(lane)) {
			queue_reset(&lane->out);
			sb->heap[0] = sb->heap[--sb->n_heap];
		}
		heap_sink(sb);
	}
	pthread_mutex_lock(&sb->lock);
	sb->queued -= n_bytes;
	pthread_mutex_unlock(&sb->lock);
	if (n < max)
		tell_lost(sb, fn, ctx);
	return n;
}

uint64_t sideband_until(void)
{
	return nsec_boot() - SIDEBAND_ARRIVAL_NS;
}

int sideband_fd(const struct sideband *sb)
{
	return sb->epoll;
}

size_t sideband_n_open(const struct sideband *sb)
{
	size_t n = 0;

	for (size_t i = 0; i < sb->n_lanes; i++)
		n += has_event(&sb->lanes[i]);
	return n;
}

uint64_t sideband_n_lost(struct sideband *sb)
{
	uint64_t n;

	pthread_mutex_lock(&sb->lock);
	n = sb->lost + sb->n_full;
	pthread_mutex_unlock(&sb->lock);
	return n;
}

void sideband_collect(void *sideband, struct metric_sink *sink)
{
	static const struct metric_family_desc events = {"podprof_process_events", METRIC_COUNTER,
							 "Process events of the kernel, by kind.",
							 NULL};
	static const struct metric_family_desc lost = {"podprof_process_events_lost",
						       METRIC_COUNTER,
						       "Lost process events, by reason.", NULL};
	static const char *const reasons[] = {"ring_full", "queue_full", "other_pid_namespace",
					      "invalid"};
	struct sideband *sb = sideband;
	uint64_t counts[array_size(reasons)], kinds[SIDEBAND_LOST];
	const char *names[SIDEBAND_LOST];
	static const struct metric_family_desc gaps = {
		"podprof_process_event_gaps", METRIC_COUNTER,
		"Times that process events are or may be missing.", NULL};

	pthread_mutex_lock(&sb->lock);
	memcpy(kinds, sb->kinds, sizeof(kinds));
	memcpy(counts, (uint64_t[]){sb->lost, sb->n_full, sb->outside, sb->odd}, sizeof(counts));
	pthread_mutex_unlock(&sb->lock);
	for (int kind = 0; kind < SIDEBAND_LOST; kind++)
		names[kind] = sideband_kind_name(kind);
	metric_by_name(sink, &events, "kind", kinds, names, SIDEBAND_LOST);
	metric_by_name(sink, &lost, "reason", counts, reasons, array_size(reasons));
	metric_family(sink, &gaps);
	metric_u64(sink, sb->n_gaps, NULL, 0);
}
