// SPDX-License-Identifier: Apache-2.0
/*
 * A pid is not an identity: the kernel reuses pids, with the default pid_max after 32,768 forks.
 * The pair of pid and start time is unique, so the agent stores and compares the pair.
 *
 * All data come from a single read of /proc/PID/stat (proc(5)), one line:
 *
 *	1234 (comm) S 1 1234 ... starttime ...
 *
 * The process chooses the name in the parentheses. The name may hold blanks, parentheses and
 * newlines, but no later field can hold a ')'. So the name ends at the last ')'.
 *
 * Start times are in the reader's time namespace (Linux 5.6). The agent shares the host's, as do
 * the kernel's own numbers in samples. In another time namespace every process would look restarted
 * once, but never wrong.
 */
#include "discovery/pid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/strview.h"

/* Bytes of /proc/PID/status: 1.5 KB, plus a list of groups and of CPUs. Reached: of the agent's
 * own:
 * `--proc-root` is taken for another PID namespace's; of another process: its code in anonymous
 * memory has no names. */
#define PID_STATUS_BYTES_MAX	(64u << 10)
/* Bytes of /proc/PID/stat: 52 fields of at most 20 digits and a name; a real line has below 1,200.
 * A longer line is PID_ODD. Reached: `PID_ODD`. */
#define PID_STAT_BYTES_MAX	4096
/* Fields between the name's ')' and starttime: the name is the second field of the line, starttime
 * the 22nd. */
#define PID_FIELDS_BEFORE_START 19

