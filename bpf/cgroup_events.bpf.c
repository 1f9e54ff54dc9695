// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The paths of cgroup directories, stored when the kernel makes a directory. A container with a
 * life of milliseconds ends before user space can read the path; the samples carry the id.
 *
 * The kernel calls this within cgroup_mutex, one directory after the other.
 */
#include "lib/settings.bpf.h"
#include "lib/task.bpf.h"
#include "shared/cgroup_events.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CGROUP_EVENTS);
	__type(key, __u32);
	__type(value, struct cgroup_event);
} cgroup_events SEC(".maps");

volatile __u64 cgroup_event_n = 0; /* directories made */

/* The tree of the cgroup, if samples have ids of this tree; else -1. */
static __always_inline int tree_of(struct cgroup *cgroup)
{
	struct cgroup_root *root = BPF_CORE_READ(cgroup, root);
	int subsys = task_subsys(cfg.v1_controller);

	if (!BPF_CORE_READ(root, hierarchy_id))
		return CGROUP_TREE_V2;
	return subsys >= 0 && (BPF_CORE_READ(root, subsys_mask) >> subsys & 1) ? CGROUP_TREE_V1
									       : -1;
}

/* Arguments: the cgroup and its path. */
SEC("raw_tp/cgroup_mkdir")
int cgroup_made(__u64 *args)
{
	struct cgroup *cgroup = (struct cgroup *)args[0];
	int tree = tree_of(cgroup);
	struct cgroup_event *e;
	__u32 slot = cgroup_event_n % CGROUP_EVENTS;
	long n;

	if (tree < 0)
		return 0;
	e = bpf_map_lookup_elem(&cgroup_events, &slot);
	if (!e)
		return 0;
	e->id = BPF_CORE_READ(cgroup, kn, id);
	e->n = cgroup_event_n;
	e->tree = (__u64)tree;
	n = bpf_probe_read_kernel_str(e->path, sizeof(e->path), (const void *)args[1]);
	if (n < 0 || n == sizeof(e->path))
		e->path[0] = '\0';
	cgroup_event_n++;
	return 0;
}
