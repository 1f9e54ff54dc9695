// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of off-CPU sampling for a program that only waits: two processes on one CPU pass a byte
 * back and forth, two task switches a round trip. Measures their CPU time for a switch without the
 * programs, with an empty program at the same tracepoint, which is the floor, with a share so small
 * that no switch is chosen, and with a share of 1 limited by the budget. The cases alternate, so
 * other load affects all of them. Finally as many pairs as CPUs, as the worst case.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "profile/offcpu.h"
#include "profile/oncpu.h"
#include "profile/stacks.h"
#include "shared/sample.h"
#include "support/figure.h"

#define ROUNDS	      41
#define ROUND_NS      (NSEC_PER_SEC / 8)
#define CPUS	      64
#define LONG_ROUND_NS (4 * NSEC_PER_SEC)

enum { WITHOUT, EMPTY, FEW, ALL, COMPARED, TWENTIETH = COMPARED, STORM, KINDS };

/* Each with its own object, because the object holds the CPUs' random state. */
static struct kind {
	const char *name;
	double share; /* 0: not attached */
	bool empty;   /* an empty program is */
	struct oncpu *oc;
} kinds[KINDS] = {
	[WITHOUT] = {.name = "without"},
	[EMPTY] = {.name = "empty", .empty = true},
	[FEW] = {.name = "few chosen", .share = 1e-4},
	[ALL] = {.name = "all wished", .share = 1},
	[TWENTIETH] = {.name = "a twentieth", .share = 0.05},
	[STORM] = {.name = "storm", .share = 1},
};

/* Samples of one process. */
struct told {
	pid_t pid;
	uint64_t switches;
};

/* Results of one round. */
struct seen {
	uint64_t switches;
	uint64_t cpu_ns; /* of both processes */
	uint64_t wall_ns;
	uint64_t stacks; /* taken */
	struct bpfobj_cost bpf;
	struct told told; /* of the child */
};

/* ---------------------------------------------------------------- the pair */

struct pair {
	int to[2], from[2];
	pid_t child;
};

static void pin(size_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(1);
}

static void start(struct pair *p)
{
	char c;

	if (pipe(p->to) || pipe(p->from))
		exit(1);
	p->child = fork();
	if (p->child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(p->to[0], &c, 1) == 1 && write(p->from[1], &c, 1) == 1)
		continue;
	_exit(0);
}

static void play(const struct pair *p, unsigned int n)
{
	char c = 'x';

	for (unsigned int i = 0; i < n; i++)
		if (write(p->to[1], &c, 1) != 1 || read(p->from[0], &c, 1) != 1)
			exit(1);
}

static uint64_t pair_cpu_ns(const struct pair *p)
{
	clockid_t clock;

	if (clock_getcpuclockid(p->child, &clock))
		exit(1);
	return nsec_read(clock) + nsec_read(CLOCK_PROCESS_CPUTIME_ID);
}

/* ---------------------------------------------------------------- a round */

/* Attaches a program that returns at once: 0, or an error. */
static int attach_empty(int *ret_link)
{
	static const char license[] = "Dual BSD/GPL";
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	_cleanup_(close_fdp) int fd =
		bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "empty", license, program, 2, NULL);

	if (fd < 0)
		return -errno;
	*ret_link = bpf_raw_tracepoint_open("sched_switch", fd);
	return *ret_link < 0 ? -errno : 0;
}

static void take(void *ctx, const struct sample *s)
{
	struct told *told = ctx;

	if ((pid_t)s->pid.pid != told->pid)
		return;
	told->switches += s->count;
}

static uint64_t count_stacks(const struct offcpu *off)
{
	uint64_t stats[SAMPLE_STAT_MAX], n = 0;

	if (!off || stacks_stats(offcpu_stacks(off), stats, SAMPLE_STAT_MAX))
		return 0;
	for (unsigned int i = 0; i < SAMPLE_STAT_MAX; i++)
		n += stats[i];
	return n;
}

/* Play for this long while samples are drained like in the agent; the drain's CPU time is excluded.
 */
