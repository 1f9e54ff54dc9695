/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_PID_FILTER_BPF_H
#define PODPROF_BPF_LIB_PID_FILTER_BPF_H

/* Whose samples are wanted (shared/pid_filter.h). Looked up before a stack is walked, so that the
 * others cost a tenth of a sample and no room. */

#include "lib/stack.bpf.h"
#include "shared/pid_filter.h"

/* Its size is set before the object is loaded: PID_FILTER_ENTRIES where there is a filter. Weak:
 * the same map in every object that includes this. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct pid_filter_entry);
} pid_filter_ids __weak SEC(".maps");

static __always_inline int pid_filter_process(const struct sample_key *key)
{
	__u64 id = key->tgid;
	const struct pid_filter_entry *w = bpf_map_lookup_elem(&pid_filter_ids, &id);

	return w && (!w->start_boottime_ns || w->start_boottime_ns == key->start_boottime_ns);
}

/* Whether a sample with this identity is to be taken. Cgroups are another table's:
 * cgroup_sampling.bpf.h. */
static __always_inline int pid_filter_match(const struct sample_key *key)
{
	return cfg.scope != SETTINGS_SCOPE_PROCESSES || pid_filter_process(key);
}

/* Whether @task can be told not to be wanted without finding out who it is. It must be an argument
 * of a tp_btf program: those are read without a helper's call. */
static __always_inline int pid_filter_excludes(const struct task_struct *task)
{
	__u64 id = (__u32)task->tgid;

	return cfg.scope == SETTINGS_SCOPE_PROCESSES && cfg.pidns_inum == SETTINGS_PIDNS_INIT &&
	       !bpf_map_lookup_elem(&pid_filter_ids, &id);
}

#endif
