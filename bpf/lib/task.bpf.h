/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_TASK_BPF_H
#define PODPROF_BPF_LIB_TASK_BPF_H

/* Identity of a task: process, name and cgroups. */

#include "lib/kernel.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "shared/settings.h"

/* Namespaces nest 32 deep at most (MAX_PID_NS_LEVEL). An agent with the right to load programs runs
 * in the first level or, in kind and similar nodes, in the second. */
#define TASK_PIDNS_LEVELS 8

/* Whether task_current() has a type for the verifier: since 5.11 (3ca1032ab7ab). */
#define TASK_TYPED bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)

static __always_inline struct task_struct *task_current(void)
{
	if (TASK_TYPED)
		return bpf_get_current_task_btf();
	return (struct task_struct *)bpf_get_current_task();
}

/*
 * A member of @p, which is task_current(), an argument of a tp_btf program, or a pointer read from
 * these by TASK_READ(). A typed pointer is read without a helper's call. The processor then waits
 * for several cache lines at once: calls of helpers have too many instructions in between.
 */
#define TASK_READ(p, member)                                 \
	({                                                   \
		typeof((p)->member) value_;                  \
                                                             \
		if (TASK_TYPED)                              \
			value_ = (p)->member;                \
		else                                         \
			value_ = BPF_CORE_READ((p), member); \
		value_;                                      \
	})

static __always_inline int task_is_kernel(struct task_struct *task)
{
	return (TASK_READ(task, flags) & PF_KTHREAD) || !TASK_READ(task, mm);
}

/* Number of execs of @leader's process since its birth, without the number inherited from the
 * parent. After the first exec, a process made with CLONE_PARENT continues its maker's count. */
static __always_inline __u64 task_exec_id(struct task_struct *leader)
{
	if (TASK_READ(leader, flags) & PF_FORKNOEXEC)
		return 0;
	return TASK_READ(leader, self_exec_id) - TASK_READ(leader, parent_exec_id);
}

/* The longest distance between the start of a program's stack and its call of execve(). */
#define TASK_EXEC_STACK_BYTES (8ull << 20)

/*
 * Whether @task is within execve() and has left its old memory. Its user registers are still the
 * old program's, and a lookup would use them with the new program's mappings. The new program's
 * stack is at a random address, or not there yet. A thread other than the leader has its stack
 * elsewhere, so from the beginning of execve() it has no stack here.
 */
static __always_inline int task_has_left(struct task_struct *task, __u64 sp)
{
	__u64 start;

	if (!bpf_core_field_exists(task->in_execve) ||
	    !BPF_CORE_READ_BITFIELD_PROBED(task, in_execve))
		return 0;
	start = BPF_CORE_READ(task, mm, start_stack);
	return start - sp > TASK_EXEC_STACK_BYTES;
}

/*
 * Whether @task, which leaves the CPU, waits for something: it neither wants to go on nor ends. It
 * must be an argument of a tp_btf program: those are read without a helper's call.
 *
 * The tracepoint's prev_state, since 5.18 (9c2136be0878), is no replacement. With a pending signal,
 * __schedule() sets the task's state back to TASK_RUNNING, and until 6.14 (8feb053d5319) prev_state
 * still has the old state: a thread that waits for a CPU would count as waiting. The task's own
 * state has no race here: the run queue is locked, and a waker on another CPU sets TASK_WAKING
 * until the switch is over.
 */
static __always_inline int task_waits(struct task_struct *task)
{
	__u64 state;

	if (bpf_core_field_exists(task->__state))
		state = task->__state;
	else
		state = (__u64)((struct task_struct___before_5_14 *)task)->state;
	return state != TASK_RUNNING && !(state & TASK_DEAD);
}

/* The number of @leader's process in the pid namespace @inum, 0 if it has none there. Reads by
 * helpers: @leader has no type in a raw_tp program. */
static __always_inline __u32 task_tgid_in(struct task_struct *leader, __u32 inum)
{
	struct pid *pid;
	__u32 level;
	__u64 upid;

	if (inum == SETTINGS_PIDNS_INIT)
		return (__u32)BPF_CORE_READ(leader, tgid);
	pid = BPF_CORE_READ(leader, thread_pid); /* NULL after the reaping */
	if (!pid)
		return 0;
	level = BPF_CORE_READ(pid, level);
	upid = (__u64)pid + bpf_core_field_offset(struct pid, numbers);
	for (__u32 i = 0; i < TASK_PIDNS_LEVELS; i++) {
		struct upid *u = (struct upid *)upid;

		if (i > level)
			break;
		if (BPF_CORE_READ(u, ns, ns.inum) == inum)
			return (__u32)BPF_CORE_READ(u, nr);
		upid += bpf_core_type_size(struct upid);
	}
	return 0;
}

/* The same for a @leader that TASK_READ() can read. */
static __always_inline __u32 task_tgid(struct task_struct *leader, __u32 inum)
{
	if (inum == SETTINGS_PIDNS_INIT)
		return (__u32)TASK_READ(leader, tgid);
	return task_tgid_in(leader, inum);
}

#define TASK_SUBSYS(name)                                                          \
	(bpf_core_enum_value_exists(enum cgroup_subsys_id, name##_cgrp_id)         \
		 ? (int)bpf_core_enum_value(enum cgroup_subsys_id, name##_cgrp_id) \
		 : -1)

/* The running kernel's index of a controller, -1 if not built in. */
static __always_inline int task_subsys(__u32 v1_controller)
{
	switch (v1_controller) {
	case SETTINGS_V1_MEMORY:
		return TASK_SUBSYS(memory);
	case SETTINGS_V1_PIDS:
		return TASK_SUBSYS(pids);
	case SETTINGS_V1_CPU:
		return TASK_SUBSYS(cpu);
	case SETTINGS_V1_CPUACCT:
		return TASK_SUBSYS(cpuacct);
	case SETTINGS_V1_CPUSET:
		return TASK_SUBSYS(cpuset);
	case SETTINGS_V1_DEVICES:
		return TASK_SUBSYS(devices);
	case SETTINGS_V1_FREEZER:
		return TASK_SUBSYS(freezer);
	case SETTINGS_V1_BLKIO:
		return TASK_SUBSYS(io);
	case SETTINGS_V1_PERF_EVENT:
		return TASK_SUBSYS(perf_event);
	default:
		return -1;
	}
}

/* The id of @task's cgroup in the controller's hierarchy; 0 without this hierarchy. */
static __always_inline __u64 task_cgroup_v1_id(struct task_struct *task, __u32 v1_controller)
{
	struct cgroup_subsys_state *css = NULL;
	int subsys = task_subsys(v1_controller);
	struct cgroup *cgroup;
	struct kernfs_node *kn;
	__u64 slot;

	if (subsys < 0)
		return 0;
	slot = (__u64)TASK_READ(task, cgroups) + bpf_core_field_offset(struct css_set, subsys) +
	       (__u64)subsys * sizeof(css);
	/* libbpf cannot change a load into one of an array, only the addition of its offset. */
	__asm__ volatile("" : "+r"(slot));
	if (TASK_TYPED)
		css = *(struct cgroup_subsys_state **)slot;
	else
		bpf_probe_read_kernel(&css, sizeof(css), (void *)slot);
	cgroup = TASK_READ(css, cgroup);
	kn = TASK_READ(cgroup, kn);
	return TASK_READ(kn, id);
}

#endif
