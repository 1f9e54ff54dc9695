// SPDX-License-Identifier: Apache-2.0
/*
 * Three things keep processes from us that are there all the same:
 *
 *   - /proc is mounted with hidepid (proc(5)), and we have not the right to trace. The one process
 *     that is in each /proc and is everybody's but ours is number 1, so it is what is looked at:
 * the mount's options do not say whether they apply to us.
 *   - The agent's /proc is of a PID namespace below the first one: a node in a container (kind), or
 *     a pod without hostPID. The kernel's programs number a process as that namespace does, and
 *     count what is not in it as filtered_other_pid_namespace.
 *   - It is of another namespace than ours, above: the host's, mounted into a pod without hostPID.
 *     The kernel tells what happens to processes in our own numbers, which are not those.
 */
#include "discovery/procview.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "discovery/pid.h"

/* Everybody may read a process's stat where nothing is hidden. */
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
						     "other users' processes are not shown to us",
						     "grant CAP_SYS_PTRACE"};
	if (view->nested)
		ret[n++] =
			(struct procview_problem){"/proc is of a PID namespace inside the node's",
						  "processes outside it are not profiled", ""};
	if (!view->ours)
		ret[n++] = (struct procview_problem){"/proc is of another PID namespace than ours",
						     "short-lived processes have no names",
						     "use hostPID"};
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
