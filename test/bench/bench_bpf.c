// SPDX-License-Identifier: Apache-2.0
/* The cost of a sample in the kernel, by the kernel's own clock around the program, and the memory
 * of the maps. User stacks by frame pointers and by unwind tables, and system calls. Only the
 * bench's own children are sampled; the cost of other processes' samples, without a stack walk, is
 * subtracted. */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
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
#include "support/kernelwalk.h"

/* High, for many samples a second; the cost of a sample hardly depends on the rate. */
#define RATE	     997
#define BENCH_SECS   3
#define CHILDREN_MAX 64

struct load {
	const char *name;
	enum burn_kind kind;
	bool rows; /* with the children's unwind tables */
};

static const struct load loads[] = {
	{"some frames", BURN_USER, false},	     {"32 frames", BURN_USUAL, false},
	{"32 frames, by tables", BURN_USUAL, true},  {"512 frames", BURN_DEEP, false},
	{"512 frames, by tables", BURN_DEEP, true},  {"system calls", BURN_KERNEL, false},
	{"a new stack each time", BURN_MANY, false},
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
	const struct known *k = ctx;

	for (size_t i = 0; i < k->n; i++)
		if (s->pid.pid == (uint64_t)k->children[i])
			(void)kernelwalk_record(k->to, k->space, (uint32_t)s->pid.pid,
						s->start_boottime_ns, s->exec_id);
}

/* Publish the tables of the children to the walker; all have the same mappings. */
static int give_tables(struct oncpu *oc, const pid_t *children, size_t n)
{
	const struct bpfobj_unwind to = oncpu_unwind(oc);
	struct hostwalk_space space;
	struct hostwalk *walk;
	struct known known = {children, n, &to, &space};
	int r = hostwalk_new(children[0], &walk);

	if (r < 0)
		return r;
	space = hostwalk_space(walk);
	r = kernelwalk_publish(&to, &space);
	for (int i = 0; r >= 0 && i < 2; i++) {
		usleep(500000);
		r = oncpu_tick(oc, introduce, &known);
	}
	hostwalk_free(walk);
	return r;
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

/* Let the program run, and return the difference in @ret. */
static int let_run(struct oncpu *oc, struct tally *tally, struct so_far *ret)
{
	struct so_far before;
	int r = look(oc, &before);

	for (int i = 0; r == 0 && i < BENCH_SECS * 2; i++) {
		usleep(500000);
		r = oncpu_tick(oc, take, tally);
	}
	if (r == 0)
		r = look(oc, ret);
	if (r < 0)
		return r;
	ret->cost.runs -= before.cost.runs;
	ret->cost.run_ns -= before.cost.run_ns;
	for (size_t i = 0; i < SAMPLE_STAT_MAX; i++)
		ret->stats[i] -= before.stats[i];
	return 0;
}

/* Cost of a sample of an unselected process, in ns. */
static int measure_others(struct oncpu *oc, uint64_t *ret_ns)
{
	struct tally tally = {0};
	struct so_far seen;
	int r = let_run(oc, &tally, &seen);

	if (r < 0)
		return r;
	*ret_ns = seen.cost.run_ns / (seen.cost.runs + !seen.cost.runs);
	printf("  %-24s %6" PRIu64 " samples, %5" PRIu64 " ns each\n", "of others", seen.cost.runs,
	       *ret_ns);
	return 0;
}

static int measure(const struct load *load, struct oncpu *oc, uint64_t others_ns)
{
	struct tally tally = {0};
	struct so_far seen = {0};
	pid_t children[CHILDREN_MAX];
	size_t n = start_children(load->kind, children);
	uint64_t others, mine;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = pid_filter_add(oncpu_pid_filter(oc), children[i]);
	if (r == 0 && load->rows)
		r = give_tables(oc, children, n);
	if (r == 0)
		r = let_run(oc, &tally, &seen);
	for (size_t i = 0; i < n; i++)
		burn_end(children[i]);
	if (r < 0)
		return r;
	others = seen.stats[SAMPLE_STAT_FILTERED];
	mine = seen.cost.runs - others;
	mine += !mine;
	tally.samples += !tally.samples;
	printf("  %-24s %6" PRIu64 " samples, %3" PRIu64 " frames each, %3" PRIu64
	       " of them by tables, %5" PRIu64 " ns each\n",
	       load->name, mine, tally.frames / tally.samples, tally.row_frames / tally.samples,
	       (seen.cost.run_ns - others * others_ns) / mine);
	return 0;
}

static int run(const struct root *proc, const struct root *sys)
{
	const struct oncpu_opts opts = {.rate_hz = RATE,
					.scope = SETTINGS_SCOPE_PROCESSES,
					.kernel_stacks = true,
					.proc = proc,
					.sys = sys};
	uint64_t others_ns = 0;
	const struct verifier *verifier;
	struct bpfobj_why why = {""};
	struct oncpu *oc = NULL;
	uint64_t start_ns = nsec_monotonic();
	int r = oncpu_new(&opts, &why, &oc);

	if (r < 0) {
		fprintf(stderr, "bench_bpf: %s\n", why.text);
		return r;
	}
	printf("bpf: loaded and attached in %.0f ms, maps %" PRIu64 " KiB (at %d Hz)\n",
	       (double)(nsec_monotonic() - start_ns) / 1e6, oncpu_map_bytes(oc) / 1024, RATE);
	verifier = bpfobj_verifier(oncpu_object(oc));
	for (size_t i = 0; i < verifier->n; i++)
		printf("  %s: %u instructions verified\n", verifier->programs[i].name,
		       verifier->programs[i].insns);
	r = measure_others(oc, &others_ns);
	for (size_t i = 0; r == 0 && i < array_size(loads); i++)
		r = measure(&loads[i], oc, others_ns);
	oncpu_free(oc);
	return r;
}

int main(void)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT, sys = ROOT_INIT;
	/* The kernel counts while this descriptor is open. */
	_cleanup_(close_fdp) int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	int r;

	if (stats < 0)
		fprintf(stderr, "bench_bpf: no statistics: %s\n", strerror(errno));
	if (root_open("/proc", &proc) || root_open("/sys", &sys))
		return 1;
	r = run(&proc, &sys);
	if (r < 0)
		fprintf(stderr, "bench_bpf: %s\n", strerror(-r));
	return r < 0;
}
