/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_PERF_EVENTS_H
#define PODPROF_PROFILE_PERF_EVENTS_H

/* One perf event on each online CPU, usually a clock. An overflow runs a BPF program. */

#include <stddef.h>
#include <stdint.h>

#include "base/strview.h"

struct event;
struct root;

/* CPUs. NR_CPUS of the largest x86-64 and arm64 configurations is 8192. Reached: the CPU list is
 * PERF_EVENTS_ODD_LIST, and CPU profiling does not start. */
#define PERF_EVENTS_CPUS_MAX 8192

enum perf_events_outcome {
	PERF_EVENTS_OK = 0,
	PERF_EVENTS_NO_LIST,  /* /sys/devices/system/cpu/online is unreadable: open events stay */
	PERF_EVENTS_ODD_LIST, /* the file is not a list of CPUs */
	PERF_EVENTS_OUTCOME_MAX,
};

/**
 * struct cpu_event - the event of one CPU
 * @fd:     descriptor; -1: no event
 * @online: the CPU was in the last list
 * @count:  a clock's count at the last check (the CPU's time in ns); it always grows while the
 *          event lives
 */
struct cpu_event {
	int fd;
	bool online;
	uint64_t count;
};

/**
 * struct perf_events - the events of all CPUs
 * @event:     the counted event; borrowed
 * @period:    events between two interrupts; ns for a clock
 * @program:   descriptor of the BPF program; borrowed
 * @sys:       /sys; borrowed
 * @items:     by CPU number
 * @opened:    events opened since the start; a returning CPU adds one
 * @failed:    failed attempts to open an event on an online CPU
 * @error:     -errno of the last failure
 * @attaching: the last failure was the attachment of the program
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
/* Close all events. No program runs for them after the return. */
void perf_events_deinit(struct perf_events *c);

/**
 * perf_events_follow() - open events on all online CPUs and close the others
 *
 * The first call opens the events. An event dies when its CPU goes offline, and stays dead when the
 * CPU returns. The function closes a dead event and opens a new one. A dead clock is recognised in
 * the second call after its death.
 *
 * Return: 0 (@failed counts failures of single CPUs), an outcome, -errno.
 */
int perf_events_follow(struct perf_events *c);
/* The highest possible CPU number of this machine, now or later, plus one; 0 if /sys lacks it. */
unsigned int perf_events_possible(const struct root *sys);
/* Whether each online CPU of the last look has an event. */
bool perf_events_whole(const struct perf_events *c);
/* Number of CPUs with an event. */
size_t perf_events_n_open(const struct perf_events *c);

/* Calls @fn for each online CPU. 0, PERF_EVENTS_NO_LIST, PERF_EVENTS_ODD_LIST (possibly after calls
 * of @fn). */
int perf_events_for_each_online(const struct root *sys, void (*fn)(void *ctx, unsigned int cpu),
				void *ctx);
/* Calls @fn for each number of a list such as "0-3,8". False for a malformed list or a number from
 * PERF_EVENTS_CPUS_MAX on, possibly after calls of @fn. */
bool perf_events_parse_list(struct strview list, void (*fn)(void *ctx, unsigned int cpu),
			    void *ctx);

const char *perf_events_outcome_name(int outcome);

#endif
