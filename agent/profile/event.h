/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_EVENT_H
#define PODPROF_PROFILE_EVENT_H

/* What samples can be taken by: a clock, or so many of something that the kernel or the CPU
 * counts. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct event
 * @name:     as users write it, and as `perf` does
 * @also:     another name of the same; or NULL
 * @type, @config: as perf_event_open(2) has them
 * @clock:    counts the CPU's time in ns, whoever runs: samples of it are CPU time
 * @hardware: counted by the CPU's own counters, which virtual machines often lack
 * @period:   events that one sample stands for, if nobody says otherwise; 0 for the clock
 * @help:     what is counted, for people
 */
struct event {
	const char *name;
	const char *also;
	uint32_t type;
	uint64_t config;
	bool clock;
	bool hardware;
	uint64_t period;
	const char *help;
};

extern const struct event events[];
extern const size_t n_events;

/* The usual one. */
const struct event *event_clock(void);
/* NULL if there is none of that name. */
const struct event *event_find(const char *name);

/* Open the event on a CPU, not running yet. A descriptor or -errno. */
int event_open(const struct event *event, uint64_t period, int cpu);
/* Whether this machine has it: 0, or -errno of opening it, for ourselves. */
int event_probe(const struct event *event);

#endif