static int play_for(const struct pair *p, struct offcpu *off, uint64_t ns, struct seen *seen)
{
	const uint64_t begin_ns = nsec_monotonic();
	uint64_t tick_ns = begin_ns + (off ? offcpu_interval_ns(off) : ns);
	int r = 0;

	while (!r && nsec_monotonic() - begin_ns < ns) {
		uint64_t before_ns = pair_cpu_ns(p);

		play(p, 500);
		seen->cpu_ns += pair_cpu_ns(p) - before_ns;
		seen->switches += 1000;
		if (!off || nsec_monotonic() < tick_ns)
			continue;
		r = offcpu_tick(off, take, &seen->told);
		tick_ns = nsec_monotonic() + offcpu_interval_ns(off);
	}
	seen->wall_ns = nsec_monotonic() - begin_ns;
	return r;
}

static int run_round(const struct kind *kind, const struct pair *p, uint64_t ns, struct seen *ret)
{
	struct bpfobj_cost before = {0}, after = {0};
	struct bpfobj_why why = {""};
	_cleanup_(close_fdp) int empty = -1;
	struct offcpu *off = NULL;
	uint64_t stacks;
	int r = 0;

	*ret = (struct seen){.told.pid = p->child};
	if (kind->empty)
		r = attach_empty(&empty);
	if (kind->share > 0)
		r = offcpu_new(oncpu_object(kind->oc), kind->share, OFFCPU_STACKS_MAX, &why, &off);
	if (r < 0) {
		fprintf(stderr, "bench_offcpu: %s\n", why.text);
		return r;
	}
	if (off)
		r = bpfobj_cost(offcpu_program(off), &before);
	stacks = count_stacks(off);
	if (!r)
		r = play_for(p, off, ns, ret);
	if (!r && off)
		r = bpfobj_cost(offcpu_program(off), &after);
	ret->stacks = count_stacks(off) - stacks;
	ret->bpf.runs = after.runs - before.runs;
	ret->bpf.run_ns = after.run_ns - before.run_ns;
	if (off && !r)
		r = offcpu_finish(off, take, &ret->told);
	offcpu_free(off);
	return r;
}

/* ---------------------------------------------------------------- all cases */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Each round's difference to the round without the programs; of these the median. */
static int compare_kinds(const struct pair *p)
{
	double ns[COMPARED][ROUNDS], more[COMPARED][ROUNDS];
	struct seen seen;
	int r = 0;

	for (int i = 0; i < ROUNDS; i++)
		for (size_t k = 0; !r && k < COMPARED; k++) {
			r = run_round(&kinds[k], p, ROUND_NS, &seen);
			ns[k][i] = (double)seen.cpu_ns / (double)(seen.switches + !seen.switches);
			more[k][i] = ns[k][i] - ns[0][i];
		}
	for (size_t k = 0; !r && k < COMPARED; k++) {
		qsort(ns[k], ROUNDS, sizeof(ns[k][0]), compare);
		qsort(more[k], ROUNDS, sizeof(more[k][0]), compare);
		printf("offcpu: %-12s %5.0f ns of CPU a switch", kinds[k].name, ns[k][ROUNDS / 2]);
		if (k)
			figure(more[k][ROUNDS / 2], "ns", "more a switch, %s", kinds[k].name);
		if (k)
			printf(", %.0f more (half of all rounds: %.0f to %.0f)",
			       more[k][ROUNDS / 2], more[k][ROUNDS / 4], more[k][ROUNDS * 3 / 4]);
		putchar('\n');
	}
	return r;
}

/* The same by the kernel's clock around the program, which costs 20 ns and more itself. */
static int show_cost(const struct pair *p)
{
	_cleanup_(close_fdp) int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	int r = stats < 0 ? -errno : 0;

	for (size_t k = FEW; !r && k < COMPARED; k++) {
		struct seen seen;
		double seconds;

		r = run_round(&kinds[k], p, LONG_ROUND_NS, &seen);
		seconds = (double)seen.wall_ns / NSEC_PER_SEC;
		printf("offcpu: %-12s %.0f switches/s, %.0f stacks/s; %.0f ns a run, %.2f %% of a "
		       "CPU\n",
		       kinds[k].name, (double)seen.switches / seconds,
		       (double)seen.stacks / seconds,
		       (double)seen.bpf.run_ns / (double)(seen.bpf.runs + !seen.bpf.runs),
		       100 * (double)seen.bpf.run_ns / (double)seen.wall_ns);
	}
	return r;
}

