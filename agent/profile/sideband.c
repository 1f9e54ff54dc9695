// SPDX-License-Identifier: Apache-2.0
/*
 * The software event "dummy" counts nothing and never fires. Its purpose is its ring: the kernel
 * writes a record for every fork, exec, executable mapping and exit on the event's CPU, of any
 * process. No BPF program runs. A half full ring wakes the agent; otherwise the owner drains the
 * rings just before the samples.
 *
 * What is not asked for: build ids in the records (PERF_RECORD_MISC_MMAP_BUILD_ID, Linux 5.12). The
 * kernel then reads the file's notes at every mapping and leaves out device and inode, which is
 * what images that are known already are found by. Data mappings: twenty for each program.
 *
 * Order. Each ring is in the order of time, so they are merged by a heap of CPUs. Time is the boot
 * clock, in which processes' start times are.
 *
 * Hot-plug is as in perf_events.c, and a CPU that has come may have told nobody what happened
 * there; but a dummy event has no count that grows: the time that it was enabled does, as long as
 * its CPU is there.
 */
#include "profile/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "base/vec.h"
#include "profile/perf_events.h"

/* From the moment whose time is in a record to its being in the ring. Measured: below 100 us; a
 * virtual CPU that is taken away in between makes it longer, and the order wrong, which whoever
 * takes the records must bear anyway where some were lost. */
#define SIDEBAND_ARRIVAL_NS NSEC_PER_MSEC

/* A ring with less room than this may have had none for the last record: the kernel tells that with
 * the next one that finds some. The longest has a path of PATH_MAX bytes, others have 150. */
#define SIDEBAND_ROOM 4352

/* The kernel's length field has 16 bits. Reached: -. */
#define SIDEBAND_RECORD_MAX 65536

/**
 * struct lane - one CPU's event
 * @fd:         -1 while there is none
 * @page:       the ring's first page; behind it @bytes of data
 * @tail, @head: next byte to be read, and behind the last one that may be
 * @begun:      @tail when the drain began
 * @time_ns:    of the record at @tail
 * @size:       of the same
 * @enabled_ns: time that the event had been enabled at the last look
 */
struct lane {
	int fd;
	bool online;
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t tail;
	uint64_t head;
	uint64_t begun;
	uint64_t time_ns;
	uint16_t size;
	uint64_t enabled_ns;
};

struct sideband {
	const struct root *sys;
	size_t ring_bytes;
	int epoll;
	struct lane *lanes; /* by CPU number */
	size_t n_lanes;
	size_t lanes_cap;
	uint32_t *heap; /* lanes that have a record, the oldest first; as large as @lanes */
	size_t n_heap;
	size_t heap_cap;
	uint8_t *linear;      /* a record that runs around the ring's end, in one piece */
	bool full;	      /* some ring is, or was since the last drain, or made no sense */
	bool deaf;	      /* a CPU had no ring for a while */
	uint64_t last_ns;     /* of the record handed over last */
	uint64_t begun_ns[2]; /* when this drain and the one before it began */
	int error;	      /* of the last event that could not be opened */
	uint64_t kinds[SIDEBAND_KIND_MAX];
	uint64_t outside;
	uint64_t odd;
	uint64_t lost;
};

DEFINE_CLEANUP(struct sideband *, sideband_freep, sideband_free);

/* ---------------------------------------------------------------- events */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int event_open(const struct sideband *sb, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.sample_id_all = 1,
		.exclude_kernel = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)(sb->ring_bytes / 2),
		.use_clockid = 1,
		.clockid = CLOCK_BOOTTIME,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static void lane_close(struct sideband *sb, struct lane *lane)
{
	if (lane->page)
		munmap(lane->page, page_bytes() + sb->ring_bytes);
	if (lane->fd >= 0)
		close(lane->fd);
	*lane = (struct lane){.fd = -1, .online = lane->online};
}

static int lane_map(struct sideband *sb, struct lane *lane)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	void *page = mmap(NULL, page_bytes() + sb->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			  lane->fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	lane->page = page;
	lane->data = (const uint8_t *)page + page_bytes();
	return epoll_ctl(sb->epoll, EPOLL_CTL_ADD, lane->fd, &event) < 0 ? -errno : 0;
}

static void lane_open(struct sideband *sb, size_t cpu)
{
	struct lane *lane = &sb->lanes[cpu];
	int fd = event_open(sb, (int)cpu), r = fd;

	if (fd == -ENODEV || fd == -ENXIO)
		return; /* it went offline after we read the list */
	if (fd >= 0) {
		lane->fd = fd;
		r = lane_map(sb, lane);
	}
	if (r < 0) {
		sb->error = r;
		lane_close(sb, lane);
	}
}

