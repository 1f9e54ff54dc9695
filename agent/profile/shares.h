/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_SHARES_H
#define PODPROF_PROFILE_SHARES_H

/* Which share of a cgroup's samples the kernel side takes (bpf/shared/share.h). */

#include <stddef.h>
#include <stdint.h>

#include "discovery/hierarchy.h"

struct bpfobj_shares;
struct metric_sink;
struct shares;

/* @bpf: copied; its descriptor is borrowed. 0 or -errno. */
int shares_new(const struct bpfobj_shares *bpf, struct shares **ret);
void shares_free(struct shares *s);

/*
 * All that is not as usual is told again and again, and what was not told this time is as usual
 * from then on:
 *
 *	shares_begin(s);
 *	shares_set(s, ...) for each directory
 *	shares_end(s);
 *
 * The kernel is told of differences only.
 */
void shares_begin(struct shares *s);

/**
 * shares_set() - samples of one cgroup directory
 * @id:   as samples carry it
 * @part, @whole: so many are taken, drawn by chance, of so many: 0 of them, some, or from @whole on
 *        all. A directory that is told twice has what is told first.
 *
 * Return: 0; SHARES_FULL: it is sampled as if nothing had been said, and counted; -errno.
 */
int shares_set(struct shares *s, enum hierarchy hierarchy, uint64_t id, unsigned int part,
	       unsigned int whole);

/* 0 or -errno. */
int shares_end(struct shares *s);

enum shares_outcome {
	SHARES_OK = 0,
	SHARES_FULL,
};

/* A metric_collect_fn: podprof_share_cgroups, podprof_share_refused. */
void shares_collect(void *shares, struct metric_sink *sink);

#endif
