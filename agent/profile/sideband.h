/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_SIDEBAND_H
#define PODPROF_PROFILE_SIDEBAND_H

/*
 * What the kernel tells of all processes while they live: forks, execs, executable mappings, exits;
 * by one perf event on each CPU, without BPF.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/sideband_record.h"

struct metric_sink;
struct root;
struct sideband;

/* Bytes of each CPU's ring. A fork, exec and exit of a small program is about 650 bytes; at 200 a
 * second on two CPUs the ring is half full after a second, when it wakes us, and on a busy node we
 * may have to wait for a CPU as long again. What is lost here are names. */
#define SIDEBAND_RING_BYTES 131072

/**
 * struct sideband_opts
 * @sys:        /sys; borrowed
 * @ring_bytes: of each CPU; a power of two and not less than a page; 0 is SIDEBAND_RING_BYTES
 */
struct sideband_opts {
	const struct root *sys;
	size_t ring_bytes;
};

typedef void (*sideband_fn)(void *ctx, const struct sideband_record *record);

/* 0, or -errno: of the event if no CPU's could be opened (-EPERM, -EACCES: CAP_PERFMON). */
int sideband_new(const struct sideband_opts *opts, struct sideband **ret);
void sideband_free(struct sideband *sb);

/**
 * sideband_drain() - hand over what has happened since the last call, in the order of time; and,
 * last, one SIDEBAND_LOST where something is missing or may be, since a ring was full
 * @until_ns: records of before that time (CLOCK_BOOTTIME); later ones stay for the next call. A
 *            record's time is taken before it is in the ring, so that one which is younger than
 *            about a millisecond may be followed by an older one of another CPU
 *
 * Return: the number handed over.
 */
size_t sideband_drain(struct sideband *sb, uint64_t until_ns, sideband_fn fn, void *ctx);
/* Now, less what records need to arrive: what sideband_drain() wants in the usual case. */
uint64_t sideband_until(void);

/* Make the open events those of the CPUs that are online now; every second or so. 0, an outcome of
 * perf_events_follow(), -errno. */
int sideband_follow(struct sideband *sb);

/* Readable (EPOLLIN) when some ring is half full, until the next drain. */
int sideband_fd(const struct sideband *sb);

/* CPUs that have an event. */
size_t sideband_n_open(const struct sideband *sb);
/* Records that found no room in a ring, as far as the kernel has told. */
uint64_t sideband_n_lost(const struct sideband *sb);
/* A metric_collect_fn: podprof_process_events by kind, podprof_process_events_lost by reason. */
void sideband_collect(void *sideband, struct metric_sink *sink);

#endif