static bool lane_alive(struct lane *lane)
{
	uint64_t counted[2]; /* value, time enabled */

	if (read(lane->fd, counted, sizeof(counted)) != sizeof(counted) ||
	    counted[1] == lane->enabled_ns)
		return false;
	lane->enabled_ns = counted[1];
	return true;
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
		sb->lanes[sb->n_lanes] = (struct lane){.fd = -1};
	sb->lanes[cpu].online = true;
}

int sideband_follow(struct sideband *sb)
{
	int r;

	for (size_t i = 0; i < sb->n_lanes; i++)
		sb->lanes[i].online = false;
	r = perf_events_for_each_online(sb->sys, mark_online, sb);
	if (r)
		return r;
	for (size_t cpu = 0; cpu < sb->n_lanes; cpu++) {
		struct lane *lane = &sb->lanes[cpu];

		if (lane->fd >= 0 && (!lane->online || !lane_alive(lane)))
			lane_close(sb, lane);
		if (lane->fd < 0 && lane->online) {
			lane_open(sb, cpu);
			sb->deaf = true; /* it may have been there for a second */
		}
	}
	return 0;
}

/* ---------------------------------------------------------------- life */

static int sideband_init(struct sideband *sb)
{
	int r;

	sb->linear = malloc(SIDEBAND_RECORD_MAX);
	if (!sb->linear)
		return -ENOMEM;
	sb->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (sb->epoll < 0)
		return -errno;
	r = sideband_follow(sb);
	if (r)
		return r < 0 ? r : -ENOENT;
	sb->deaf = false;
	if (sideband_n_open(sb))
		return 0;
	return sb->error ? sb->error : -ENODEV;
}

int sideband_new(const struct sideband_opts *opts, struct sideband **ret)
{
	_cleanup_(sideband_freep) struct sideband *sb = calloc(1, sizeof(*sb));
	size_t bytes = opts->ring_bytes ? opts->ring_bytes : SIDEBAND_RING_BYTES;
	int r;

	if (!sb)
		return -ENOMEM;
	sb->epoll = -1;
	sb->sys = opts->sys;
	sb->ring_bytes = bytes > page_bytes() ? bytes : page_bytes();
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
	for (size_t i = 0; i < sb->n_lanes; i++)
		lane_close(sb, &sb->lanes[i]);
	if (sb->epoll >= 0)
		close(sb->epoll);
	free(sb->lanes);
	free(sb->heap);
	free(sb->linear);
	free(sb);
}

/* ---------------------------------------------------------------- one ring */

/* Records and their parts are multiples of 8 and so is the ring: a word does not run around its
 * end. */
static uint64_t word_at(const struct sideband *sb, const struct lane *lane, uint64_t pos)
{
	uint64_t word;

	memcpy(&word, lane->data + (pos & (sb->ring_bytes - 1)), sizeof(word));
	return word;
}

/* Look at the record at the tail. False at the end, and where the ring makes no sense: its contents
 * are then dropped. */
static bool lane_peek(struct sideband *sb, struct lane *lane)
{
	uint64_t left = lane->head - lane->tail;
	uint16_t size;

	if (!left)
		return false;
	size = (uint16_t)(word_at(sb, lane, lane->tail) >> 48);
	if (size < SIDEBAND_HEADER_BYTES + SIDEBAND_SUFFIX_BYTES || size % 8 || size > left ||
	    left > sb->ring_bytes) {
		sb->odd++;
		sb->full = true;
		lane->tail = lane->head;
		return false;
	}
	lane->size = size;
	lane->time_ns = word_at(sb, lane, lane->tail + size - 8);
	return true;
}

/* The record in one piece. */
static const void *lane_record(struct sideband *sb, const struct lane *lane)
{
	size_t at = lane->tail & (sb->ring_bytes - 1), to_end = sb->ring_bytes - at;

	if (lane->size <= to_end)
		return lane->data + at;
	memcpy(sb->linear, lane->data + at, to_end);
	memcpy(sb->linear + to_end, lane->data, lane->size - to_end);
	return sb->linear;
}

/* Whether another record follows. */
static bool lane_next(struct sideband *sb, struct lane *lane)
{
	bool more;

	lane->tail += lane->size;
	more = lane_peek(sb, lane);
	__atomic_store_n(&lane->page->data_tail, lane->tail, __ATOMIC_RELEASE);
	return more;
}

