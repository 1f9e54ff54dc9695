// SPDX-License-Identifier: Apache-2.0
/*
 * Units of work in a span, for overhead.py:
 *
 *   units cpu WARM_UP SECONDS       a thread on each CPU computes at the end of a deep stack
 *   units gaps WARM_UP SECONDS      a thread on each CPU, there, reads the clock without end
 *   units pingpong WARM_UP SECONDS  two processes on one CPU send a byte to and fro
 *
 * Prints one line: units, ns by the clock, ns of CPU time, instructions, cycles (0: the machine has
 * no counters). The figures are those of the span after WARM_UP seconds. A unit of `gaps` is a
 * nanosecond that no interrupt took. It has the first two figures only, and its clock stands still
 * while another thread or another machine has the CPU.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CPUS_MAX    1024
#define STACK_DEPTH 30
#define TABLE_WORDS (1 << 15) /* 256 KiB: a second level cache, which samples may disturb */
#define LARGE_WORDS (1 << 19) /* 4 MiB: drives the agent out of a second level cache */
#define GAP_NS	    1000u /* between two readings: several times a reading with its cache misses */
#define LONG_GAP_NS 100000u /* another thread had the CPU, or another machine */
#define NS_PER_S    1000000000u
#define STACK_BYTES (256 << 10)

struct counts {
	uint64_t units;
	uint64_t clock_ns;
	uint64_t cpu_ns;
	uint64_t perf[2]; /* instructions, cycles */
};

/* What a thread does with a table of its own. */
struct job {
	size_t words;
	struct counts (*run)(uint64_t *table);
};

struct worker {
	pthread_t thread;
	const struct job *job;
	int cpu;
	struct counts counts;
};

static uint64_t warm_up_ns, span_ns;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

/* -1: the machine has none. The kernel's part counts, since interrupts are in it. */
static int counter(uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = config,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static uint64_t counted(int fd)
{
	uint64_t value;

	return fd >= 0 && read(fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

static void look(struct counts *c, const int fds[2])
{
	c->clock_ns = now_ns(CLOCK_MONOTONIC);
	c->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < 2; i++)
		c->perf[i] = counted(fds[i]);
}

/* Calls the unit, which returns the number of units that it did, until the span is over. */
static struct counts measure(uint64_t (*unit)(void *), void *ctx)
{
	const int fds[2] = {counter(PERF_COUNT_HW_INSTRUCTIONS), counter(PERF_COUNT_HW_CPU_CYCLES)};
	const uint64_t begin = now_ns(CLOCK_MONOTONIC) + warm_up_ns;
	struct counts before, after;
	uint64_t n = 0;

	while (now_ns(CLOCK_MONOTONIC) < begin)
		unit(ctx);
	look(&before, fds);
	do {
		n += unit(ctx);
	} while (now_ns(CLOCK_MONOTONIC) < before.clock_ns + span_ns);
	look(&after, fds);
	return (struct counts){
		.units = n,
		.clock_ns = after.clock_ns - before.clock_ns,
		.cpu_ns = after.cpu_ns - before.cpu_ns,
		.perf = {after.perf[0] - before.perf[0], after.perf[1] - before.perf[1]},
	};
}

/* ---------------------------------------------------------------- cpu */

__attribute__((noinline)) static uint64_t leaf(volatile uint64_t *table)
{
	uint64_t x = table[0];

	for (int i = 0; i < 20000; i++) {
		x = x * 6364136223846793005u + 1;
		table[x >> 49] += x;
	}
	return x;
}

/* NOLINTNEXTLINE(misc-no-recursion): it is to be deep */
__attribute__((noinline)) static uint64_t down(unsigned int depth, volatile uint64_t *table)
{
	return (depth ? down(depth - 1, table) : leaf(table)) + depth;
}

static uint64_t compute(void *table)
{
	((volatile uint64_t *)table)[0] = down(STACK_DEPTH, table);
	return 1;
}

static struct counts measure_computing(uint64_t *table)
{
	return measure(compute, table);
}

/* ---------------------------------------------------------------- gaps */

__attribute__((noinline)) static struct counts read_clock(volatile uint64_t *table)
{
	const uint64_t begin = now_ns(CLOCK_MONOTONIC) + warm_up_ns;
	struct counts c = {.units = 0};
	uint64_t last = now_ns(CLOCK_MONOTONIC);
	uint64_t x = 1;

	while (c.clock_ns < span_ns) {
		const uint64_t now = now_ns(CLOCK_MONOTONIC);
		const uint64_t ns = now - last;

		last = now;
		x = x * 6364136223846793005u + 1;
		table[x >> 45] += x;
		if (now < begin || ns > LONG_GAP_NS)
			continue;
		c.clock_ns += ns;
		if (ns <= GAP_NS)
			c.units += ns;
	}
	return c;
}

/* NOLINTNEXTLINE(misc-no-recursion): it is to be deep */
__attribute__((noinline)) static struct counts descend(unsigned int depth, volatile uint64_t *table)
{
	return depth ? descend(depth - 1, table) : read_clock(table);
}

static struct counts find_gaps(uint64_t *table)
{
	return descend(STACK_DEPTH, table);
}

/* ---------------------------------------------------------------- a thread on each CPU */

static void *work(void *ctx)
{
	struct worker *w = ctx;
	uint64_t *table = calloc(w->job->words, sizeof(*table));

	if (!table)
		die("calloc");
	pin(w->cpu);
	w->counts = w->job->run(table);
	free(table);
	return NULL;
}

/* The sums of all threads' counts. */
static struct counts on_each_cpu(const struct job *job)
{
	static struct worker workers[CPUS_MAX];
	struct counts all = {.units = 0};
	cpu_set_t set;
	int n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		die("sched_getaffinity");
	for (int i = 0; i < CPUS_MAX && i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &set))
			continue;
		workers[n].job = job;
		workers[n].cpu = i;
		if (pthread_create(&workers[n].thread, NULL, work, &workers[n]))
			die("pthread_create");
		n++;
	}
	for (int i = 0; i < n; i++) {
		const struct counts *c = &workers[i].counts;

		pthread_join(workers[i].thread, NULL);
		all.units += c->units;
		all.clock_ns += c->clock_ns;
		all.cpu_ns += c->cpu_ns;
		all.perf[0] += c->perf[0];
		all.perf[1] += c->perf[1];
	}
	return all;
}

