// SPDX-License-Identifier: Apache-2.0
/*
 * The software event "dummy" counts nothing and never fires. Its purpose is its ring: the kernel
 * writes a record for every fork, exec, executable mapping and exit of any process on the event's
 * CPU. No BPF program runs.
 *
 * Two options stay off. Build ids in the records (PERF_RECORD_MISC_MMAP_BUILD_ID, Linux 5.12): the
 * kernel then reads the file's notes at every mapping and leaves out device and inode, by which
 * podprof finds known images. Data mappings: twenty for each program.
 */
#include "profile/sideband_ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "profile/sideband_record.h"

/* With less free room than this, the kernel may have dropped the next record: it reports a drop
 * only with the next record that fits. The longest record has a path of PATH_MAX bytes, others have
 * 150. */
#define SIDEBAND_ROOM 4352

/* Bytes that a read gives back at a time. */
#define SIDEBAND_PART 4096

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int open_event(int cpu, size_t ring_bytes)
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
		.wakeup_watermark = (uint32_t)(ring_bytes / SIDEBAND_RING_WAKE),
		.use_clockid = 1,
		.clockid = CLOCK_BOOTTIME,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int sideband_ring_open(struct sideband_ring *ring, int cpu, size_t bytes)
{
	int fd = open_event(cpu, bytes);
	void *page;

	if (fd < 0)
		return fd;
	page = mmap(NULL, page_bytes() + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		int r = -errno;

		close(fd);
		return r;
	}
	*ring = (struct sideband_ring){
		.fd = fd,
		.page = page,
		.data = (const uint8_t *)page + page_bytes(),
		.bytes = bytes,
	};
	return 0;
}

void sideband_ring_close(struct sideband_ring *ring)
{
	if (ring->page)
		munmap(ring->page, page_bytes() + ring->bytes);
	if (ring->fd >= 0)
		close(ring->fd);
	*ring = (struct sideband_ring){.fd = -1};
}

/* A dummy event has no growing count. The time for which the event was enabled grows as long as its
 * CPU is online. */
bool sideband_ring_alive(struct sideband_ring *ring)
{
	uint64_t counted[2]; /* value, time enabled */

	if (read(ring->fd, counted, sizeof(counted)) != sizeof(counted) ||
	    counted[1] == ring->enabled_ns)
		return false;
	ring->enabled_ns = counted[1];
	return true;
}

/* The size of the record at @pos; 0 if that is no record. Records and the ring are multiples of 8
 * bytes, so no word wraps around. */
static size_t size_at(const struct sideband_ring *ring, uint64_t pos, uint64_t head)
{
	uint64_t word;
	uint16_t size;

	memcpy(&word, ring->data + (pos & (ring->bytes - 1)), sizeof(word));
	size = (uint16_t)(word >> 48);
	if (size < SIDEBAND_HEADER_BYTES + SIDEBAND_SUFFIX_BYTES || size % 8 || size > head - pos)
		return 0;
	return size;
}

static void deliver(const struct sideband_ring *ring, uint64_t pos, size_t n, sideband_raw_fn fn,
		    void *ctx)
{
	size_t at = pos & (ring->bytes - 1), to_end = ring->bytes - at;
	size_t n_a = n < to_end ? n : to_end;

	fn(ctx, ring->data + at, n_a, ring->data, n - n_a);
}

static uint64_t head_of(const struct sideband_ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

/* Gives the room before @pos back to the kernel. True if the ring may have been full until then: a
 * dropped record leaves the head where it was, so the head now tells it. */
static bool release(struct sideband_ring *ring, uint64_t pos)
{
	const uint64_t tail = ring->page->data_tail;

	__atomic_store_n(&ring->page->data_tail, pos, __ATOMIC_SEQ_CST);
	return head_of(ring) - tail + SIDEBAND_ROOM > ring->bytes;
}

/* The room is given back in parts, so the kernel goes on writing into a full ring at once. */
int sideband_ring_read(struct sideband_ring *ring, sideband_raw_fn fn, void *ctx)
{
	uint64_t pos = ring->page->data_tail, head = head_of(ring), part = pos;
	int r = head - pos > ring->bytes ? SIDEBAND_RING_ODD : SIDEBAND_RING_OK;
	bool full = false;

	while (!r && pos != head) {
		size_t n = size_at(ring, pos, head);

		if (n)
			deliver(ring, pos, n, fn, ctx);
		else
			r = SIDEBAND_RING_ODD;
		pos += n;
		if (pos - part < SIDEBAND_PART)
			continue;
		full = release(ring, pos) || full;
		part = pos;
	}
	full = release(ring, r ? head : pos) || full;
	if (!r && full)
		r = SIDEBAND_RING_FULL;
	return r;
}
