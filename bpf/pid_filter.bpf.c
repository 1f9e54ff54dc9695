// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pid filter includes all descendants of its processes. The program adds a child at its fork,
 * before the child first runs, so no sample is missed. User space would be too late. Loaded only
 * with a filter of processes.
 */
#include "lib/pid_filter.bpf.h"

volatile __u32 pid_filter_refused = 0; /* children without room in the filter */

static __always_inline __u64 pid_filter_id(struct task_struct *leader)
{
	return task_tgid_in(leader, cfg.pidns_inum);
}

/* Arguments: the forking task (current), and the new task. */
SEC("raw_tp/sched_process_fork")
int pid_filter_fork(__u64 *args)
{
	struct task_struct *parent = BPF_CORE_READ((struct task_struct *)args[0], group_leader);
	struct task_struct *child = (struct task_struct *)args[1];
	__u64 parent_id = pid_filter_id(parent), id = pid_filter_id(child);
	struct pid_filter_entry w = {};

	if (BPF_CORE_READ(child, group_leader) != child || !parent_id || !id)
		return 0; /* a thread, or of another pid namespace */
	if (!pid_filter_has(parent_id, BPF_CORE_READ(parent, start_boottime)))
		return 0;
	w.start_boottime_ns = BPF_CORE_READ(child, start_boottime);
	if (bpf_map_update_elem(&pid_filter_ids, &id, &w, BPF_ANY))
		__sync_fetch_and_add(&pid_filter_refused, 1);
	return 0;
}

/* Argument: the exiting task, the current one. */
SEC("raw_tp/sched_process_exit")
int pid_filter_exit(__u64 *args)
{
	struct task_struct *task = (struct task_struct *)args[0];
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 id = pid_filter_id(leader);
	struct pid_filter_entry *w;

	if (BPF_CORE_READ(task, signal, live.counter))
		return 0; /* other threads go on */
	w = bpf_map_lookup_elem(&pid_filter_ids, &id);
	if (w) {
		/* from now on the pid may be another process's */
		w->start_boottime_ns = BPF_CORE_READ(leader, start_boottime);
		w->exited = 1;
	}
	return 0;
}
