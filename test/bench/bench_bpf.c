// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of a sample in the kernel, by the kernel's own clock around the program, and the memory
 * of the maps. User stacks by frame pointers and by unwind tables, and system calls. Only the
 * bench's own children are sampled; the cost of other processes' samples, without a stack walk, is
 * subtracted.
 *
 * First at a high rate with caches that the program keeps warm, then at the usual rate with
 * children that evict all caches between samples. A figure is the median of rounds of half a
 * second; the lowest round in brackets is near the cost without other work on the machine.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "base/root.h"
#include "profile/oncpu.h"
#include "profile/pid_filter.h"
#include "profile/verifier.h"
#include "shared/sample.h"
#include "support/burn.h"
#include "support/figure.h"
#include "support/kernelwalk.h"

#define ROUNDS	       12
#define CHILDREN_MAX   64
/* Intervals until each child has a sample, from which its record is made. */
#define INTRODUCED_MAX 60

struct load {
	const char *name;
	enum burn_kind kind;
	bool rows; /* with the children's unwind tables */
};

static const struct load hot_loads[] = {
	{"some frames", BURN_USER, false},	     {"32 frames", BURN_USUAL, false},
	{"32 frames, by tables", BURN_USUAL, true},  {"512 frames", BURN_DEEP, false},
	{"512 frames, by tables", BURN_DEEP, true},  {"system calls", BURN_KERNEL, false},
	{"a new stack each time", BURN_MANY, false},
};

static const struct load cold_loads[] = {
	{"some frames", BURN_COLD_FEW, false},
	{"32 frames", BURN_COLD, false},
	{"32 frames, by tables", BURN_COLD, true},
};

/* Loads under one sampler. */
struct series {
	const char *name;
	unsigned int rate_hz;
	const struct load *loads;
	size_t n_loads;
};

static const struct series all_series[] = {
	{"hot", 997, hot_loads, array_size(hot_loads)},
	{"cold", 97, cold_loads, array_size(cold_loads)},
};

struct tally {
	uint64_t samples;
	uint64_t frames;
	uint64_t row_frames;
};

/* Processes to publish to the walker: the children, identified by their samples. */
struct known {
	const pid_t *children;
	size_t n;
	const struct bpfobj_unwind *to;
	const struct hostwalk_space *space;
	bool seen[CHILDREN_MAX];
	size_t n_seen;
};

static void take(void *ctx, const struct sample *s)
{
	struct tally *t = ctx;

	t->samples += s->count;
	t->frames += s->count * (s->n_user + s->n_kernel);
	t->row_frames += s->count * s->n_rows;
}

static void introduce(void *ctx, const struct sample *s)
{
	struct known *k = ctx;

	for (size_t i = 0; i < k->n; i++)
		if (s->pid.pid == (uint64_t)k->children[i] && !k->seen[i]) {
			(void)kernelwalk_record(k->to, k->space, (uint32_t)s->pid.pid,
						s->start_boottime_ns, s->exec_id);
			k->seen[i] = true;
			k->n_seen++;
		}
}

/* Publish the tables of the children to the walker; all have the same mappings. */
static int give_tables(struct oncpu *oc, const pid_t *children, size_t n)
{
	const struct bpfobj_unwind to = oncpu_unwind(oc);
	struct hostwalk_space space;
	struct hostwalk *walk;
	struct known known = {.children = children, .n = n, .to = &to, .space = &space};
	int r = hostwalk_new(children[0], &walk);

	if (r < 0)
		return r;
	space = hostwalk_space(walk);
	r = kernelwalk_publish(&to, &space);
	for (int i = 0; r >= 0 && known.n_seen < n && i < INTRODUCED_MAX; i++) {
		usleep((useconds_t)(oncpu_interval_ns(oc) / 1000));
		r = oncpu_tick(oc, introduce, &known);
	}
	hostwalk_free(walk);
	return r < 0 || known.n_seen == n ? r : -ENODATA;
}

/* One child for each CPU. */
static size_t start_children(enum burn_kind kind, pid_t children[CHILDREN_MAX])
{
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = 0;

	for (; n < CHILDREN_MAX && (long)n < n_cpus; n++) {
		children[n] = burn_start(kind);
		if (children[n] < 0)
			break;
	}
	for (size_t i = 0; i < n; i++)
		burn_go(children[i]);
	return n;
}

/* The program's counters so far. */
struct so_far {
	struct bpfobj_cost cost;
	uint64_t stats[SAMPLE_STAT_MAX];
};

static int look(const struct oncpu *oc, struct so_far *ret)
{
	int r = oncpu_stats(oc, ret->stats, SAMPLE_STAT_MAX);

	return r < 0 ? r : bpfobj_cost(oncpu_program(oc), &ret->cost);
}

/* ns of a sample. */
struct cost {
	uint64_t samples;
	uint64_t median;
	uint64_t least;
};

