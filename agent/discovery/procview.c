// SPDX-License-Identifier: Apache-2.0
/*
 * Three conditions hide existing processes from the agent:
 *
 *   - /proc is mounted with hidepid (proc(5)), and the agent lacks the right to trace. Process 1
 *     exists in each /proc and is never the agent's own, so its stat is the test: the mount's
 *     options do not say if they apply to the agent.
 *   - The agent's /proc is of a PID namespace below the first: a node in a container (kind), or a
 *     pod without hostPID. The BPF programs number a process as that namespace does, and count
 *     processes outside as filtered_other_pid_namespace.
 *   - /proc is of a namespace above the agent's: the host's, mounted into a pod without hostPID.
 *     The kernel reports events of processes in the agent's own pids, which differ from the pids in
 *     /proc.
 */
#include "discovery/procview.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "discovery/pid.h"

/* A copy has at least the first process. */
static bool is_absent(const struct root *proc)
{
	struct statfs fs;
	struct stat st;

	return !fstatfs(proc->fd, &fs) && fs.f_type != PROC_SUPER_MAGIC &&
	       fstatat(proc->fd, "1", &st, 0) < 0 && errno == ENOENT;
}

/* A process's stat is readable for everybody, unless hidden. */
static enum procview_others look_at_others(const struct root *proc)
{
	_cleanup_(close_fdp) int fd = openat(proc->fd, "1/stat", O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0)
		return PROCVIEW_SEEN;
	return errno == ENOENT ? PROCVIEW_HIDDEN : PROCVIEW_CLOSED;
}

void procview_look(const struct root *proc, struct procview *ret)
{
	const uint32_t namespace = pid_namespace(proc);

	*ret = (struct procview){
		.absent = is_absent(proc),
		.others = look_at_others(proc),
		.nested = namespace && namespace != PID_NAMESPACE_FIRST,
		.ours = pid_is_ours(proc),
	};
}

size_t procview_problems(const struct procview *view,
			 struct procview_problem ret[PROCVIEW_PROBLEMS])
{
	size_t n = 0;

	if (view->others != PROCVIEW_SEEN)
		ret[n++] = (struct procview_problem){"/proc is mounted with hidepid",
						     "other users' processes are hidden",
						     "grant CAP_SYS_PTRACE"};
	if (view->nested)
		ret[n++] = (struct procview_problem){
			"/proc belongs to a PID namespace inside the node's",
			"processes outside this namespace are not profiled", ""};
	if (!view->ours)
		ret[n++] = (struct procview_problem){
			"/proc belongs to another PID namespace than podprof",
			"short-lived processes have no names", "use hostPID"};
	return n;
}

bool procview_tell(const struct procview *view, char ret[PROCVIEW_TEXT_BYTES])
{
	struct procview_problem problems[PROCVIEW_PROBLEMS];
	size_t n_problems = procview_problems(view, problems), n = 0;

	*ret = '\0';
	for (size_t i = 0; i < n_problems; i++)
		n += (size_t)snprintf(ret + n, PROCVIEW_TEXT_BYTES - n, "%s%s: %s%s%s",
				      n ? "; " : "", problems[i].what, problems[i].means,
				      *problems[i].remedy ? ": " : "", problems[i].remedy);
	return n > 0;
}
