// SPDX-License-Identifier: Apache-2.0
/*
 * The layouts are those of perf_event_open(2) and include/uapi/linux/perf_event.h. Everything is
 * the kernel's but the names, which a container chooses: they end with a NUL inside the record or
 * the record is odd.
 *
 *	FORK, EXIT	pid, ppid, tid, ptid: u32 each; time: u64
 *	COMM		pid, tid: u32; comm: string
 *	MMAP2		pid, tid: u32; addr, len, pgoff: u64; maj, min: u32; ino, generation: u64;
 *			prot, flags: u32; filename: string
 *	LOST		id, lost: u64
 *
 * and behind each pid, tid: u32; time: u64 of whoever caused it.
 */
#include "profile/sideband_record.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/cursor.h"

/* What the kernel calls a process that our namespace does not show, if it has exited already. */
#define PID_NONE UINT32_MAX

const char *sideband_kind_name(int kind)
{
	static const char *const names[SIDEBAND_KIND_MAX] = {
		[SIDEBAND_FORK] = "fork", [SIDEBAND_EXIT] = "exit", [SIDEBAND_EXEC] = "exec",
		[SIDEBAND_MMAP] = "mmap", [SIDEBAND_LOST] = "lost",
	};

	return kind >= 0 && kind < SIDEBAND_KIND_MAX ? names[kind] : "unknown";
}

static int task(struct cursor *c, struct sideband_record *ret)
{
	uint32_t ptid;

	if (!cursor_u32(c, &ret->pid) || !cursor_u32(c, &ret->ppid) || !cursor_u32(c, &ret->tid) ||
	    !cursor_u32(c, &ptid))
		return SIDEBAND_ODD;
	return 0;
}

static int decode_mmap(struct cursor *c, uint16_t misc, struct sideband_record *ret)
{
	uint32_t major, minor, prot, flags;
	uint64_t limit;

	ret->kind = SIDEBAND_MMAP;
	if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		return SIDEBAND_ODD; /* not asked for: the numbers would be another thing */
	if (!cursor_u32(c, &ret->pid) || !cursor_u32(c, &ret->tid) || !cursor_u64(c, &ret->start) ||
	    !cursor_u64(c, &ret->length) || !cursor_u64(c, &ret->off) || !cursor_u32(c, &major) ||
	    !cursor_u32(c, &minor) || !cursor_u64(c, &ret->inode) ||
	    !cursor_u64(c, &ret->generation) || !cursor_u32(c, &prot) || !cursor_u32(c, &flags) ||
	    !cursor_cstr(c, &ret->name))
		return SIDEBAND_ODD;
	if (!ret->length || __builtin_add_overflow(ret->start, ret->length, &limit))
		return SIDEBAND_ODD;
	ret->device = makedev(major, minor);
	return prot & PROT_EXEC ? 0 : SIDEBAND_OTHER;
}

static int decode_body(uint32_t type, uint16_t misc, struct cursor *c, struct sideband_record *ret)
{
	uint64_t id;
	int r;

	switch (type) {
	case PERF_RECORD_FORK:
		ret->kind = SIDEBAND_FORK;
		r = task(c, ret);
		return !r && ret->pid == ret->ppid ? SIDEBAND_OTHER : r;
	case PERF_RECORD_EXIT:
		ret->kind = SIDEBAND_EXIT;
		r = task(c, ret);
		return !r && ret->tid != ret->pid ? SIDEBAND_OTHER : r;
	case PERF_RECORD_COMM:
		ret->kind = SIDEBAND_EXEC;
		if (!(misc & PERF_RECORD_MISC_COMM_EXEC))
			return SIDEBAND_OTHER;
		return cursor_u32(c, &ret->pid) && cursor_u32(c, &ret->tid) ? 0 : SIDEBAND_ODD;
	case PERF_RECORD_MMAP2:
		return decode_mmap(c, misc, ret);
	case PERF_RECORD_LOST:
		ret->kind = SIDEBAND_LOST;
		return cursor_u64(c, &id) && cursor_u64(c, &ret->n_lost) ? 0 : SIDEBAND_ODD;
	default:
		return SIDEBAND_OTHER;
	}
}

int sideband_decode(const void *data, size_t n, struct sideband_record *ret)
{
	struct sideband_record record = {.name = ""};
	struct cursor c, body;
	uint16_t misc, size;
	uint32_t type;
	uint64_t who;
	int r;

	cursor_init(&c, data, n);
	if (!cursor_u32(&c, &type) || !cursor_u16(&c, &misc) || !cursor_u16(&c, &size) ||
	    size != n || n < SIDEBAND_HEADER_BYTES + SIDEBAND_SUFFIX_BYTES ||
	    !cursor_sub(&c, n - SIDEBAND_HEADER_BYTES - SIDEBAND_SUFFIX_BYTES, &body) ||
	    !cursor_u64(&c, &who) || !cursor_u64(&c, &record.time_ns))
		return SIDEBAND_ODD;
	r = decode_body(type, misc, &body, &record);
	if (r)
		return r;
	if (record.kind != SIDEBAND_LOST && (!record.pid || record.pid == PID_NONE))
		return SIDEBAND_OUTSIDE;
	*ret = record;
	return 0;
}
