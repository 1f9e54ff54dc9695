/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PODPROF_BPF_SHARED_CGROUP_EVENTS_H
#define PODPROF_BPF_SHARED_CGROUP_EVENTS_H

/*
 * The cgroup directories that were made last, by the id that samples carry: a ring that the program
 * writes and user space maps. What has gone again before anybody looked is known by it.
 */

#include "lib/types.h"
#include "shared/cgroup_sampling.h"

/* Entries; a power of two. A node that starts 1,000 containers a minute makes 150 directories in
 * the three seconds that a sample may wait. */
#define CGROUP_EVENTS		512
/* Bytes of a path with its NUL. A container's has 200, one of a node in a container 310; a longer
 * one is kept as "", since its end is what tells. */
#define CGROUP_EVENT_PATH_BYTES 488

struct cgroup_event {
	__u64 id;
	__u64 n;			    /* how many were made before this one */
	__u64 tree;			    /* enum cgroup_tree */
	char path[CGROUP_EVENT_PATH_BYTES]; /* from the tree's root */
};
_Static_assert(sizeof(struct cgroup_event) == 512, "an element of the ring");

#endif
