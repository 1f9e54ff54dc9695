/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_PID_H
#define PODPROF_DISCOVERY_PID_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/file_id.h"

struct buf;
struct root;

/**
 * struct pid_id - identity of a process; a pid alone is none
 * @pid:         thread group id, as the agent's /proc shows it
 * @start_ticks: field 22 of /proc/PID/stat, clock ticks since boot. The kernel's start_boottime,
 *               divided by the length of a tick, is the same number
 *
 * A hash key, compared by bytes: no padding.
 */
struct pid_id {
	uint64_t start_ticks;
	uint64_t pid;
};

enum pid_outcome {
	PID_OK = 0,
	PID_GONE,   /* no such process, or the pid belongs to another process now */
	PID_DENIED, /* /proc is hidden from the agent */
	PID_ODD,    /* stat does not have the form of proc(5) */
	PID_OUTCOME_MAX,
};

static inline bool pid_id_equal(const struct pid_id *a, const struct pid_id *b)
{
	return a->pid == b->pid && a->start_ticks == b->start_ticks;
}

/* Start time in ticks, from nanoseconds of the boot clock as BPF reports them. */
uint64_t pid_ticks_of_ns(uint64_t start_boottime_ns);
/* The beginning of the tick, in nanoseconds of the boot clock. */
uint64_t pid_ns_of_ticks(uint64_t start_ticks);
/* Whether the process began at @boot_ns (boot clock) or later. */
bool pid_began_since(const struct pid_id *id, uint64_t boot_ns);

/* The process that has @pid now. 0, PID_GONE, PID_DENIED, PID_ODD, -errno. */
int pid_read(const struct root *proc, pid_t pid, struct pid_id *ret);
/* 0 if the process of @id still exists; else PID_GONE or another outcome. */
int pid_check(const struct root *proc, const struct pid_id *id);

/* The same in one system call while /proc/PID has *@inode, that of an earlier check with success;
 * 0: of none. Sets *@inode. */
int pid_check_inode(const struct root *proc, const struct pid_id *id, uint64_t *inode);

/* The inode number of /proc/PID; 0 if there is no such process. The same inode means the same
 * process, because procfs makes a new inode for each process. A different inode may still mean the
 * same process. */
uint64_t pid_inode(const struct root *proc, pid_t pid);

/* The agent's own pid in @proc; 0 if @proc is of a PID namespace without the agent. */
uint64_t pid_self(const struct root *proc);

/* True if @proc is of the agent's own PID namespace: its pids are the pids of the agent's system
 * calls. */
bool pid_is_ours(const struct root *proc);
/* Inode number of the first PID namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO). */
#define PID_NAMESPACE_FIRST 0xeffffffcu

/* The PID namespace of @proc, as an inode number. If the first process there is unreadable: the
 * agent's own namespace if @proc is of this namespace, else 0. */
uint32_t pid_namespace(const struct root *proc);

/* The executable file of a process. Zeros on failure, with errno: ENOENT or ESRCH for an ended
 * process or a kernel thread, EACCES for missing rights. */
struct file_id pid_read_exe(const struct root *proc, uint64_t pid);

/* The root directory of a process, for root_open_inside(); @pid 0: the agent's own. Opened with
 * O_PATH. 0 or -errno of openat(2), for root_outcome(). */
int pid_open_root(const struct root *proc, uint64_t pid, struct root *ret);

/**
 * struct pid_user - a process as its own namespaces and its files see it
 * @inner_pid: its pid in its own, innermost PID namespace
 * @uid:       its effective user, as the agent sees users
 */
struct pid_user {
	uint64_t inner_pid;
	uint64_t uid;
};
/* Outcomes as pid_read(). */
int pid_read_user(const struct root *proc, const struct pid_id *id, struct pid_user *ret);

/* Number of threads, including a dead leader; 0 if there is no such process. */
size_t pid_n_threads(const struct root *proc, pid_t pid);

/* Bytes of a name with the NUL: the kernel's TASK_COMM_LEN. Reached: -. */
#define PID_COMM_MAX 16
/* The process's name, NUL-terminated; any byte but NUL may occur. Outcomes as pid_read(). */
int pid_read_comm(const struct root *proc, const struct pid_id *id, char ret[PID_COMM_MAX]);

/* Bytes of /proc/PID/cgroup: 14 lines with paths of up to 4 KiB. A longer file is PID_ODD. Reached:
 * `podprof_entity_lookups_total{outcome="unknown_unreadable"}`. */
#define PID_CGROUP_BYTES_MAX (64u << 10)
/* Appends /proc/PID/cgroup of exactly this process to @b, a buffer of PID_CGROUP_BYTES_MAX.
 * Outcomes as pid_read(). */
int pid_read_cgroup(const struct root *proc, const struct pid_id *id, struct buf *b);

/* True if the agent is in the first cgroup namespace, so that paths in /proc/PID/cgroup begin at
 * the roots of the hierarchies. */
bool pid_sees_all_cgroups(const struct root *proc);

/* The parent's pid; 0 for a parent outside our pid namespace. Outcomes as pid_read(). */
int pid_read_parent(const struct root *proc, pid_t pid, pid_t *ret);

/* Parses /proc/PID/stat into identity and name: 0 or PID_ODD. */
int pid_parse_stat(const char *stat, size_t n, struct pid_id *ret, char ret_comm[PID_COMM_MAX]);

/* The processes of /proc one by one, in ascending order. The caller closes *@ret. 0, PID_DENIED,
 * PID_GONE (no /proc there), -errno. */
int pid_list_open(const struct root *proc, DIR **ret);
/* The next process with pid_inode(). 0, PID_GONE after the last one, -errno. */
int pid_list_next(DIR *dir, pid_t *ret_pid, uint64_t *ret_inode);
/* Calls @fn for each process in /proc until a result other than 0, and returns this result. 0,
 * PID_DENIED, PID_GONE (no /proc there), -errno. */
int pid_for_each(const struct root *proc, int (*fn)(void *ctx, pid_t pid), void *ctx);
/* The same with pid_inode() of each process, at a third of the cost of separate calls. */
int pid_for_each_inode(const struct root *proc, int (*fn)(void *ctx, pid_t pid, uint64_t inode),
		       void *ctx);

#endif
