/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DISCOVERY_PID_H
#define PODPROF_DISCOVERY_PID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct root;

/**
 * struct pid_id - which process is meant; never a pid alone
 * @pid:         thread group id, as the agent's /proc shows it
 * @start_ticks: field 22 of /proc/PID/stat, clock ticks since boot; the kernel's
 *               start_boottime divided by the length of a tick is the same number
 *
 * Compared as bytes where it is a hash key, so there is no padding.
 */
struct pid_id {
	uint64_t start_ticks;
	uint64_t pid;
};

enum pid_outcome {
	PID_OK = 0,
	PID_GONE,   /* no such process, or another one has the number now */
	PID_DENIED, /* /proc is hidden from us */
	PID_ODD,    /* stat is not as proc(5) says */
	PID_OUTCOME_MAX,
};

static inline bool pid_id_equal(const struct pid_id *a, const struct pid_id *b)
{
	return a->pid == b->pid && a->start_ticks == b->start_ticks;
}

/* Start time in ticks from nanoseconds of the boot clock, as BPF reports it. */
uint64_t pid_ticks_of_ns(uint64_t start_boottime_ns);
/* The beginning of that tick. */
uint64_t pid_ns_of_ticks(uint64_t start_ticks);

/* Who has @pid now. 0, PID_GONE, PID_DENIED, PID_ODD, -errno. */
int pid_read(const struct root *proc, pid_t pid, struct pid_id *ret);
/* Whether @id still is that process: 0, PID_GONE, ... */
int pid_check(const struct root *proc, const struct pid_id *id);

/* The inode number of /proc/PID: as long as it is the same the number has not changed hands, since
 * procfs makes it anew for each process. 0 if there is no such process. The other way round it may
 * be another one for the same process. */
uint64_t pid_inode(const struct root *proc, pid_t pid);

/* Our own number as @proc shows it; 0 if that is a PID namespace without us. */
uint64_t pid_self(const struct root *proc);

/* Whether the numbers that @proc shows are those that system calls of ours take and tell: it is of
 * our own PID namespace. */
bool pid_is_ours(const struct root *proc);
/* The first PID namespace's inode number (include/linux/proc_ns.h, PROC_PID_INIT_INO). */
#define PID_NAMESPACE_FIRST 0xeffffffcu

/* The PID namespace that @proc shows, by its inode number. Where we may not look at its first
 * process: our own, if that is the one; else 0. */
uint32_t pid_namespace(const struct root *proc);

/* The program that a process runs: the file's device and inode. */
struct pid_exe {
	uint64_t device;
	uint64_t inode;
};
/* Zeros where it cannot be had, and errno says why: the process has gone or is a kernel thread
 * (ENOENT, ESRCH), or we may not look (EACCES). */
struct pid_exe pid_read_exe(const struct root *proc, uint64_t pid);

/* Its threads, a leader that is dead included; 0 if there is no such process. */
size_t pid_n_threads(const struct root *proc, pid_t pid);

/* With the NUL; the kernel's TASK_COMM_LEN. Reached: -. */
#define PID_COMM_MAX 16
/* The process's name, NUL-terminated. Any bytes but NUL may be in it. Outcomes as pid_read(). */
int pid_read_comm(const struct root *proc, const struct pid_id *id, char ret[PID_COMM_MAX]);

/* 14 lines with paths of up to 4 KiB; a longer file is PID_ODD. Reached:
 * `podprof_entity_lookups_total{outcome="unknown_unreadable"}`. */
#define PID_CGROUP_BYTES_MAX (64u << 10)
/* Appends /proc/PID/cgroup of exactly this process; @b is of that size. Outcomes as pid_read(). */
int pid_read_cgroup(const struct root *proc, const struct pid_id *id, struct buf *b);

/* Whether paths there begin at the trees' roots, for we are in the first cgroup namespace. */
bool pid_sees_all_cgroups(const struct root *proc);

/* Whose child it is; 0 for one whose parent our pid namespace does not have. Outcomes as
 * pid_read(). */
int pid_read_parent(const struct root *proc, pid_t pid, pid_t *ret);

/* Text of /proc/PID/stat to identity and name: 0 or PID_ODD. */
int pid_parse_stat(const char *stat, size_t n, struct pid_id *ret, char ret_comm[PID_COMM_MAX]);

/* Calls @fn for each process that /proc lists, until it returns something else than 0, which is
 * then returned. 0, PID_DENIED, PID_GONE (no /proc there), -errno. */
int pid_for_each(const struct root *proc, int (*fn)(void *ctx, pid_t pid), void *ctx);
/* The same with pid_inode(), which costs a third of asking for each. */
int pid_for_each_inode(const struct root *proc, int (*fn)(void *ctx, pid_t pid, uint64_t inode),
		       void *ctx);

/* "gone", "denied", ...: label values of metrics. */
const char *pid_outcome_name(int outcome);

#endif
