/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_LIB_PID_FILTER_BPF_H
#define PODPROF_BPF_LIB_PID_FILTER_BPF_H

/* The pid filter (shared/pid_filter.h). The lookup comes before the walk, so a sample of an
 * unselected process costs a tenth of a full sample and no room. */

#include "lib/stack.bpf.h"
#include "shared/pid_filter.h"

/* User space sets the size before it loads the object: PID_FILTER_ENTRIES with a filter. Weak: the
 * same map in every object that includes this header. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct pid_filter_entry);
} pid_filter_ids __weak SEC(".maps");

/* Whether the process that began then is in the filter, and not an earlier one with its pid. */
static __always_inline int pid_filter_has(__u64 id, __u64 start_boottime_ns)
{
	const struct pid_filter_entry *w = bpf_map_lookup_elem(&pid_filter_ids, &id);

	return w && (!w->start_boottime_ns || w->start_boottime_ns == start_boottime_ns);
}

/* Whether to take a sample with this identity. cgroup_sampling.bpf.h decides on cgroups. */
static __always_inline int pid_filter_match(const struct sample_key *key)
{
	return cfg.scope != SETTINGS_SCOPE_PROCESSES ||
	       pid_filter_has(key->tgid, key->start_boottime_ns);
}

/* Whether the filter excludes @task by its kernel pid alone, without the rest of the identity.
 * @task must be an argument of a tp_btf program, because its reads need no helper's call. */
static __always_inline int pid_filter_excludes(const struct task_struct *task)
{
	__u64 id = (__u32)task->tgid;

	return cfg.scope == SETTINGS_SCOPE_PROCESSES && cfg.pidns_inum == SETTINGS_PIDNS_INIT &&
	       !bpf_map_lookup_elem(&pid_filter_ids, &id);
}

#endif
