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
 */
#include "procmap/perf_map_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"

/* The clock of a file system is a tick behind, and a write may be cached by a file server. */
#define PERF_MAP_FILE_SLACK_NS NSEC_PER_SEC

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

static bool is_old(const struct pid_id *pid, uint64_t began_ns, const struct stat *st)
{
	uint64_t age_ns = nsec_boot() - (began_ns ? began_ns : pid_ns_of_ticks(pid->start_ticks));

	return nsec_of(&st->st_mtim) + PERF_MAP_FILE_SLACK_NS + age_ns < nsec_wall();
}

int perf_map_file_open(const struct root *proc, const struct pid_id *pid, uint64_t began_ns,
		       int *ret_fd)
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
	if (is_old(pid, began_ns, &st))
		return PERF_MAP_FILE_OLD;
	if (pid_check(proc, pid)) /* another process may have the pid by now */
		return PERF_MAP_FILE_ABSENT;
	*ret_fd = take_fd(fd);
	return 0;
}
