/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_CGROUP_SAMPLING_H
#define PODPROF_BPF_SHARED_CGROUP_SAMPLING_H

/*
 * Which share of a cgroup's samples is taken: the programs look here before they take a stack. A
 * task is looked up by its cgroup in the unified hierarchy and, if that is not there, by that in
 * the version 1 hierarchy (settings.v1_controller). What is in neither has all its samples taken;
 * with SETTINGS_SCOPE_CGROUPS, none.
 *
 * Samples are drawn one by one and by chance, so that a program that does something in step with
 * the clock is seen as it is. Each that is taken stands for those that were not: its weight.
 */

#include "lib/types.h"

/* The numbers of cgroups are of one hierarchy only. */
enum cgroup_tree { CGROUP_TREE_V2, CGROUP_TREE_V1 };

/* Hash key: no padding. */
struct cgroup_sampling_key {
	__u64 id;   /* of the cgroup's directory */
	__u64 tree; /* enum cgroup_tree */
};

/* The same eight bytes on the whole, read at once: whoever reads while it is written has the old
 * one or the new one. */
struct cgroup_sampling_rate {
	__u32 keep;   /* of 2^32 samples; 0: none, CGROUP_SAMPLING_ALL: each */
	__u32 weight; /* what one that is taken stands for, in SAMPLE_ONEs (sample.h) */
};
_Static_assert(sizeof(struct cgroup_sampling_rate) == 8, "value of the table of shares");

#define CGROUP_SAMPLING_ALL	0xffffffffu
/* Directories. Containers have from one to ten, and few are left out; those that find no room are
 * sampled in full, and sorted out in user space. 0.8 MB. */
#define CGROUP_SAMPLING_ENTRIES 8192

#endif
