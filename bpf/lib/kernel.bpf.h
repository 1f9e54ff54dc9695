/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_KERNEL_BPF_H
#define PODPROF_BPF_LIB_KERNEL_BPF_H

/*
 * The used part of the kernel's types. At load time, libbpf finds structs under
 * preserve_access_index by name in the running kernel's BTF. Order, offsets and omitted fields do
 * not matter. All other names and values are the kernel's stable user API.
 *
 * A type with a change in some kernel has a second declaration with the suffix ___before_X_Y
 * (libbpf ignores everything after three underscores). One function in this folder chooses by
 * existence.
 */

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};

/* Flags of maps. */
enum { BPF_F_MMAPABLE = 1 << 10 };

enum { BPF_ANY = 0, BPF_NOEXIST = 1 };

/* Ring buffers. */
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0, BPF_RB_RING_SIZE = 1 };

/* Only to test whether the running kernel has the helper; the values are the kernel's. */
enum bpf_func_id { BPF_FUNC_get_current_task_btf = 158, BPF_FUNC_task_pt_regs = 175 };

/* include/uapi/asm-generic/errno-base.h */
#define E2BIG  7
#define EEXIST 17

/* include/linux/sched.h */
#define PF_KTHREAD	0x00200000
#define PF_FORKNOEXEC	0x00000040
#define TASK_RUNNING	0x00000000
#define TASK_DEAD	0x00000080
#define TASK_COMM_BYTES 16

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* level + 1 elements */
};

struct kernfs_node {
	__u64 id; /* since 5.5 (67c0496e87d1); a union before */
};

struct cgroup_root {
	unsigned int subsys_mask; /* a bit for each enum cgroup_subsys_id */
	int hierarchy_id;	  /* 0: the unified hierarchy */
};

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

/* A map of type array. */
struct bpf_array {
	char value[0];
};

struct css_set {
	struct cgroup_subsys_state *subsys[1]; /* one element for each enum cgroup_subsys_id */
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	unsigned long i_ino;
	__u32 i_generation;
	struct super_block *i_sb;
};

struct file {
	struct inode *f_inode;
};

struct mm_struct {
	unsigned long start_stack; /* start of the program's initial stack */
	struct file *exe_file;
};

typedef struct {
	int counter;
} atomic_t;

/* Of a thread group. */
struct signal_struct {
	atomic_t live; /* threads before their exit */
};

struct sched_entity {
	__u64 sum_exec_runtime; /* nanoseconds on a CPU */
};

struct thread_struct {
	unsigned long fsbase; /* x86-64 only */
	struct {
		unsigned long tp_value;
	} uw; /* arm64 only */
};

struct task_struct___before_5_14 {
	volatile long state;
};

struct task_struct {
	unsigned int flags;
	unsigned int __state; /* since 5.14 (2f064a59a11f) */
	int pid;
	int tgid;
	__u64 start_boottime; /* since 5.5 (cf25e24db61c) */
	unsigned int in_execve : 1;
	__u64 parent_exec_id; /* the parent's self_exec_id at the fork */
	__u64 self_exec_id;   /* since 5.7 (d1e7fd6462ca); 32 bits before */
	char comm[TASK_COMM_BYTES];
	void *stack;
	struct sched_entity se;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct css_set *cgroups;
	int *clear_child_tid; /* user space's: set by set_tid_address() or clone() */
	struct thread_struct thread;
};

#pragma clang attribute pop

/* The values differ between kernels; bpf_core_enum_value() reads them at load time. */
enum cgroup_subsys_id {
	cpuset_cgrp_id,
	cpu_cgrp_id,
	cpuacct_cgrp_id,
	io_cgrp_id,
	memory_cgrp_id,
	devices_cgrp_id,
	freezer_cgrp_id,
	perf_event_cgrp_id,
	pids_cgrp_id,
};

#endif
