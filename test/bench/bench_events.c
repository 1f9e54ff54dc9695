// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of following all processes: the agent's work for the kernel's events of a fork, exec and
 * exit, and the slowdown of the system calls by the events. Alternates with and without events, so
 * other load affects both.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/nsec.h"
#include "base/root.h"
#include "procmap/process_history.h"
#include "profile/sideband.h"
#include "support/figure.h"

#define ROUNDS	  10
#define PROCESSES 200

extern char **environ;

struct counts {
	struct process_history *history;
	uint64_t n;
	uint64_t by_kind[SIDEBAND_KIND_MAX];
};

static void tell(void *ctx, const struct sideband_record *r)
{
	static const enum process_event_kind whats[] = {PROCESS_EVENT_BIRTH, PROCESS_EVENT_EXIT,
							PROCESS_EVENT_EXEC, PROCESS_EVENT_MAP};
	struct counts *c = ctx;
	struct process_event event = {
		.pid = r->pid,
		.tid = r->tid,
		.ppid = r->ppid,
		.time_ns = r->time_ns,
		.map = {.start = r->start,
			.limit = r->start + r->length,
			.offset = r->off,
			.device = r->device,
			.inode = r->inode},
		.name = r->name,
	};

	c->n++;
	c->by_kind[r->kind]++;
	if (r->kind == SIDEBAND_LOST)
		return;
	event.what = whats[r->kind];
	process_history_add(c->history, &event);
}

/* CPU time of PROCESSES short programs, ns. */
static uint64_t children_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static uint64_t run(void)
{
	static char *argv[] = {"true", NULL};
	uint64_t before = children_ns();

	for (int i = 0; i < PROCESSES; i++) {
		pid_t pid;

		if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) != 0)
			exit(1);
		waitpid(pid, NULL, 0);
	}
	return children_ns() - before;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double median_us(uint64_t *values)
{
	const int middle = ROUNDS / 2;

	qsort(values, ROUNDS, sizeof(*values), compare_ns);
	return (double)(values[middle - 1] + values[middle]) / 2 / PROCESSES / 1000;
}

int main(void)
{
	uint64_t without[ROUNDS], with[ROUNDS], draining[ROUNDS];
	struct counts c = {.n = 0};
	struct sideband_opts opts = {.ring_bytes = 1u << 20};
	struct root sys;
	double before, after;

	if (root_open("/sys", &sys) || process_history_new(&c.history))
		return 1;
	opts.sys = &sys;
	for (int i = 0; i < ROUNDS; i++) {
		struct sideband *sb;
		uint64_t begin;

		without[i] = run();
		if (sideband_new(&opts, &sb)) {
			fprintf(stderr, "bench_events: no events: CAP_PERFMON is needed\n");
			return 1;
		}
		with[i] = run();
		begin = nsec_read(CLOCK_THREAD_CPUTIME_ID);
		sideband_drain(sb, UINT64_MAX, SIZE_MAX, tell, &c);
		process_history_sweep(c.history, nsec_boot());
		draining[i] = nsec_read(CLOCK_THREAD_CPUTIME_ID) - begin;
		sideband_free(sb);
	}
	before = median_us(without);
	after = median_us(with);
	printf("events: %.1f of a fork, exec and exit; taking them in %.2f us, %.0f bytes kept for "
	       "each\n",
	       (double)c.n / ROUNDS / PROCESSES, median_us(draining),
	       (double)process_history_stats(c.history).bytes / ROUNDS / PROCESSES);
	printf("events: the program's own CPU %.0f us without, %.0f us with\n", before, after);
	figure(median_us(draining), "us", "of a fork, exec and exit");
	figure_beside(after, before, "without", "us", "the program's own CPU");
	process_history_free(c.history);
	root_deinit(&sys);
	return 0;
}
