// SPDX-License-Identifier: Apache-2.0
/*
 * The software event cpu-clock is a high-resolution timer on its CPU. With a sample period, each
 * interrupt stands for exactly this much CPU time; with a frequency the kernel would adjust the
 * period. A hardware event (cycles) would reveal more about some programs, but virtual machines
 * often have none.
 *
 * The other events have a period instead of a frequency for the same reason: samples times period
 * is the count. The default periods give some hundred samples a second on a busy CPU. They are
 * primes, so they do not synchronise with a loop that causes a fixed number of events each round.
 * Rare events have a period of 1.
 */
#include "profile/event.h"

#include <linux/perf_event.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* It is never enabled. */
#define EVENT_PROBE_PERIOD 1000000000

#define SOFTWARE(c) .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_##c
#define HARDWARE(c) .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_##c, .hardware = true

const struct event events[] = {
	{"cpu-clock", NULL, SOFTWARE(CPU_CLOCK), .clock = true, .help = "time on a CPU"},
	{"page-faults", "faults", SOFTWARE(PAGE_FAULTS), .period = 1,
	 .help = "first accesses to memory, and reads from disk"},
	{"minor-faults", NULL, SOFTWARE(PAGE_FAULTS_MIN), .period = 1,
	 .help = "page faults without a disk read"},
	{"major-faults", NULL, SOFTWARE(PAGE_FAULTS_MAJ), .period = 1,
	 .help = "page faults with a disk read"},
	{"context-switches", "cs", SOFTWARE(CONTEXT_SWITCHES), .period = 7,
	 .help = "threads leaving their CPU"},
	{"cpu-migrations", "migrations", SOFTWARE(CPU_MIGRATIONS), .period = 1,
	 .help = "threads moved to another CPU"},
	{"cycles", "cpu-cycles", HARDWARE(CPU_CYCLES), .period = 10000019, .help = "CPU cycles"},
	{"instructions", NULL, HARDWARE(INSTRUCTIONS), .period = 10000019,
	 .help = "executed instructions"},
	{"cache-references", NULL, HARDWARE(CACHE_REFERENCES), .period = 100003,
	 .help = "accesses to the last-level cache"},
	{"cache-misses", NULL, HARDWARE(CACHE_MISSES), .period = 10007,
	 .help = "cache accesses that missed"},
	{"branches", "branch-instructions", HARDWARE(BRANCH_INSTRUCTIONS), .period = 1000003,
	 .help = "executed branches"},
	{"branch-misses", NULL, HARDWARE(BRANCH_MISSES), .period = 100003,
	 .help = "mispredicted branches"},
};

const size_t n_events = array_size(events);

const struct event *event_clock(void)
{
	return &events[0];
}

const struct event *event_find(const char *name)
{
	for (size_t i = 0; i < n_events; i++)
		if (strcmp(events[i].name, name) == 0 ||
		    (events[i].also && strcmp(events[i].also, name) == 0))
			return &events[i];
	return NULL;
}

static int open_for(const struct event *event, uint64_t period, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = event->type,
		.config = event->config,
		.size = sizeof(attr),
		.sample_period = period,
		.exclude_idle = event->clock, /* counters refuse it; the program leaves idle out */
		.disabled = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int event_open(const struct event *event, uint64_t period, int cpu)
{
	return open_for(event, period, -1, cpu);
}

int event_probe(const struct event *event)
{
	_cleanup_(close_fdp) int fd = open_for(event, EVENT_PROBE_PERIOD, 0, -1);

	return fd < 0 ? fd : 0;
}
