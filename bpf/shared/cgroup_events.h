/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_CGROUP_EVENTS_H
#define PODPROF_BPF_SHARED_CGROUP_EVENTS_H

/*
 * The last cgroup directories made, under the ids in the samples. The BPF program writes the ring,
 * and user space maps it. The ring names cgroups removed before the agent could read their path.
 */

#include "lib/types.h"
#include "shared/cgroup_sampling.h"

/* Entries; a power of two. A node with 1,000 container starts a minute makes 150 directories in
 * three seconds, the longest wait of a sample. */
#define CGROUP_EVENTS		512
/* Bytes of a path with its NUL. The path of a container has 200, and 310 where the node itself runs
 * in a container. The ring keeps a longer path as "", because the end of a path identifies the
 * container. */
#define CGROUP_EVENT_PATH_BYTES 488

struct cgroup_event {
	__u64 id;
	__u64 n;			    /* number of cgroups made before */
	__u64 tree;			    /* enum cgroup_tree */
	char path[CGROUP_EVENT_PATH_BYTES]; /* from the tree's root */
};
_Static_assert(sizeof(struct cgroup_event) == 512, "an element of the ring");

#endif
