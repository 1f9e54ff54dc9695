/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_EVENT_H
#define PODPROF_PROFILE_EVENT_H

/* The triggers of samples: a clock, or a count of events of the kernel or the CPU. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct event - a trigger of samples
 * @name:          name for users, the same as in `perf`
 * @also:          an alias; or NULL
 * @type, @config: fields of perf_event_open(2)
 * @clock:         the event counts CPU time of all tasks in ns: its samples are CPU time
 * @hardware:      the CPU's own counters count the event; virtual machines often lack them
 * @period:        default number of events per sample; 0 for the clock
 * @help:          description for users
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

/* The default event. */
const struct event *event_clock(void);
/* NULL for an unknown name. */
const struct event *event_find(const char *name);

/* Open the event on a CPU, disabled. A descriptor or -errno. */
int event_open(const struct event *event, uint64_t period, int cpu);
/* Whether this machine has the event: 0, or -errno of an attempt to open it for podprof itself. */
int event_probe(const struct event *event);

#endif
