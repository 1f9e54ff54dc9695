/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_PERF_EVENTS_H
#define PODPROF_PROFILE_PERF_EVENTS_H

/* One event on each CPU that is online, usually a clock, each running a BPF program when it fires.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/strview.h"

struct event;
struct root;

/* NR_CPUS of the largest x86-64 and arm64 configurations is 8192; a higher number in the list of
 * CPUs makes the list PERF_EVENTS_ODD_LIST. Reached: the list is odd: CPU profiling does not start.
 */
#define PERF_EVENTS_CPUS_MAX 8192

enum perf_events_outcome {
	PERF_EVENTS_OK = 0,
	PERF_EVENTS_NO_LIST, /* /sys/devices/system/cpu/online cannot be read: what is open stays */
	PERF_EVENTS_ODD_LIST, /* it is not a list of CPUs */
	PERF_EVENTS_OUTCOME_MAX,
};

/**
 * struct cpu_event - one CPU's
 * @fd:     the event, -1 while there is none
 * @online: whether the list had the CPU, last time
 * @count:  what a clock had counted at the last look (the CPU's time in ns): it always grows
 *          while the event lives
 */
struct cpu_event {
	int fd;
	bool online;
	uint64_t count;
};

/**
 * struct perf_events
 * @event:     what it counts; borrowed
 * @period:    of these from one interrupt to the next; ns for a clock
 * @program:   descriptor of the BPF program; borrowed
 * @sys:       /sys; borrowed
 * @items:     by CPU number
 * @opened:    events opened so far: a CPU that comes back adds one
 * @failed:    events that could not be opened on a CPU that is online
 * @error:     -errno of the last of them
 * @attaching: whether it was the program that could not be attached
 */
struct perf_events {
	const struct event *event;
	uint64_t period;
	int program;
	const struct root *sys;
	struct cpu_event *items;
	size_t n;
	size_t cap;
	uint64_t opened;
	uint64_t failed;
	int error;
	bool attaching;
};

void perf_events_init(struct perf_events *c, const struct event *event, uint64_t period,
		      int program, const struct root *sys);
/* Close all: when it returns, no program runs for them any more. */
void perf_events_deinit(struct perf_events *c);

/**
 * perf_events_follow() - make the open events those of the CPUs that are online now
 *
 * The first call opens them. A CPU that went offline takes its event with it, and the event does
 * not come back with the CPU: such a one is closed and opened anew.
 *
 * Return: 0 (look at @failed for single CPUs), an outcome, -errno.
 */
int perf_events_follow(struct perf_events *c);
/* One more than the highest number that a CPU can have on this machine, now or later; 0 if /sys
 * does not tell. */
unsigned int perf_events_possible(const struct root *sys);
/* CPUs that have an event. */
size_t perf_events_n_open(const struct perf_events *c);

/* Calls @fn for each CPU that is online. 0, PERF_EVENTS_NO_LIST, PERF_EVENTS_ODD_LIST (@fn may have
 * been called then). */
int perf_events_for_each_online(const struct root *sys, void (*fn)(void *ctx, unsigned int cpu),
				void *ctx);
/* "0-3,8": calls @fn for each number. False if it is not such a list, or has a number that is
 * PERF_EVENTS_CPUS_MAX or larger; @fn may have been called then. */
bool perf_events_parse_list(struct strview list, void (*fn)(void *ctx, unsigned int cpu),
			    void *ctx);

const char *perf_events_outcome_name(int outcome);

#endif
