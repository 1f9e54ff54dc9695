// SPDX-License-Identifier: Apache-2.0
/* What a sample costs in the kernel, by the kernel's own clock around the program, and what the
 * maps take. A shallow user stack, a deep one, and system calls. */
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
#include "profile/verifier.h"
#include "support/burn.h"

/* High, so that a second has many samples; the cost of one does not depend on it much. */
#define RATE	     997
#define BENCH_SECS   3
#define CHILDREN_MAX 64

struct load {
	const char *name;
	enum burn_kind kind;
};

static const struct load loads[] = {
	{"6 user frames", BURN_USER},
	{"512 user frames", BURN_DEEP},
	{"system calls", BURN_KERNEL},
	{"a new stack each time", BURN_MANY},
};

struct tally {
	uint64_t samples;
	uint64_t frames;
};

static void take(void *ctx, const struct sample *s)
{
	struct tally *t = ctx;

	t->samples += s->count;
	t->frames += s->count * (s->n_user + s->n_kernel);
}

/* One child for each CPU, so that most samples are theirs. */
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

static int measure(const struct load *load, struct oncpu *oc)
{
	struct bpfobj_cost before, after = {0};
	struct tally tally = {0};
	pid_t children[CHILDREN_MAX];
	uint64_t runs;
	size_t n = start_children(load->kind, children);
	int r;

	r = bpfobj_cost(oncpu_program(oc), &before);
	for (int i = 0; r == 0 && i < BENCH_SECS * 2; i++) {
		usleep(500000);
		r = oncpu_tick(oc, take, &tally);
	}
	if (r == 0)
		r = bpfobj_cost(oncpu_program(oc), &after);
	for (size_t i = 0; i < n; i++)
		burn_end(children[i]);
	if (r < 0)
		return r;
	runs = after.runs - before.runs;
	printf("  %-24s %6" PRIu64 " samples, %3" PRIu64 " frames each, %5" PRIu64 " ns each\n",
	       load->name, runs, tally.samples ? tally.frames / tally.samples : 0,
	       runs ? (after.run_ns - before.run_ns) / runs : 0);
	return 0;
}

static int run(const struct root *proc, const struct root *sys)
{
	const struct oncpu_opts opts = {
		.rate_hz = RATE, .kernel_stacks = true, .proc = proc, .sys = sys};
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
	for (size_t i = 0; r == 0 && i < array_size(loads); i++)
		r = measure(&loads[i], oc);
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