static int compare_ns(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Let the program run for some rounds. @others_ns: the cost of a sample of an unselected process,
 * to subtract; 0 counts these samples themselves. */
static int let_run(struct oncpu *oc, uint64_t others_ns, struct tally *tally, struct cost *ret)
{
	uint64_t ns[ROUNDS];
	struct so_far before, after;
	size_t n = 0;
	int r = look(oc, &before);

	*ret = (struct cost){0};
	for (int i = 0; r == 0 && i < ROUNDS; i++) {
		uint64_t others, mine, spent;

		usleep(500000);
		r = oncpu_tick(oc, take, tally);
		if (r == 0)
			r = look(oc, &after);
		if (r < 0)
			return r;
		others = others_ns ? after.stats[SAMPLE_STAT_FILTERED] -
					     before.stats[SAMPLE_STAT_FILTERED]
				   : 0;
		mine = after.cost.runs - before.cost.runs - others;
		spent = after.cost.run_ns - before.cost.run_ns;
		spent -= others * others_ns < spent ? others * others_ns : spent;
		if (mine)
			ns[n++] = spent / mine;
		ret->samples += mine;
		before = after;
	}
	if (r < 0 || !n)
		return r < 0 ? r : -ENODATA;
	qsort(ns, n, sizeof(ns[0]), compare_ns);
	ret->median = ns[n / 2];
	ret->least = ns[0];
	return 0;
}

static int measure(const struct load *load, struct oncpu *oc, uint64_t others_ns)
{
	struct tally tally = {0};
	struct cost cost = {0};
	pid_t children[CHILDREN_MAX];
	size_t n = start_children(load->kind, children);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = pid_filter_add(oncpu_pid_filter(oc), children[i]);
	if (r == 0 && load->rows)
		r = give_tables(oc, children, n);
	if (r == 0)
		r = let_run(oc, others_ns, &tally, &cost);
	for (size_t i = 0; i < n; i++)
		burn_end(children[i]);
	if (r < 0)
		return r;
	tally.samples += !tally.samples;
	printf("  %-24s %6" PRIu64 " samples, %3" PRIu64 " frames each, %3" PRIu64
	       " of them by tables, %5" PRIu64 " ns each (%" PRIu64 ")\n",
	       load->name, cost.samples, tally.frames / tally.samples,
	       tally.row_frames / tally.samples, cost.median, cost.least);
	figure((double)cost.median, "ns", "a sample of %s", load->name);
	return 0;
}

static int measure_all(const struct series *series, struct oncpu *oc)
{
	struct tally tally = {0};
	struct cost others;
	int r = let_run(oc, 0, &tally, &others);

	if (r == 0)
		printf("  %-24s %6" PRIu64 " samples, %5" PRIu64 " ns each (%" PRIu64 ")\n",
		       "of others", others.samples, others.median, others.least);
	for (size_t i = 0; r == 0 && i < series->n_loads; i++)
		r = measure(&series->loads[i], oc, others.median);
	return r;
}

static void tell_verified(const struct verifier *v)
{
	for (size_t i = 0; i < v->n; i++)
		printf("  %s: %u instructions verified\n", v->programs[i].name,
		       v->programs[i].insns);
}

static int run(const struct series *series, const struct root *proc, const struct root *sys)
{
	const struct oncpu_opts opts = {.rate_hz = series->rate_hz,
					.scope = SETTINGS_SCOPE_PROCESSES,
					.kernel_stacks = true,
					.proc = proc,
					.sys = sys};
	struct bpfobj_why why = {""};
	struct oncpu *oc = NULL;
	uint64_t start_ns = nsec_monotonic();
	int r = oncpu_new(&opts, &why, &oc);

	if (r < 0) {
		fprintf(stderr, "bench_bpf: %s\n", why.text);
		return r;
	}
	printf("bpf, %s: loaded and attached in %.0f ms, maps %" PRIu64 " KiB (at %u Hz)\n",
	       series->name, (double)(nsec_monotonic() - start_ns) / 1e6,
	       oncpu_map_bytes(oc) / 1024, series->rate_hz);
	tell_verified(bpfobj_verifier(oncpu_object(oc)));
	for (uint32_t i = FRAME_RUNTIME_NONE + 1; i < FRAME_RUNTIME_MAX; i++) {
		struct bpfobj_runtime loaded;

		if (bpfobj_load_runtime(oncpu_object(oc), i, &loaded))
			continue;
		tell_verified(&loaded.verifier);
		bpfobj_runtime_deinit(&loaded);
	}
	r = measure_all(series, oc);
	oncpu_free(oc);
	return r;
}

/* With an argument, only the series of this name. */
int main(int argc, char **argv)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT, sys = ROOT_INIT;
	/* The kernel counts while this descriptor is open. */
	_cleanup_(close_fdp) int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	int r = 0;

	if (stats < 0)
		fprintf(stderr, "bench_bpf: no statistics: %s\n", strerror(errno));
	if (root_open("/proc", &proc) || root_open("/sys", &sys))
		return 1;
	for (size_t i = 0; r == 0 && i < array_size(all_series); i++)
		if (argc < 2 || strcmp(argv[1], all_series[i].name) == 0)
			r = run(&all_series[i], &proc, &sys);
	if (r < 0)
		fprintf(stderr, "bench_bpf: %s\n", strerror(-r));
	return r < 0;
}