static bool lane_begin(struct sideband *sb, struct lane *lane)
{
	lane->head = __atomic_load_n(&lane->page->data_head, __ATOMIC_ACQUIRE);
	lane->tail = lane->page->data_tail;
	lane->size = 0;
	lane->begun = lane->tail;
	return lane_next(sb, lane);
}

/* ---------------------------------------------------------------- all rings */

static uint64_t heap_time(const struct sideband *sb, size_t i)
{
	return sb->lanes[sb->heap[i]].time_ns;
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

/* The first one's time has become later. */
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

/* 1 if it was handed over. */
static size_t deliver(struct sideband *sb, const struct lane *lane, sideband_fn fn, void *ctx)
{
	struct sideband_record record;
	int r = sideband_decode(lane_record(sb, lane), lane->size, &record);

	sb->outside += r == SIDEBAND_OUTSIDE;
	sb->odd += r == SIDEBAND_ODD;
	sb->full |= r == SIDEBAND_ODD;
	if (r)
		return 0;
	sb->kinds[record.kind]++;
	sb->lost += record.n_lost;
	sb->last_ns = record.time_ns;
	sb->full |= record.kind == SIDEBAND_LOST;
	if (record.kind == SIDEBAND_LOST)
		return 0;
	fn(ctx, &record);
	return 1;
}

/* The rings that were half full are told of again only when they are so again. */
static void forget_wakeups(struct sideband *sb)
{
	struct epoll_event events[64];

	while (epoll_wait(sb->epoll, events, array_size(events), 0) == array_size(events))
		continue;
}

/* As if nothing had been taken out meanwhile: it may have been full when we began. */
static void look_for_full(struct sideband *sb)
{
	for (size_t i = 0; i < sb->n_lanes; i++) {
		const struct lane *lane = &sb->lanes[i];

		if (lane->fd >= 0)
			sb->full |= __atomic_load_n(&lane->page->data_head, __ATOMIC_ACQUIRE) -
					    lane->begun + SIDEBAND_ROOM >
				    sb->ring_bytes;
	}
}

/* What found no room did so since the drain before the last, whose end it may have been. */
static void tell_lost(struct sideband *sb, uint64_t since_ns, sideband_fn fn, void *ctx)
{
	const struct sideband_record record = {.kind = SIDEBAND_LOST,
					       .time_ns = sb->last_ns,
					       .since_ns = sb->deaf ? 0 : since_ns,
					       .name = ""};

	if (sb->full || sb->deaf)
		fn(ctx, &record);
	sb->deaf = false;
}

size_t sideband_drain(struct sideband *sb, uint64_t until_ns, sideband_fn fn, void *ctx)
{
	const uint64_t since_ns = sb->begun_ns[1];
	size_t n = 0;

	forget_wakeups(sb);
	sb->begun_ns[1] = sb->begun_ns[0];
	sb->begun_ns[0] = nsec_boot();
	sb->full = false;
	sb->n_heap = 0;
	for (size_t i = 0; i < sb->n_lanes; i++)
		if (sb->lanes[i].fd >= 0 && lane_begin(sb, &sb->lanes[i]))
			heap_add(sb, i);
	while (sb->n_heap && heap_time(sb, 0) < until_ns) {
		struct lane *lane = &sb->lanes[sb->heap[0]];

		n += deliver(sb, lane, fn, ctx);
		if (!lane_next(sb, lane))
			sb->heap[0] = sb->heap[--sb->n_heap];
		heap_sink(sb);
	}
	look_for_full(sb);
	tell_lost(sb, since_ns, fn, ctx);
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
		n += sb->lanes[i].fd >= 0;
	return n;
}

uint64_t sideband_n_lost(const struct sideband *sb)
{
	return sb->lost;
}

void sideband_collect(void *sideband, struct metric_sink *sink)
{
	static const struct metric_family_desc events = {"podprof_process_events", METRIC_COUNTER,
							 "Process events of the kernel, by kind.",
							 NULL};
	static const struct metric_family_desc lost = {"podprof_process_events_lost",
						       METRIC_COUNTER,
						       "Lost process events, by reason.", NULL};
	static const char *const reasons[] = {"ring_full", "other_pid_namespace", "invalid"};
	const struct sideband *sb = sideband;
	const uint64_t counts[] = {sb->lost, sb->outside, sb->odd};
	const char *names[SIDEBAND_LOST];

	for (int kind = 0; kind < SIDEBAND_LOST; kind++)
		names[kind] = sideband_kind_name(kind);
	metric_by_name(sink, &events, "kind", sb->kinds, names, SIDEBAND_LOST);
	metric_by_name(sink, &lost, "reason", counts, reasons, array_size(reasons));
}
