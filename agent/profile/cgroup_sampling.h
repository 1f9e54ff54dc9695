/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_CGROUP_SAMPLING_H
#define PODPROF_PROFILE_CGROUP_SAMPLING_H

/* Which share of a cgroup's samples the kernel side takes (bpf/shared/cgroup_sampling.h). */

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
 * All that is not as usual is told again and again, and what was not told this time is as usual
 * from then on:
 *
 *	cgroup_sampling_begin(s);
 *	cgroup_sampling_set(s, ...) for each directory
 *	cgroup_sampling_end(s);
 *
 * The kernel is told of differences only.
 */
void cgroup_sampling_begin(struct cgroup_sampling *s);

/**
 * cgroup_sampling_set() - samples of one cgroup directory
 * @id:   as samples carry it
 * @part, @whole: so many are taken, drawn by chance, of so many: 0 of them, some, or from @whole on
 *        all. A directory that is told twice has what is told first.
 *
 * Return: 0; CGROUP_SAMPLING_FULL: it is sampled as if nothing had been said, and counted; -errno.
 */
int cgroup_sampling_set(struct cgroup_sampling *s, enum hierarchy hierarchy, uint64_t id,
			unsigned int part, unsigned int whole);

/* 0 or -errno. */
int cgroup_sampling_end(struct cgroup_sampling *s);

enum cgroup_sampling_outcome {
	CGROUP_SAMPLING_OK = 0,
	CGROUP_SAMPLING_FULL,
};

/* A metric_collect_fn: podprof_cgroup_sampling_entries, podprof_cgroup_sampling_refused. */
void cgroup_sampling_collect(void *cgroup_sampling, struct metric_sink *sink);

#endif