/* Voluntary switches of a process. */
static uint64_t count_waits(pid_t pid)
{
	unsigned long long n = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* The estimate of the child's waits from a twentieth of the switches, or less by the budget.
 * (test_offcpu compares durations: here a few waits have all the time.) */
static int show_sums(const struct pair *p)
{
	const uint64_t waits = count_waits(p->child);
	struct seen seen;
	int r = run_round(&kinds[TWENTIETH], p, LONG_ROUND_NS, &seen);

	printf("offcpu: %-12s %" PRIu64 " stacks say %.1f %% of its waits\n", kinds[TWENTIETH].name,
	       seen.stacks,
	       100 * (double)seen.told.switches / (double)(count_waits(p->child) - waits));
	return r;
}

/* Task switches of the whole machine. */
static uint64_t count_switches(void)
{
	unsigned long long n = 0;
	FILE *f = fopen("/proc/stat", "re");
	char line[4096];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "ctxt %llu", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* A pair for each CPU, playing until killed. */
static void start_storm(pid_t players[CPUS], size_t n)
{
	struct pair pair;

	for (size_t i = 0; i < n; i++) {
		players[i] = fork();
		if (players[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(i);
		start(&pair);
		for (;;)
			play(&pair, 1000);
	}
}

/* All CPUs do nothing but switch, with a share of 1, in a new object. */
static int show_storm(void)
{
	const long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const size_t n = n_cpus < CPUS ? (size_t)n_cpus : CPUS;
	struct bpfobj_cost before = {0}, after = {0};
	struct told told = {0};
	struct bpfobj_why why = {""};
	uint64_t switches, begin_ns;
	struct offcpu *off = NULL;
	pid_t players[CPUS];
	int r = offcpu_new(oncpu_object(kinds[STORM].oc), kinds[STORM].share, OFFCPU_STACKS_MAX,
			   &why, &off);
	_cleanup_(close_fdp) int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (r < 0 || stats < 0)
		return -1;
	start_storm(players, n);
	r = bpfobj_cost(offcpu_program(off), &before);
	begin_ns = nsec_monotonic();
	switches = count_switches();
	while (!r && nsec_monotonic() - begin_ns < LONG_ROUND_NS) {
		usleep((useconds_t)(offcpu_interval_ns(off) / 1000));
		r = offcpu_tick(off, take, &told);
	}
	switches = count_switches() - switches;
	begin_ns = nsec_monotonic() - begin_ns;
	if (!r)
		r = bpfobj_cost(offcpu_program(off), &after);
	printf("offcpu: on %zu CPUs: %.0f switches/s, %.0f stacks/s, %.2f %% of the CPUs\n", n,
	       (double)switches * 1e9 / (double)begin_ns,
	       (double)count_stacks(off) * 1e9 / (double)begin_ns,
	       100 * (double)(after.run_ns - before.run_ns) / (double)begin_ns / (double)n);
	for (size_t i = 0; i < n; i++)
		kill(players[i], SIGKILL);
	offcpu_free(off);
	return r;
}

int main(void)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT, sys = ROOT_INIT;
	struct oncpu_opts opts = {
		.rate_hz = 1, .kernel_stacks = true, .offcpu = true, .proc = &proc, .sys = &sys};
	struct bpfobj_why why = {""};
	struct pair pair;
	int r = 0;

	if (root_open("/proc", &proc) || root_open("/sys", &sys))
		return 1;
	for (size_t k = 0; !r && k < KINDS; k++)
		r = kinds[k].share > 0 ? oncpu_new(&opts, &why, &kinds[k].oc) : 0;
	if (r < 0) {
		fprintf(stderr, "bench_offcpu: %s\n", why.text);
		return 1;
	}
	pin(0);
	start(&pair);
	r = compare_kinds(&pair);
	if (!r)
		r = show_cost(&pair);
	if (!r)
		r = show_sums(&pair);
	kill(pair.child, SIGKILL);
	if (!r)
		r = show_storm();
	for (size_t k = 0; k < KINDS; k++)
		oncpu_free(kinds[k].oc);
	return r < 0;
}
