// SPDX-License-Identifier: Apache-2.0
/*
 * Turning Go's memory profiler on from outside.
 *
 * runtime.MemProfileRate is an ordinary int, and the allocator reads the int without a lock.
 * Nothing else in the runtime depends on an earlier 0. So podprof stores Go's default there, as the
 * program itself could at any time.
 *
 * These checks make a write to a wrong address impossible:
 * - The file gives the address of the variable: by a symbol of its name and size in one of Go's
 *   data sections, by the code that uses it, or by both alike (goruntime_file.c).
 * - The runtime's own description in memory agrees with the file and the mappings, and has the
 *   address in the runtime's data (goruntime_check()). The check is repeated in the address space
 *   of the write.
 * - The address is aligned, and inside a private, writable mapping of the executable or of the
 *   adjacent anonymous memory (.noptrbss).
 * - The variable reads 0 immediately before.
 * - The write goes through a descriptor of /proc/PID/mem, opened before the reading of the mappings
 *   and the check of the identity. The descriptor belongs to a single address space: if the process
 *   execs or ends at any moment, the write fails and does not reach the next program or the next
 *   process with this pid.
 */
#include "goheap/force.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "goheap/goruntime.h"
#include "procmap/maps.h"
#include "procmap/memory.h"

const char *force_outcome_name(int outcome)
{
	static const char *const names[FORCE_OUTCOME_MAX] = {
		[FORCE_OK] = "ok",
		[FORCE_GONE] = "gone",
		[FORCE_DENIED] = "denied",
		[FORCE_NOT_ZERO] = "not_zero",
		[FORCE_UNCERTAIN] = "uncertain",
		[FORCE_FAILED] = "failed",
		[FORCE_WAS_ON] = "was_on",
	};

	return outcome >= 0 && outcome < FORCE_OUTCOME_MAX ? names[outcome] : "error";
}

static int outcome_of_errno(int err)
{
	int r = root_outcome(err);

	switch (r) {
	case ROOT_GONE:
		return FORCE_GONE;
	case ROOT_DENIED:
		return FORCE_DENIED;
	default:
		return r > 0 ? FORCE_UNCERTAIN : r;
	}
}

static int check_mapping(const struct root *proc, const struct pid_id *id, uint64_t addr)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	const struct maps_entry *e;
	int r = maps_read(proc, id, &maps);

	if (r < 0)
		return r;
	if (r > 0)
		return r == MAPS_GONE	  ? FORCE_GONE
		       : r == MAPS_DENIED ? FORCE_DENIED
					  : FORCE_UNCERTAIN;
	e = maps_find(&maps, addr);
	if (!e || (e->kind != MAPS_FILE && e->kind != MAPS_ANON) || e->limit - addr < 8)
		return FORCE_UNCERTAIN;
	if ((e->prot & (MAPS_R | MAPS_W | MAPS_SHARED)) != (MAPS_R | MAPS_W))
		return FORCE_UNCERTAIN;
	return 0;
}

/* Memory read through the descriptor of the write, independent of the present holder of the pid. */
struct held_memory {
	struct memory memory;
	int fd;
};

static int held_read(struct memory *m, const struct memory_range *ranges, size_t n_ranges,
		     size_t *ret)
{
	const struct held_memory *held = container_of(m, struct held_memory, memory);
	size_t total = 0;

	for (size_t i = 0; i < n_ranges; i++) {
		ssize_t n = pread(held->fd, ranges[i].to, ranges[i].n, (off_t)ranges[i].addr);

		if (n == 0)
			return MEMORY_GONE;
		if (n < 0 && errno != EIO)
			return -errno;
		total += n < 0 ? 0 : (size_t)n;
		if (n != (ssize_t)ranges[i].n)
			break;
	}
	*ret = total;
	return 0;
}

/* The program may have executed another one since the first check, so the check is repeated in
 * the address space of the write. */
static int check_runtime(int fd, const struct goruntime *rt)
{
	struct held_memory held = {.memory = {.read = held_read}, .fd = fd};
	struct goruntime again = *rt;
	int r = goruntime_check(&again, &held.memory);

	if (r < 0)
		return r;
	if (r > 0)
		return r == GORUNTIME_GONE ? FORCE_GONE : FORCE_UNCERTAIN;
	return again.certain ? 0 : FORCE_UNCERTAIN;
}

static int read_rate(int fd, uint64_t addr, int64_t *ret)
{
	ssize_t n = pread(fd, ret, sizeof(*ret), (off_t)addr);

	if (n < 0)
		return errno == EIO ? FORCE_UNCERTAIN : outcome_of_errno(errno);
	return n == 0 ? FORCE_GONE : n == sizeof(*ret) ? 0 : FORCE_UNCERTAIN;
}

static int write_rate(int fd, uint64_t addr)
{
	const int64_t rate = FORCE_RATE;
	int64_t now = 0;
	ssize_t n;
	int r = read_rate(fd, addr, &now);

	if (r)
		return r;
	if (now != 0)
		return FORCE_NOT_ZERO;
	n = pwrite(fd, &rate, sizeof(rate), (off_t)addr);
	if (n < 0)
		return errno == EIO ? FORCE_UNCERTAIN : outcome_of_errno(errno);
	if (n == 0)
		return FORCE_GONE;
	r = read_rate(fd, addr, &now);
	if (r)
		return r;
	return now == FORCE_RATE ? 0 : FORCE_FAILED;
}

int force_sampling(const struct root *proc, const struct pid_id *id, const struct goruntime *rt)
{
	_cleanup_(close_fdp) int fd = -1;
	uint64_t addr = goruntime_addr(rt, GORUNTIME_RATE);
	int r;

	if (!rt->certain || addr == 0 || addr % 8 != 0 || addr > INT64_MAX)
		return FORCE_UNCERTAIN;
	r = process_memory_file(proc, id, O_RDWR, &fd);
	if (r)
		return outcome_of_errno(-r);
	r = check_runtime(fd, rt);
	if (!r)
		r = check_mapping(proc, id, addr);
	if (!r) {
		r = pid_check(proc, id);
		if (r > 0)
			r = r == PID_DENIED ? FORCE_DENIED : FORCE_GONE;
	}
	return r ? r : write_rate(fd, addr);
}
