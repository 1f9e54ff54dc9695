/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_PACE_H
#define PODPROF_EXPORT_PACE_H

/*
 * The pace of requests to one destination. A window's profiles all arrive within some seconds of
 * its end. A node with many series spreads them over most of the next window: a backend with a
 * rate limit refuses less, and the node's CPU time for requests has no peak. A small node sends at
 * once. All times are monotonic.
 */

#include <stdint.h>

/* Profiles of a window that go at once: a full node of 110 pods with two containers each, and four
 * kinds of profiles. Above: spread. */
#define PACE_PROFILES 1024

/**
 * struct pace - {.window_ns = ...} at the start
 * @window_ns: 0: everything goes at once
 * @since_ns:  start of the running period, which has the length of a window
 * @n_last, @n_now: profiles that arrived in the last period and in the running one
 * @taken_ns, @n_taken: time and profiles of the last request
 */
struct pace {
	uint64_t window_ns;
	uint64_t since_ns;
	uint64_t n_last, n_now;
	uint64_t taken_ns, n_taken;
};

/**
 * struct pace_load - what waits
 * @n:          profiles for this destination, also those on disk
 * @used_bytes: of memory, for all destinations
 * @max_bytes:  the ceiling of @used_bytes
 */
struct pace_load {
	uint64_t n;
	uint64_t used_bytes;
	uint64_t max_bytes;
};

/* @n new profiles are there, in memory or on disk. */
void pace_arrived(struct pace *p, uint64_t n, uint64_t now_ns);
/* A request with @n profiles begins. */
void pace_taken(struct pace *p, uint64_t n, uint64_t now_ns);
/* Time to the next request; 0: now. The answer changes with the load: ask again after a second. */
uint64_t pace_wait_ns(const struct pace *p, const struct pace_load *load, uint64_t now_ns);

#endif
