/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_PROFILE_CLOCKS_H
#define PODPROF_PROFILE_CLOCKS_H

/* One event on each CPU that is online, usually a clock, each running a BPF program when it fires.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/strview.h"

struct event;
struct root;

/* NR_CPUS of the largest x86-64 and arm64 configurations is 8192; a higher number in the list of
 * CPUs makes the list CLOCKS_ODD_LIST. Reached: the list is odd: CPU profiling does not start. */
#define CLOCKS_CPUS_MAX 8192

enum clocks_outcome {
	CLOCKS_OK = 0,
	CLOCKS_NO_LIST,	 /* /sys/devices/system/cpu/online cannot be read: what is open stays */
	CLOCKS_ODD_LIST, /* it is not a list of CPUs */
	CLOCKS_OUTCOME_MAX,
};

/**
 * struct clock - one CPU's
 * @fd:     the event, -1 while there is none
 * @online: whether the list had the CPU, last time
 * @count:  what a clock had counted at the last look (the CPU's time in ns): it always grows
 *          while the event lives
 */
struct clock {
	int fd;
	bool online;
	uint64_t count;
};

/**
 * struct clocks
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
struct clocks {
	const struct event *event;
	uint64_t period;
	int program;
	const struct root *sys;
	struct clock *items;
	size_t n;
	size_t cap;
	uint64_t opened;
	uint64_t failed;
	int error;
	bool attaching;
};

void clocks_init(struct clocks *c, const struct event *event, uint64_t period, int program,
		 const struct root *sys);
/* Close all: when it returns, no program runs for them any more. */
void clocks_deinit(struct clocks *c);

/**
 * clocks_follow() - make the open events those of the CPUs that are online now
 *
 * The first call opens them. A CPU that went offline takes its event with it, and the event does
 * not come back with the CPU: such a one is closed and opened anew.
 *
 * Return: 0 (look at @failed for single CPUs), an outcome, -errno.
 */
int clocks_follow(struct clocks *c);
/* One more than the highest number that a CPU can have on this machine, now or later; 0 if /sys
 * does not tell. */
unsigned int clocks_possible(const struct root *sys);
/* CPUs that have an event. */
size_t clocks_n_open(const struct clocks *c);

/* Calls @fn for each CPU that is online. 0, CLOCKS_NO_LIST, CLOCKS_ODD_LIST (@fn may have been
 * called then). */
int clocks_for_each_online(const struct root *sys, void (*fn)(void *ctx, unsigned int cpu),
			   void *ctx);
/* "0-3,8": calls @fn for each number. False if it is not such a list, or has a number that is
 * CLOCKS_CPUS_MAX or larger; @fn may have been called then. */
bool clocks_parse_list(struct strview list, void (*fn)(void *ctx, unsigned int cpu), void *ctx);

const char *clocks_outcome_name(int outcome);

#endif
