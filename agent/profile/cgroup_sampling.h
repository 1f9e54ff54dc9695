/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_CGROUP_SAMPLING_H
#define PODPROF_PROFILE_CGROUP_SAMPLING_H

/* The share of a cgroup's samples that BPF takes (bpf/shared/cgroup_sampling.h). */

#include <stddef.h>
#include <stdint.h>

#include "discovery/hierarchy.h"

struct bpfobj_cgroup_sampling;
struct cgroup_sampling;
struct metric_sink;

/* @bpf: copied; its descriptor is borrowed. 0 or -errno. */
int cgroup_sampling_new(const struct bpfobj_cgroup_sampling *bpf, struct cgroup_sampling **ret);
void cgroup_sampling_free(struct cgroup_sampling *s);

/*
 * Each round sets every directory with a reduced share. A directory absent from the round returns
 * to the full share:
 *
 *	cgroup_sampling_begin(s);
 *	cgroup_sampling_set(s, ...) for each directory
 *	cgroup_sampling_end(s);
 *
 * Only differences are written to the map.
 */
void cgroup_sampling_begin(struct cgroup_sampling *s);

/**
 * cgroup_sampling_set() - set the share of one cgroup directory
 * @id:           the cgroup id of samples
 * @part, @whole: BPF takes @part of @whole samples at random: 0: none; @whole or more: all. If a
 *                round sets a directory twice, the first call counts.
 *
 * Return: 0; CGROUP_SAMPLING_FULL: the map is full, and the directory keeps the full share
 * (counted); -errno.
 */
int cgroup_sampling_set(struct cgroup_sampling *s, enum hierarchy hierarchy, uint64_t id,
			unsigned int part, unsigned int whole);

/* The same for the version 1 directory of a container in another container. BPF looks there before
 * it looks in the unified hierarchy, where a task of such a container may be in the outer one's
 * directory. */
int cgroup_sampling_set_inner(struct cgroup_sampling *s, uint64_t id, unsigned int part,
			      unsigned int whole);

/* Call before the end of a round. @newest: the largest id that the caller knows in the unified
 * hierarchy. BPF ignores the version 1 directory of a task if the task's directory in the unified
 * hierarchy has a larger id than @newest of the round before. 0: BPF ignores no directory. */
void cgroup_sampling_know(struct cgroup_sampling *s, uint64_t newest);

/* 0 or -errno. */
int cgroup_sampling_end(struct cgroup_sampling *s);
/* The same in slices of a directory each: CGROUP_SAMPLING_MORE until the last one. Nothing is set
 * meanwhile. */
int cgroup_sampling_end_step(struct cgroup_sampling *s);

enum cgroup_sampling_outcome {
	CGROUP_SAMPLING_OK = 0,
	CGROUP_SAMPLING_FULL,
	CGROUP_SAMPLING_MORE,
};

/* A metric_collect_fn: podprof_cgroup_sampling_entries, podprof_cgroup_sampling_refused. */
void cgroup_sampling_collect(void *cgroup_sampling, struct metric_sink *sink);

#endif
