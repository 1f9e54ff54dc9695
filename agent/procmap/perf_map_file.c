// SPDX-License-Identifier: Apache-2.0
/*
 * The name of the file has the process's pid in its own, innermost PID namespace: a JIT compiler
 * knows no other. The directory is /tmp of the process's root and mount namespace. Other users may
 * write there, so the file must be regular and belong to the process's user, or to root. Links
 * resolve as in the process's root and cannot leave it.
 *
 * A pid is small in a container, and /tmp may be a volume: the file of an earlier process with this
 * pid may still exist, and so may the file of the program before an exec. Such a file was last
 * written before the program began.
 *
 * The time of the last write is by the wall clock of that moment, the beginning of the program by
 * the boot clock. If the wall clock is set forward after the write, the present wall clock makes
 * the file older than it is: podprof compares also by the wall clock of the moment in which it
 * first saw the program. A file is old only by both: names of an earlier program are rarely at
 * addresses of this program, because each exec moves the code. Steps before podprof has seen the
 * program are not known: the file may look old until the next write.
 */
#include "procmap/perf_map_file.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/wall.h"

/* The times of these file systems are the kernel's: of its last tick, 10 ms at most. */
#define KERNEL_SLACK_NS (20 * NSEC_PER_MSEC)
/* A file server has its own clock, and some file systems keep whole seconds. */
#define OTHER_SLACK_NS	NSEC_PER_SEC

static int outcome_of(int r)
{
	static const int outcomes[ROOT_OUTCOME_MAX] = {
		[ROOT_GONE] = PERF_MAP_FILE_ABSENT,
		[ROOT_DENIED] = PERF_MAP_FILE_DENIED,
		[ROOT_TOO_LARGE] = PERF_MAP_FILE_ODD,
		[ROOT_NOT_FILE] = PERF_MAP_FILE_ODD,
	};

	return r > 0 ? outcomes[r] : r;
}

/* By how much the file may have been written later than its time says. */
static uint64_t slack_ns(int fd, const struct stat *st)
{
	static const uint32_t of_kernel[] = {TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC, EXT4_SUPER_MAGIC,
					     XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC};
	struct statfs fs;

	if (st->st_mtim.tv_nsec && fstatfs(fd, &fs) == 0)
		for (size_t i = 0; i < array_size(of_kernel); i++)
			if ((uint32_t)fs.f_type == of_kernel[i])
				return KERNEL_SLACK_NS;
	return OTHER_SLACK_NS;
}

static bool is_old(int fd, const struct stat *st, uint64_t began_ns, uint64_t wall_at_boot_ns)
{
	const uint64_t now_ns = wall_at_boot();

	if (!wall_at_boot_ns || wall_at_boot_ns > now_ns)
		wall_at_boot_ns = now_ns;
	return nsec_of(&st->st_mtim) + slack_ns(fd, st) < wall_at_boot_ns + began_ns;
}

int perf_map_file_open(const struct root *proc, const struct pid_id *pid, uint64_t began_ns,
		       uint64_t wall_at_boot_ns, int *ret_fd)
{
	_cleanup_(root_deinit) struct root root = ROOT_INIT;
	_cleanup_(close_fdp) int fd = -1;
	struct pid_user user;
	struct stat st;
	char path[48];
	int r;

	if (pid_read_user(proc, pid, &user))
		return PERF_MAP_FILE_ABSENT;
	r = pid_open_root(proc, pid->pid, &root);
	if (r)
		return outcome_of(root_outcome(-r));
	snprintf(path, sizeof(path), "tmp/perf-%" PRIu64 ".map", user.inner_pid);
	r = root_open_inside(&root, path, &fd);
	if (r)
		return outcome_of(r);
	if (fstat(fd, &st) < 0)
		return outcome_of(root_outcome(errno));
	if (st.st_uid && st.st_uid != user.uid)
		return PERF_MAP_FILE_FOREIGN;
	if (!began_ns)
		began_ns = pid_ns_of_ticks(pid->start_ticks);
	if (is_old(fd, &st, began_ns, wall_at_boot_ns))
		return PERF_MAP_FILE_OLD;
	if (pid_check(proc, pid)) /* another process may have the pid by now */
		return PERF_MAP_FILE_ABSENT;
	*ret_fd = take_fd(fd);
	return 0;
}
