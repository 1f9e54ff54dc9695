/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_SETTINGS_H
#define PODPROF_BPF_SHARED_SETTINGS_H

/* The programs' read-only data. User space writes the settings before the programs are loaded. */

#include "lib/types.h"
#include "shared/frame.h"

/*
 * The version 1 hierarchy for the cgroup id of a sample, named by a controller mounted there. A
 * task leads to a hierarchy without a controller, such as name=systemd, only through a walk. A
 * controller unknown to the running kernel gives the id 0.
 */
enum settings_v1 {
	SETTINGS_V1_NONE, /* only the unified hierarchy is walked */
	SETTINGS_V1_MEMORY,
	SETTINGS_V1_PIDS,
	SETTINGS_V1_CPU,
	SETTINGS_V1_CPUACCT,
	SETTINGS_V1_CPUSET,
	SETTINGS_V1_DEVICES,
	SETTINGS_V1_FREEZER,
	SETTINGS_V1_BLKIO,
	SETTINGS_V1_PERF_EVENT,
	SETTINGS_V1_MAX,
};

/* The scope of sampling (shared/pid_filter.h, shared/cgroup_sampling.h). */
enum settings_scope {
	SETTINGS_SCOPE_ALL,
	SETTINGS_SCOPE_PROCESSES, /* processes in the pid filter and their descendants */
	SETTINGS_SCOPE_CGROUPS,	  /* tasks in a cgroup of the cgroup sampling map */
};

/* The method to find callers in user stacks. */
enum settings_unwind {
	SETTINGS_UNWIND_AUTO,  /* by unwind tables, without one by frame pointer */
	SETTINGS_UNWIND_FP,    /* by frame pointer only */
	SETTINGS_UNWIND_DWARF, /* by unwind tables only */
	SETTINGS_UNWIND_MAX,
};

struct settings {
	__u32 v1_controller;	/* enum settings_v1 */
	__u32 kernel_stacks;	/* 1: with the kernel half */
	__u32 pidns_inum;	/* inode of the pid namespace of the agent's /proc */
	__u32 scope;		/* enum settings_scope */
	__u32 unwind;		/* enum settings_unwind */
	__u32 dumps_per_second; /* limit of stack dumps on a CPU (stack_dump.h); 0: none */
	__u32 thread_names;	/* 1: stacks have the name of their thread */
	__u32 task_names;	/* 1: stacks have the name of their task (python.h) */
};
_Static_assert(sizeof(struct settings) == 32, "read-only data of the programs");

/* Slots of an event's program array. The slot of a walk is the enum frame_runtime of its step, 0
 * for native code alone. */
enum settings_program {
	SETTINGS_WALK = FRAME_RUNTIME_NONE,
	SETTINGS_DUMP = FRAME_RUNTIME_MAX,
	SETTINGS_DUMP_PYTHON, /* the dump with an excerpt */
	SETTINGS_PROGRAMS,
};

/* What a walk has for itself on each CPU, and a walk of HotSpot or CPython besides: see
 * lib/stack.bpf.h. With a BPF array's header, 312 bytes in Linux 6.18, each is a block of 16 KB. */
#define SETTINGS_ROOM_BYTES    (31 * 512)
#define SETTINGS_OBJECTS_BYTES (241 * 64)

/* The first pid namespace's inode number (include/linux/proc_ns.h, PROC_PID_INIT_INO). */
#define SETTINGS_PIDNS_INIT 0xeffffffcu

#endif