uint64_t pid_ticks_of_ns(uint64_t start_boottime_ns)
{
	/* As nsec_to_clock_t() of kernel/time/time.c, for a USER_HZ that divides a second. USER_HZ
	 * is 100 on every known architecture; sysconf() asks the kernel (AT_CLKTCK). */
	return start_boottime_ns / (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

uint64_t pid_ns_of_ticks(uint64_t start_ticks)
{
	return start_ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

bool pid_began_since(const struct pid_id *id, uint64_t boot_ns)
{
	return pid_ns_of_ticks(id->start_ticks) >= boot_ns;
}

/* Translates the outcomes of root_read_whole(). */
static int pid_outcome(int r)
{
	switch (r) {
	case ROOT_GONE:
		return PID_GONE;
	case ROOT_DENIED:
		return PID_DENIED;
	case ROOT_TOO_LARGE:
	case ROOT_NOT_FILE:
		return PID_ODD;
	default:
		return r;
	}
}

/* Parses the fields after the name. */
static bool pid_parse_start(struct strview t, uint64_t *ret_ticks)
{
	struct strview word;

	for (int i = 0; i < PID_FIELDS_BEFORE_START; i++)
		if (!strview_word(&t, &word))
			return false;
	return strview_word(&t, &word) && strview_only_u64(word, 10, ret_ticks);
}

int pid_parse_stat(const char *stat, size_t n, struct pid_id *ret, char ret_comm[PID_COMM_MAX])
{
	struct strview t = strview_of_bytes(stat, n), comm;
	struct pid_id id;
	const char *close;

	if (!strview_u64(&t, 10, &id.pid) || !strview_prefix(&t, " (") || strview_empty(&t))
		return PID_ODD;
	close = memrchr(t.p, ')', strview_len(&t));
	if (!close)
		return PID_ODD;
	comm = (struct strview){.p = t.p, .end = close};
	t.p = close + 1;
	if (strview_len(&comm) >= PID_COMM_MAX || memchr(comm.p, '\0', strview_len(&comm)))
		return PID_ODD;
	if (!pid_parse_start(t, &id.start_ticks))
		return PID_ODD;
	memset(ret_comm, 0, PID_COMM_MAX);
	memcpy(ret_comm, comm.p, strview_len(&comm));
	*ret = id;
	return 0;
}

static int pid_read_stat(const struct root *proc, uint64_t pid, struct pid_id *ret,
			 char ret_comm[PID_COMM_MAX])
{
	_cleanup_(buf_deinit) struct buf stat = BUF_INIT(PID_STAT_BYTES_MAX);
	char path[32], comm[PID_COMM_MAX];
	struct pid_id id;
	int r;

	snprintf(path, sizeof(path), "%llu/stat", (unsigned long long)pid);
	r = root_read_whole(proc, path, &stat);
	if (r)
		return pid_outcome(r);
	r = pid_parse_stat(stat.data ? stat.data : "", stat.len, &id, comm);
	if (r)
		return r;
	if (id.pid != pid)
		return PID_ODD;
	*ret = id;
	memcpy(ret_comm, comm, PID_COMM_MAX);
	return 0;
}

int pid_read(const struct root *proc, pid_t pid, struct pid_id *ret)
{
	char comm[PID_COMM_MAX];

	if (pid <= 0)
		return PID_GONE;
	return pid_read_stat(proc, (uint64_t)pid, ret, comm);
}

int pid_check(const struct root *proc, const struct pid_id *id)
{
	char comm[PID_COMM_MAX];

	return pid_read_comm(proc, id, comm);
}

/* @inode is older than the check. If another process had it, the number does not come again. */
int pid_check_inode(const struct root *proc, const struct pid_id *id, uint64_t *inode)
{
	const uint64_t now = pid_inode(proc, (pid_t)id->pid);
	int r;

	if (now && now == *inode)
		return 0;
	r = pid_check(proc, id);
	*inode = r ? 0 : now;
	return r;
}

/* A procfs inode refers to the process (struct pid), not to the pid. After the process has ended,
 * the next lookup makes a new inode (fs/proc/base.c, pid_revalidate). Inode numbers repeat after 4
 * billion inodes at the earliest. Under memory pressure the kernel drops inodes. */
uint64_t pid_inode(const struct root *proc, pid_t pid)
{
	struct stat st;
	char path[16];

	snprintf(path, sizeof(path), "%d", (int)pid);
	return fstatat(proc->fd, path, &st, 0) ? 0 : st.st_ino;
}

uint64_t pid_self(const struct root *proc)
{
	_cleanup_(buf_deinit) struct buf link = BUF_INIT(PATH_MAX);
	uint64_t pid;

	if (root_read_link(proc, "self", &link) ||
	    !strview_only_u64(strview_of_bytes(link.data, link.len), 10, &pid))
		return 0;
	return pid;
}

/* The values of the line "@name: ..." of a status file. */
static bool status_line(const struct buf *status, const char *name, struct strview *ret)
{
	struct strview all = strview_of_bytes(status->data ? status->data : "", status->len);

	while (strview_line(&all, ret))
		if (strview_prefix(ret, name))
			return true;
	return false;
}

/* NSpid in the agent's status lists the pids in each namespace, from the namespace of @proc down to
 * the agent's; since Linux 4.1. */
bool pid_is_ours(const struct root *proc)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PID_STATUS_BYTES_MAX);
	struct strview pids;
	uint64_t pid;

	if (root_read(proc, "self/status", &b) || !status_line(&b, "NSpid:", &pids))
		return false;
	strview_skip_blanks(&pids);
	return strview_only_u64(pids, 10, &pid) && pid == (uint64_t)getpid();
}

int pid_read_user(const struct root *proc, const struct pid_id *id, struct pid_user *ret)
{
	_cleanup_(buf_deinit) struct buf status = BUF_INIT(PID_STATUS_BYTES_MAX);
	struct strview pids, uids, real, word;
	struct pid_user user = {0};
	char path[32];
	int r;

	snprintf(path, sizeof(path), "%" PRIu64 "/status", id->pid);
	r = root_read_whole(proc, path, &status);
	if (r)
		return pid_outcome(r);
	if (!status_line(&status, "NSpid:", &pids) || !status_line(&status, "Uid:", &uids) ||
	    !strview_word(&uids, &real) || !strview_word(&uids, &word) ||
	    !strview_only_u64(word, 10, &user.uid))
		return PID_ODD;
	while (strview_word(&pids, &word)) /* the innermost is the last */
		if (!strview_only_u64(word, 10, &user.inner_pid))
			return PID_ODD;
	if (!user.inner_pid)
		return PID_ODD;
	r = pid_check(proc, id);
	if (!r)
		*ret = user;
	return r;
}

uint32_t pid_namespace(const struct root *proc)
{
	struct stat st;

	if (fstatat(proc->fd, "1/ns/pid", &st, 0) == 0 ||
	    (pid_is_ours(proc) && fstatat(proc->fd, "self/ns/pid", &st, 0) == 0))
		return (uint32_t)st.st_ino;
	return 0;
}

struct file_id pid_read_exe(const struct root *proc, uint64_t pid)
{
	struct stat st;
	char path[48];

	snprintf(path, sizeof(path), "%" PRIu64 "/exe", pid);
	if (fstatat(proc->fd, path, &st, 0) < 0)
		return (struct file_id){0};
	return file_id_of_stat(&st);
}

int pid_open_root(const struct root *proc, uint64_t pid, struct root *ret)
{
	char path[48] = "self/root";
	int fd;

	if (pid)
		snprintf(path, sizeof(path), "%" PRIu64 "/root", pid);
	fd = openat(proc->fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret->fd = fd;
	return 0;
}

/* The task directory has one subdirectory per thread, and the kernel counts the threads as links,
 * besides "." and "..". */
size_t pid_n_threads(const struct root *proc, pid_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "%d/task", (int)pid);
	if (fstatat(proc->fd, path, &st, 0) || st.st_nlink < 2)
		return 0;
	return (size_t)st.st_nlink - 2;
}

int pid_read_comm(const struct root *proc, const struct pid_id *id, char ret[PID_COMM_MAX])
{
	char comm[PID_COMM_MAX];
	struct pid_id now;
	int r;

	r = pid_read_stat(proc, id->pid, &now, comm);
	if (r)
		return r;
	if (!pid_id_equal(&now, id))
		return PID_GONE;
	memcpy(ret, comm, PID_COMM_MAX);
	return 0;
}

int pid_read_cgroup(const struct root *proc, const struct pid_id *id, struct buf *b)
{
	char path[32];
	int r;

	snprintf(path, sizeof(path), "%llu/cgroup", (unsigned long long)id->pid);
	r = root_read_whole(proc, path, b);
	if (r)
		return pid_outcome(r);
	/* checked after the read: only then the text is certainly this process's */
	return pid_check(proc, id);
}

/* Inode number of the first cgroup namespace (include/linux/proc_ns.h, PROC_CGROUP_INIT_INO). */
#define CGROUP_NAMESPACE_FIRST 0xeffffffbu

bool pid_sees_all_cgroups(const struct root *proc)
{
	struct stat st;

	return fstatat(proc->fd, "self/ns/cgroup", &st, 0) == 0 &&
	       st.st_ino == CGROUP_NAMESPACE_FIRST;
}

int pid_read_parent(const struct root *proc, pid_t pid, pid_t *ret)
{
	_cleanup_(buf_deinit) struct buf stat = BUF_INIT(PID_STAT_BYTES_MAX);
	struct strview rest, state;
	char path[32];
	uint64_t parent;
	int r;

	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	r = root_read_whole(proc, path, &stat);
	if (r)
		return pid_outcome(r);
	/* "PID (any name) STATE PARENT ..." */
	rest = strview_after_last(strview_of_bytes(stat.data ? stat.data : "", stat.len), ')');
	if (!strview_word(&rest, &state) || !strview_char(&rest, ' ') ||
	    !strview_u64(&rest, 10, &parent) || parent > INT32_MAX)
		return PID_ODD;
	*ret = (pid_t)parent;
	return 0;
}

int pid_list_open(const struct root *proc, DIR **ret)
{
	_cleanup_(close_fdp) int fd = openat(proc->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir;

	if (fd < 0)
		return pid_outcome(root_outcome(errno));
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	take_fd(fd);
	*ret = dir;
	return 0;
}

int pid_list_next(DIR *dir, pid_t *ret_pid, uint64_t *ret_inode)
{
	struct dirent *entry;
	uint64_t pid;

	/* only errno tells the end of readdir() from a failure */
	while (errno = 0, entry = readdir(dir)) {
		if (!strview_only_u64(strview_of(entry->d_name), 10, &pid) || pid == 0 ||
		    pid > INT32_MAX)
			continue;
		*ret_pid = (pid_t)pid;
		*ret_inode = entry->d_ino;
		return 0;
	}
	return errno ? -errno : PID_GONE;
}

int pid_for_each_inode(const struct root *proc, int (*fn)(void *ctx, pid_t pid, uint64_t inode),
		       void *ctx)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	uint64_t inode;
	pid_t pid;
	int r;

	r = pid_list_open(proc, &dir);
	if (!dir)
		return r;
	while (!(r = pid_list_next(dir, &pid, &inode))) {
		r = fn(ctx, pid, inode);
		if (r)
			return r;
	}
	return r < 0 ? r : 0;
}

struct each {
	int (*fn)(void *ctx, pid_t pid);
	void *ctx;
};

static int without_inode(void *ctx, pid_t pid, uint64_t inode)
{
	const struct each *each = ctx;

	(void)inode;
	return each->fn(each->ctx, pid);
}

int pid_for_each(const struct root *proc, int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	struct each each = {fn, ctx};

	return pid_for_each_inode(proc, without_inode, &each);
}
