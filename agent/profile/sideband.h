/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_SIDEBAND_H
#define PODPROF_PROFILE_SIDEBAND_H

/*
 * The kernel's records of all processes: forks, execs, executable mappings, exits. One perf event
 * on each CPU delivers the records, without BPF. One thread, the owner, calls all functions except
 * sideband_fetch().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nsec.h"
#include "profile/sideband_record.h"

struct metric_sink;
struct root;
struct sideband;

/* Bytes of each CPU's ring, and of all rings together: up to 32 CPUs have the largest. A storm of
 * executable mappings writes 20 MB a second on one CPU, and on a busy node the drain thread waits
 * some milliseconds for a CPU. A lost record costs names in profiles. A ring is smaller where the
 * kernel locks no more memory for podprof (kernel.perf_event_mlock_kb). */
#define SIDEBAND_RING_BYTES	 131072
#define SIDEBAND_RING_BYTES_MOST 524288
#define SIDEBAND_RINGS_BYTES	 ((size_t)16 << 20)

/* From the time stamp of a record to its arrival in the ring. Measured: below 100 us. A descheduled
 * virtual CPU takes longer, and the record then arrives out of order. Receivers accept such records
 * anyway, because losses have the same effect. */
#define SIDEBAND_ARRIVAL_NS NSEC_PER_MSEC

/* Bytes of records in the queues of all CPUs: 80,000 usual records, the work of about 0.1 s for
 * their receiver. Reached: `podprof_process_events_lost_total{reason="queue_full"}`. */
#define SIDEBAND_QUEUES_MAX ((size_t)8 << 20)

/**
 * struct sideband_opts - options of sideband_new()
 * @sys:        /sys; borrowed
 * @ring_bytes: ring size of each CPU: a power of two, at least a page; 0: by the number of CPUs
 * @queue_bytes: ceiling of the queues behind the rings; 0: SIDEBAND_QUEUES_MAX
 */
struct sideband_opts {
	const struct root *sys;
	size_t ring_bytes;
	size_t queue_bytes;
};

typedef void (*sideband_fn)(void *ctx, const struct sideband_record *record);

/* 0 or -errno. If no CPU's event opens: the error of the event (-EPERM, -EACCES: CAP_PERFMON). */
int sideband_new(const struct sideband_opts *opts, struct sideband **ret);
void sideband_free(struct sideband *sb);

/* Copies the records of the rings into queues; any thread may call. True if the owner should call
 * sideband_drain() soon. */
bool sideband_fetch(struct sideband *sb);

/**
 * sideband_drain() - deliver the records since the last call, in order of time
 * @until_ns: end of the drain (CLOCK_BOOTTIME); later records stay for the next call. The kernel
 *            takes a record's time before the write to the ring. Thus a record younger than about a
 *            millisecond may precede an older one of another CPU
 * @max:      number of records; further ones stay for the next call
 *
 * If records are or may be missing (after a full ring or queue), a SIDEBAND_LOST follows the last
 * record before @until_ns.
 *
 * Return: the number of delivered records.
 */
size_t sideband_drain(struct sideband *sb, uint64_t until_ns, size_t max, sideband_fn fn,
		      void *ctx);
/* The usual @until_ns of sideband_drain(): now, minus the records' arrival time. */
uint64_t sideband_until(void);

/* Opens events on all online CPUs and closes the others. Call after a CPU came or went, and once
 * more a second later. 0, an outcome of perf_events_follow(), -errno. */
int sideband_follow(struct sideband *sb);
/* Whether each CPU that was online at the last sideband_follow() has its ring. */
bool sideband_whole(const struct sideband *sb);

/* A descriptor for epoll: readable when an eighth of a ring is full (SIDEBAND_RING_WAKE), until the
 * next fetch or drain. */
int sideband_fd(const struct sideband *sb);

/* Number of CPUs with an event. */
size_t sideband_n_open(const struct sideband *sb);
/* Records lost so far: in full rings, as the kernel reports, and in full queues. */
uint64_t sideband_n_lost(struct sideband *sb);
/* A metric_collect_fn: podprof_process_events by kind, podprof_process_events_lost by reason,
 * podprof_process_event_gaps. */
void sideband_collect(void *sideband, struct metric_sink *sink);

#endif