/* ---------------------------------------------------------------- pingpong */

struct pipes {
	int there[2];
	int back[2];
};

static uint64_t ping(void *ctx)
{
	const struct pipes *p = ctx;
	char byte = 0;

	if (write(p->there[1], &byte, 1) != 1 || read(p->back[0], &byte, 1) != 1)
		die("ping");
	return 1;
}

static void answer(const struct pipes *p)
{
	char byte;

	while (read(p->there[0], &byte, 1) == 1)
		if (write(p->back[1], &byte, 1) != 1)
			die("pong");
	exit(0);
}

static struct counts pingpong(void)
{
	struct pipes p;
	struct counts c;
	pid_t child;

	if (pipe(p.there) || pipe(p.back))
		die("pipe");
	pin(0);
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		close(p.there[1]);
		close(p.back[0]);
		answer(&p);
	}
	c = measure(ping, &p);
	close(p.there[1]);
	waitpid(child, NULL, 0);
	return c;
}

static struct counts run(const char *name)
{
	if (strcmp(name, "cpu") == 0)
		return on_each_cpu(&(struct job){TABLE_WORDS, measure_computing});
	if (strcmp(name, "gaps") == 0)
		return on_each_cpu(&(struct job){LARGE_WORDS, find_gaps});
	return pingpong();
}

int main(int argc, char **argv)
{
	struct counts c;

	if (argc != 4) {
		fprintf(stderr, "usage: units cpu|gaps|pingpong WARM_UP SECONDS\n");
		return 2;
	}
	warm_up_ns = (uint64_t)(strtod(argv[2], NULL) * NS_PER_S);
	span_ns = (uint64_t)(strtod(argv[3], NULL) * NS_PER_S);
	c = run(argv[1]);
	printf("%lu %lu %lu %lu %lu\n", c.units, c.clock_ns, c.cpu_ns, c.perf[0], c.perf[1]);
	return 0;
}
