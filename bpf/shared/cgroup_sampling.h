/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_CGROUP_SAMPLING_H
#define PODPROF_BPF_SHARED_CGROUP_SAMPLING_H

/*
 * The sampling rate of each cgroup. The programs read the rate before they take a stack. The lookup
 * uses the task's cgroup in the unified hierarchy. If that cgroup has no entry, the lookup uses the
 * task's cgroup in the version 1 hierarchy (settings.v1_controller). A task without an entry in
 * either has all its samples taken; with SETTINGS_SCOPE_CGROUPS, none.
 *
 * A new container has no entry yet, and its task may be in a host directory of the version 1
 * hierarchy. So no lookup uses this hierarchy if the cgroup in the unified hierarchy is younger
 * than the map. The kernel numbers the cgroups of a hierarchy in ascending order.
 *
 * Docker in a container of a node with both trees has the version 1 hierarchies alone: tasks of its
 * containers stay in the outer container's directory of the unified hierarchy. So the directory of
 * such an inner container, of another rate than the outer one, comes before both
 * (CGROUP_TREE_INNER).
 *
 * Each sample is an independent random draw, so that work in step with the clock causes no bias.
 * The weight of a taken sample also represents the samples left out.
 */

#include "lib/types.h"

/* The ids of cgroups are unique within one hierarchy only. */
enum cgroup_tree {
	CGROUP_TREE_V2,
	CGROUP_TREE_V1,
	CGROUP_TREE_INNER, /* of version 1 */
};

/* Hash key: no padding. */
struct cgroup_sampling_key {
	__u64 id;   /* of the cgroup's directory */
	__u64 tree; /* enum cgroup_tree */
};

/* The programs read the eight bytes at once. A read during a write gives the old value or the new
 * value, never a mixture. */
struct cgroup_sampling_rate {
	__u32 keep;   /* of 2^32 samples; 0: none, CGROUP_SAMPLING_ALL: each */
	__u32 weight; /* weight of a taken sample, in SAMPLE_ONEs (sample.h) */
};
_Static_assert(sizeof(struct cgroup_sampling_rate) == 8, "value of the cgroup sampling map");

#define CGROUP_SAMPLING_ALL	0xffffffffu
/* Directories. A container has one to ten, and few containers are left out. A cgroup without room
 * is sampled in full, and user space filters its samples. 0.8 MB. */
#define CGROUP_SAMPLING_ENTRIES 8192

#endif
