/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_SIDEBAND_RING_H
#define PODPROF_PROFILE_SIDEBAND_RING_H

/* One CPU's perf event for process records, and its ring in memory shared with the kernel. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_event_mmap_page;

/* A poll wakes with each part of this size in the ring: the rest is for the time until the reader
 * has a CPU. */
#define SIDEBAND_RING_WAKE 8

/**
 * struct sideband_ring - borrowed by its readers; all zero but @fd -1 while closed
 * @fd:         -1 while there is no event
 * @page:       first page of the mapping; behind it @bytes of records at @data
 * @enabled_ns: the event's enabled time at the last sideband_ring_alive()
 */
struct sideband_ring {
	int fd;
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	size_t bytes;
	uint64_t enabled_ns;
};

/* Opens the event of @cpu with a ring of @bytes, a power of two of at least a page. The descriptor
 * wakes a poll when an eighth of the ring is new. 0, -ENODEV or -ENXIO (the CPU is offline),
 * -errno. */
int sideband_ring_open(struct sideband_ring *ring, int cpu, size_t bytes);
void sideband_ring_close(struct sideband_ring *ring);
/* Whether the event has been enabled since the last call: false after its CPU went offline. */
bool sideband_ring_alive(struct sideband_ring *ring);

/**
 * typedef sideband_raw_fn - one record, its header included
 * @a, @b: the record's bytes: @n_a at @a, then @n_b at @b, where the ring begins again
 */
typedef void (*sideband_raw_fn)(void *ctx, const void *a, size_t n_a, const void *b, size_t n_b);

enum sideband_ring_outcome {
	SIDEBAND_RING_OK = 0,
	SIDEBAND_RING_FULL, /* the kernel had no room for some records, or may have had none */
	SIDEBAND_RING_ODD,  /* the ring was malformed, and its other records were dropped */
};

/* Empties the ring: calls @fn for each of its records. */
int sideband_ring_read(struct sideband_ring *ring, sideband_raw_fn fn, void *ctx);

#endif
