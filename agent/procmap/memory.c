// SPDX-License-Identifier: Apache-2.0
/*
 * Reading another process's memory.
 *
 * process_vm_readv(2) copies up to 1024 ranges in a call. The call stops at the first unreadable
 * page and returns the number of bytes copied, possibly in the middle of a range; for 0 bytes the
 * call fails with EFAULT. So a hole in the address space and a short answer are the same here, and
 * the caller learns the length of the copy.
 *
 * A pid may belong to another process by the time of the call. A check of (pid, start time) after
 * the reads proves the identity for all reads, because a process does not come back. An exec keeps
 * both, so the address space is checked, too: a descriptor of /proc/PID/mem stays with the address
 * space of the opening and reads as an empty file afterwards (proc(5); mem_rw() in fs/proc/base.c).
 * Another reader of the process may hold the old address space a moment longer than the exec. Until
 * then the reads are of the new program, and only their content can tell.
 */
#include "procmap/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"

/* ---------------------------------------------------------------- any memory */

static int memory_fill(struct memory *m, const struct memory_range *ranges, size_t n, size_t *ret)
{
	int r;

	if (m->end_calls && m->n_calls >= m->end_calls)
		return MEMORY_UNMAPPED;
	m->n_calls++;
	r = m->read(m, ranges, n, ret);
	if (!r)
		m->n_bytes += *ret;
	return r;
}

int memory_read_some(struct memory *m, uint64_t addr, void *ret, size_t n, size_t *ret_n)
{
	struct memory_range range = {addr, ret, n};
	size_t got = 0;
	uint64_t end;
	int r;

	if (n == 0 || __builtin_add_overflow(addr, n, &end))
		return MEMORY_UNMAPPED;
	r = memory_fill(m, &range, 1, &got);
	if (r)
		return r;
	if (got == 0)
		return MEMORY_UNMAPPED;
	*ret_n = got;
	return 0;
}

int memory_read(struct memory *m, uint64_t addr, void *ret, size_t n)
{
	size_t got = 0;
	int r = n ? memory_read_some(m, addr, ret, n, &got) : 0;

	if (r)
		return r;
	return got == n ? 0 : MEMORY_UNMAPPED;
}

int memory_read_ranges(struct memory *m, const struct memory_range *ranges, size_t n)
{
	while (n) {
		size_t step = n < MEMORY_RANGES_MAX ? n : MEMORY_RANGES_MAX;
		size_t want = 0, got = 0;
		int r;

		for (size_t i = 0; i < step; i++)
			want += ranges[i].n;
		r = memory_fill(m, ranges, step, &got);
		if (r)
			return r;
		if (got != want)
			return MEMORY_UNMAPPED;
		ranges += step;
		n -= step;
	}
	return 0;
}

int memory_check(struct memory *m)
{
	return m->check(m);
}

void memory_forget(struct memory *m)
{
	if (m->forget)
		m->forget(m);
}

struct memory *memory_beneath(struct memory *m)
{
	return m->beneath ? m->beneath : m;
}

/* ---------------------------------------------------------------- a live process */

static int outcome_of_errno(int err)
{
	switch (err) {
	case ESRCH:
	case ENOENT:
		return MEMORY_GONE;
	case EPERM:
	case EACCES:
		return MEMORY_DENIED;
	default:
		return -err;
	}
}

static int outcome_of_pid(int r)
{
	switch (r) {
	case PID_GONE:
		return MEMORY_GONE;
	case PID_DENIED:
		return MEMORY_DENIED;
	case PID_ODD:
		return -EIO;
	default:
		return r;
	}
}

/* Bytes of near ranges, with the gaps between them, that the kernel reads as one range: it searches
 * the page of each range, which takes as long as copying some KiB. Reached: another range. */
#define SPAN_BYTES_MAX	512
/* Bytes of all spans of a call. Reached: the other ranges are read one by one. */
#define SPANS_BYTES_MAX 8192

/* Consecutive ranges within a page. A range alone may be of any size. */
struct span {
	uint64_t begin;
	uint64_t end;
	size_t n_ranges;
};

static bool is_in_page(uint64_t begin, uint64_t end)
{
	return begin < end && end - begin <= SPAN_BYTES_MAX &&
	       begin / MEMORY_PAGE_BYTES == (end - 1) / MEMORY_PAGE_BYTES;
}

/* The span that begins with the first of @n ranges. */
static struct span first_span(const struct memory_range *ranges, size_t n)
{
	struct span span = {ranges[0].addr, ranges[0].addr + ranges[0].n, 1};

	for (; span.n_ranges < n; span.n_ranges++) {
		const uint64_t begin = ranges[span.n_ranges].addr;
		const uint64_t end = begin + ranges[span.n_ranges].n;
		const struct span both = {.begin = begin < span.begin ? begin : span.begin,
					  .end = end > span.end ? end : span.end};

		if (!is_in_page(begin, end) || !is_in_page(span.begin, span.end) ||
		    !is_in_page(both.begin, both.end))
			break;
		span.begin = both.begin;
		span.end = both.end;
	}
	return span;
}

