// SPDX-License-Identifier: Apache-2.0
/*
 * The file is called jit-PID.dump, in any directory. The process maps its first page executable, so
 * that perf sees the mapping, and so does podprof: the mapping leads to the file itself, without a
 * path that the process or another user could redirect.
 *
 * PID is the process's pid in its own, innermost PID namespace. After a fork the child has the
 * parent's mapping, too, and rightly: it has the parent's code. A dump of its own is better.
 */
#include "procmap/jitdump_file.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "base/strview.h"
#include "discovery/pid.h"
#include "procmap/mapped.h"
#include "procmap/maps.h"

static bool is_jitdump(const struct maps_entry *e, uint64_t *ret_pid)
{
	struct strview name = strview_after_last(strview_of(e->path), '/');

	return e->kind == MAPS_FILE && (e->prot & MAPS_X) && strview_prefix(&name, "jit-") &&
	       strview_suffix(&name, ".dump") && strview_only_u64(name, 10, ret_pid);
}

/* The entry of its own dump, or else any. NULL: none. */
static const struct maps_entry *find(const struct root *proc, const struct pid_id *pid,
				     const struct maps *maps)
{
	const struct maps_entry *found = NULL;
	struct pid_user user = {0};
	uint64_t of;

	for (size_t i = 0; i < maps->n; i++) {
		if (!is_jitdump(&maps->items[i], &of))
			continue;
		if (!user.inner_pid && pid_read_user(proc, pid, &user))
			return NULL;
		if (!found || of == user.inner_pid)
			found = &maps->items[i];
	}
	return found;
}

int jitdump_file_open(const struct root *proc, const struct pid_id *pid, const struct maps *maps,
		      int *ret_fd)
{
	const struct maps_entry *entry = find(proc, pid, maps);
	_cleanup_(close_fdp) int path_fd = -1, fd = -1;
	int r;

	if (!entry)
		return JITDUMP_FILE_ABSENT;
	r = mapped_find(proc, maps->via_pid, entry, &path_fd);
	if (!r)
		r = mapped_open(path_fd, &fd);
	if (r)
		return r < 0 ? r : r == MAPPED_DENIED ? JITDUMP_FILE_DENIED : JITDUMP_FILE_ABSENT;
	if (pid_check(proc, pid)) /* another process may have the pid by now */
		return JITDUMP_FILE_ABSENT;
	*ret_fd = take_fd(fd);
	return 0;
}