/* What a call reads: spans, and the copies of those with more ranges than one. */
struct request {
	size_t n;
	struct iovec remote[MEMORY_RANGES_MAX];
	struct iovec local[MEMORY_RANGES_MAX];
	uint16_t n_ranges[MEMORY_RANGES_MAX]; /* of each span */
	size_t n_copied;
	uint8_t copies[SPANS_BYTES_MAX];
};

static void make_request(struct request *q, const struct memory_range *ranges, size_t n)
{
	q->n = 0;
	q->n_copied = 0;
	for (size_t i = 0; i < n; i += q->n_ranges[q->n++]) {
		struct span span = first_span(ranges + i, n - i);
		size_t bytes = span.end - span.begin;
		void *to = q->copies + q->n_copied;

		if (span.n_ranges > 1 && bytes <= sizeof(q->copies) - q->n_copied) {
			q->n_copied += bytes;
		} else {
			span = (struct span){.begin = ranges[i].addr, .n_ranges = 1};
			bytes = ranges[i].n;
			to = ranges[i].to;
		}
		q->remote[q->n] = (struct iovec){(void *)(uintptr_t)span.begin, bytes};
		q->local[q->n] = (struct iovec){to, bytes};
		q->n_ranges[q->n] = (uint16_t)span.n_ranges;
	}
}

/* The bytes of the ranges, of which the kernel read @got with the gaps. A page is there or not, so
 * is a span with gaps. */
static size_t take_request(const struct request *q, const struct memory_range *ranges, size_t got)
{
	size_t filled = 0;

	for (size_t i = 0; i < q->n && got; ranges += q->n_ranges[i++]) {
		const size_t bytes = q->local[i].iov_len;
		const size_t have = got < bytes ? got : bytes;

		got -= have;
		if (q->n_ranges[i] == 1) {
			filled += have;
			continue;
		}
		for (size_t k = 0; k < q->n_ranges[i] && have == bytes; k++) {
			const uint64_t off =
				ranges[k].addr - (uint64_t)(uintptr_t)q->remote[i].iov_base;

			memcpy(ranges[k].to, (uint8_t *)q->local[i].iov_base + off, ranges[k].n);
			filled += ranges[k].n;
		}
	}
	return filled;
}

static int process_read(struct memory *m, const struct memory_range *ranges, size_t n_ranges,
			size_t *ret)
{
	struct process_memory *pm = container_of(m, struct process_memory, memory);
	struct request q;
	ssize_t n;

	if (n_ranges > MEMORY_RANGES_MAX)
		return -EINVAL;
	make_request(&q, ranges, n_ranges);
	n = process_vm_readv((pid_t)pm->id.pid, q.local, q.n, q.remote, q.n, 0);
	if (n < 0 && errno != EFAULT)
		return outcome_of_errno(errno);
	*ret = n < 0 ? 0 : take_request(&q, ranges, (size_t)n);
	return 0;
}

/* The same through the file, without a pid. */
static int file_read(struct memory *m, const struct memory_range *ranges, size_t n_ranges,
		     size_t *ret)
{
	struct process_memory *pm = container_of(m, struct process_memory, memory);
	size_t done = 0;

	for (size_t i = 0; i < n_ranges; i++) {
		ssize_t n = pread(pm->fd, ranges[i].to, ranges[i].n, (off_t)ranges[i].addr);

		if (n < 0 && errno != EIO && errno != EFAULT && errno != EINVAL)
			return outcome_of_errno(errno);
		done += n < 0 ? 0 : (size_t)n;
		if (n < 0 || (size_t)n < ranges[i].n)
			break;
	}
	*ret = done;
	return 0;
}

/* Checks the address space with a read of page zero, because no address is mapped in every
 * process. While the address space lives, the read fails (nothing is mapped there) or, rarely,
 * succeeds; afterwards the file is empty. */
static int process_check(struct memory *m)
{
	struct process_memory *pm = container_of(m, struct process_memory, memory);
	char byte;
	ssize_t n = pread(pm->fd, &byte, 1, 0);

	if (n == 0)
		return MEMORY_GONE;
	if (n < 0 && errno != EIO)
		return outcome_of_errno(errno);
	return outcome_of_pid(pid_check(pm->proc, &pm->id));
}

int process_memory_file(const struct root *proc, const struct pid_id *id, int access, int *ret_fd)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "%" PRIu64 "/mem", id->pid);
	fd = openat(proc->fd, path, access | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int process_memory_open(struct process_memory *pm, const struct root *proc, const struct pid_id *id,
			bool is_ours)
{
	int r;

	*pm = (struct process_memory){
		.memory = {.read = is_ours ? process_read : file_read, .check = process_check},
		.proc = proc,
		.id = *id,
		.fd = -1,
	};
	r = process_memory_file(proc, id, O_RDONLY, &pm->fd);
	return r ? outcome_of_errno(-r) : 0;
}

int process_memory_init(struct process_memory *pm, const struct root *proc, const struct pid_id *id)
{
	int r = process_memory_open(pm, proc, id, pid_is_ours(proc));

	if (!r)
		r = outcome_of_pid(pid_check(proc, id));
	if (r)
		process_memory_deinit(pm);
	return r;
}

void process_memory_deinit(struct process_memory *pm)
{
	if (pm->fd >= 0)
		close(pm->fd);
	pm->fd = -1;
}
