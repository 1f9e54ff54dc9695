// SPDX-License-Identifier: Apache-2.0
/*
 * A part of a cgroup's samples, or none, in the real kernel. The test does not depend on time: each
 * sample of a burning process is counted under one outcome, taken or not, and random choices are
 * compared with their probability.
 */
#include "support/test.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nsec.h"
#include "base/root.h"
#include "profile/cgroup_sampling.h"
#include "profile/offcpu.h"
#include "profile/oncpu.h"
#include "profile/stacks.h"
#include "shared/cgroup_sampling.h"
#include "shared/sample.h"
#include "support/burn.h"
#include "support/metrics.h"
#include "support/tree.h"

#define RATE   1999
/* A rate that a pod may request, with the agent's own at the default. */
#define PART   19
#define WHOLE  97
/* Permitted standard errors of a number: exceeded by chance in one run of 1.7 million. */
#define SIGMAS 5

/* A process in a cgroup of its own, and perhaps another outside. */
struct bench {
	struct root proc, sys;
	struct oncpu *oc;
	struct offcpu *off;
	struct cgroup_sampling *cgroup_sampling;
	int tree; /* the root of the hierarchy */
	enum hierarchy hierarchy;
	char dir[64], sub[96];
	int v2; /* another root, with a directory */
	char v2_dir[64];
	uint64_t dir_id, sub_id;
	pid_t one, other;
	uint64_t n_one, n_other, value_one; /* samples */
};

static struct bench bench;

static void take(void *ctx, const struct sample *s)
{
	struct bench *b = ctx;

	if (s->pid.pid == (uint64_t)b->other)
		b->n_other += s->count;
	if (s->pid.pid != (uint64_t)b->one)
		return;
	b->n_one += s->count;
	b->value_one += sample_value(s, oncpu_period(b->oc));
}

static void take_off_cpu(void *ctx, const struct sample *s)
{
	struct bench *b = ctx;

	if (s->pid.pid == (uint64_t)b->one)
		b->n_one += s->count;
}

/* ---------------------------------------------------------------- the bench */

static void move_in(int tree, pid_t pid, const char *dir)
{
	_cleanup_(close_fdp) int fd = -1;
	char path[128];

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = openat(tree, path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%d\n", pid) > 0);
}

static void move_to(struct bench *b, pid_t pid, const char *dir)
{
	move_in(b->tree, pid, dir);
}

static int open_root(enum hierarchy hierarchy)
{
	const char *path = hierarchy == HIERARCHY_V1 ? "/sys/fs/cgroup/memory"
			   : access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0
				   ? "/sys/fs/cgroup/unified"
				   : "/sys/fs/cgroup";
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void open_tree(struct bench *b, enum hierarchy hierarchy)
{
	b->hierarchy = hierarchy;
	b->tree = open_root(hierarchy);
	snprintf(b->dir, sizeof(b->dir), "podprof-shares-%d", getpid());
	snprintf(b->sub, sizeof(b->sub), "%s/inner", b->dir);
	b->dir_id = tree_mkdir(b->tree, b->dir);
	b->sub_id = tree_mkdir(b->tree, b->sub);
}

static int setup(void **state)
{
	bench = (struct bench){.tree = -1, .v2 = -1};
	*state = &bench;
	return root_open("/proc", &bench.proc) || root_open("/sys", &bench.sys);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (b->one > 0)
		burn_end(b->one);
	if (b->other > 0)
		burn_end(b->other);
	if (b->tree >= 0) {
		unlinkat(b->tree, b->sub, AT_REMOVEDIR);
		unlinkat(b->tree, b->dir, AT_REMOVEDIR);
		close(b->tree);
	}
	if (b->v2 >= 0) {
		unlinkat(b->v2, b->v2_dir, AT_REMOVEDIR);
		close(b->v2);
	}
	offcpu_free(b->off);
	oncpu_free(b->oc);
	root_deinit(&b->proc);
	root_deinit(&b->sys);
	return 0;
}

/* Start to sample, with a ready burning process in the cgroup. */
static void start(struct bench *b, enum burn_kind kind)
{
	const struct oncpu_opts opts = {
		.rate_hz = RATE,
		.kernel_stacks = true,
		.offcpu = kind == BURN_SLEEP,
		.v1 = SETTINGS_V1_MEMORY,
		.proc = &b->proc,
		.sys = &b->sys,
	};
	struct bpfobj_why why = {""};

	b->one = burn_start(kind);
	assert_true(b->one > 0);
	move_to(b, b->one, b->dir);
	if (oncpu_new(&opts, &why, &b->oc))
		fail_msg("no sampler: %s", why.text);
	b->cgroup_sampling = oncpu_cgroup_sampling(b->oc);
}

static void set(struct bench *b, uint64_t id, unsigned int part)
{
	cgroup_sampling_begin(b->cgroup_sampling);
	if (id)
		assert_int_equal(
			cgroup_sampling_set(b->cgroup_sampling, b->hierarchy, id, part, WHOLE), 0);
	assert_int_equal(cgroup_sampling_end(b->cgroup_sampling), 0);
}

static uint64_t cpu_of(pid_t pid)
{
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	return nsec_read(clock);
}

/* Until the process has had so much more of a CPU, however busy the machine is. */
static void wait_cpu(pid_t pid, uint64_t cpu_ns)
{
	const uint64_t until = cpu_of(pid) + cpu_ns;

	while (cpu_of(pid) < until)
		usleep(10000);
}

static uint64_t stat_in(const struct stacks *stacks, enum sample_stat stat)
{
	uint64_t stats[SAMPLE_STAT_MAX];

	assert_int_equal(stacks_stats(stacks, stats, SAMPLE_STAT_MAX), 0);
	return stats[stat];
}

static uint64_t stat_of(const struct bench *b, enum sample_stat stat)
{
	return stat_in(oncpu_stacks(b->oc), stat);
}

/* Drain the counts. */
static void drain(struct bench *b)
{
	do {
		assert_int_equal(oncpu_tick(b->oc, take, b), 0);
		usleep(1000);
	} while (oncpu_interval_ns(b->oc) <= 10 * NSEC_PER_MSEC);
}

static void finish(struct bench *b)
{
	assert_int_equal(oncpu_finish(b->oc, take, b), 0);
}

/* @n of @of samples were taken, each with the probability @p. */
static void assert_drawn(uint64_t n, uint64_t of, double p)
{
	const double want = (double)of * p, error = sqrt((double)of * p * (1 - p));

	print_message("%ju of %ju taken: %+.1f standard errors\n", (uintmax_t)n, (uintmax_t)of,
		      ((double)n - want) / error);
	assert_true(fabs((double)n - want) <= SIGMAS * error);
}

/* ---------------------------------------------------------------- none */

/* Not a single stack, and as many refusals as clock ticks. */
static void check_left_out(struct bench *b)
{
	uint64_t cpu_ns, left_out;

	start(b, BURN_USER);
	set(b, b->dir_id, 0);
	b->other = burn_start(BURN_USER);
	burn_go(b->one);
	burn_go(b->other);
	wait_cpu(b->one, NSEC_PER_SEC / 4);
	wait_cpu(b->other, NSEC_PER_SEC / 20);
	finish(b);
	cpu_ns = burn_end(b->one);
	left_out = stat_of(b, SAMPLE_STAT_LEFT_OUT);
	print_message("%ju left out in %ju ms\n", (uintmax_t)left_out,
		      (uintmax_t)(cpu_ns / NSEC_PER_MSEC));
	assert_int_equal(b->n_one, 0);
	assert_true(b->n_other > 0);
	assert_true(left_out > NSEC_PER_SEC / 8 / oncpu_period(b->oc));
	assert_int_equal(stat_of(b, SAMPLE_STAT_THINNED), 0);
	b->one = 0;
}

static void test_left_out(void **state)
{
	open_tree(*state, HIERARCHY_V2);
	check_left_out(*state);
}

static void test_left_out_v1(void **state)
{
	open_tree(*state, HIERARCHY_V1);
	check_left_out(*state);
}

/* The same number in the other tree is another directory. */
static void test_other_tree(void **state)
{
	struct bench *b = *state;

	open_tree(b, HIERARCHY_V2);
	start(b, BURN_USER);
	cgroup_sampling_begin(b->cgroup_sampling);
	assert_int_equal(cgroup_sampling_set(b->cgroup_sampling, HIERARCHY_V1, b->dir_id, 0, WHOLE),
			 0);
	assert_int_equal(cgroup_sampling_end(b->cgroup_sampling), 0);
	burn_go(b->one);
	wait_cpu(b->one, NSEC_PER_SEC / 10);
	finish(b);
	assert_true(b->n_one > 0);
}

/* Samples of the process with this newest directory of the unified tree, in two rounds. */
static uint64_t n_with_newest(struct bench *b, uint64_t newest)
{
	const uint64_t before = b->n_one;

	for (int i = 0; i < 2; i++) {
		cgroup_sampling_begin(b->cgroup_sampling);
		assert_int_equal(
			cgroup_sampling_set(b->cgroup_sampling, HIERARCHY_V1, b->dir_id, 0, WHOLE),
			0);
		cgroup_sampling_know(b->cgroup_sampling, newest);
		assert_int_equal(cgroup_sampling_end(b->cgroup_sampling), 0);
	}
	drain(b);
	b->n_one = before;
	wait_cpu(b->one, NSEC_PER_SEC / 10);
	drain(b);
	return b->n_one - before;
}

/* In a directory of version 1 without samples, and in an old or a new one of the unified tree. */
static void test_newest(void **state)
{
	struct bench *b = *state;
	uint64_t id;

	open_tree(b, HIERARCHY_V1);
	start(b, BURN_USER);
	snprintf(b->v2_dir, sizeof(b->v2_dir), "podprof-newest-%d", getpid());
	b->v2 = open_root(HIERARCHY_V2);
	id = tree_mkdir(b->v2, b->v2_dir);
	move_in(b->v2, b->one, b->v2_dir);
	burn_go(b->one);
	assert_int_equal(n_with_newest(b, id), 0);
	assert_true(n_with_newest(b, id - 1) > 0);
	assert_int_equal(n_with_newest(b, id + 1), 0);
	assert_int_equal(n_with_newest(b, 0), 0);
	finish(b);
}

/* Samples of the process with full sampling by its directory of the unified tree, and with @part by
 * its other directory as an inner container's; none without. */
static uint64_t n_with_inner(struct bench *b, uint64_t v2_id, bool has_inner, unsigned int part)
{
	cgroup_sampling_begin(b->cgroup_sampling);
	assert_int_equal(cgroup_sampling_set(b->cgroup_sampling, HIERARCHY_V2, v2_id,
					     has_inner && part ? 0 : WHOLE, WHOLE),
			 0);
	if (has_inner)
		assert_int_equal(
			cgroup_sampling_set_inner(b->cgroup_sampling, b->dir_id, part, WHOLE), 0);
	assert_int_equal(cgroup_sampling_end(b->cgroup_sampling), 0);
	drain(b);
	b->n_one = 0;
	wait_cpu(b->one, NSEC_PER_SEC / 10);
	drain(b);
	return b->n_one;
}

/* An inner container's directory comes before the unified tree's. */
static void test_inner(void **state)
{
	struct bench *b = *state;
	uint64_t id;

	open_tree(b, HIERARCHY_V1);
	start(b, BURN_USER);
	snprintf(b->v2_dir, sizeof(b->v2_dir), "podprof-inner-%d", getpid());
	b->v2 = open_root(HIERARCHY_V2);
	id = tree_mkdir(b->v2, b->v2_dir);
	move_in(b->v2, b->one, b->v2_dir);
	burn_go(b->one);
	assert_true(n_with_inner(b, id, false, 0) > 0);
	assert_int_equal(n_with_inner(b, id, true, 0), 0);
	assert_true(n_with_inner(b, id, true, WHOLE) > 0);
	assert_true(n_with_inner(b, id, false, 0) > 0);
	finish(b);
}

/* A moved process keeps being sampled by its new cgroup; a sub-directory is a cgroup of its own. */
static void test_moves(void **state)
{
	struct bench *b = *state;
	uint64_t n;

	open_tree(b, HIERARCHY_V2);
	start(b, BURN_USER);
	set(b, b->dir_id, 0);
	burn_go(b->one);
	wait_cpu(b->one, NSEC_PER_SEC / 10);
	drain(b);
	assert_int_equal(b->n_one, 0);

	move_to(b, b->one, b->sub);
	wait_cpu(b->one, NSEC_PER_SEC / 10);
	drain(b);
	assert_true(b->n_one > 0);

	move_to(b, b->one, b->dir);
	drain(b);
	n = b->n_one;
	wait_cpu(b->one, NSEC_PER_SEC / 10);
	drain(b);
	assert_int_equal(b->n_one, n);

	set(b, b->sub_id, 0); /* and no more the directory itself */
	wait_cpu(b->one, NSEC_PER_SEC / 10);
	drain(b);
	assert_true(b->n_one > n);
	move_to(b, b->one, b->sub);
	drain(b);
	n = b->n_one;
	wait_cpu(b->one, NSEC_PER_SEC / 10);
	finish(b);
	assert_int_equal(b->n_one, n);
}

/* ---------------------------------------------------------------- a part */

/* The weights of the taken samples add up to the time of all samples. The process's own clock does
 * not fit: while the host takes a virtual CPU away, this clock continues without samples. */
static void assert_time(const struct bench *b, uint64_t all, double error_ns)
{
	const uint64_t want_ns = all * oncpu_period(b->oc);

	print_message("%ju of %ju ms: %+.1f standard errors\n",
		      (uintmax_t)(b->value_one / NSEC_PER_MSEC),
		      (uintmax_t)(want_ns / NSEC_PER_MSEC),
		      ((double)b->value_one - (double)want_ns) / error_ns);
	assert_true(fabs((double)b->value_one - (double)want_ns) <= SIGMAS * error_ns);
}

/* Of the time represented by @n samples drawn with the probability @p. */
static double variance_ns(const struct bench *b, uint64_t n, double p)
{
	const double period = (double)oncpu_period(b->oc);

	return period * period * (double)n * (1 - p) / p;
}

static void test_thinned(void **state)
{
	const double p = (double)PART / WHOLE;
	struct bench *b = *state;
	uint64_t all;

	open_tree(b, HIERARCHY_V2);
	start(b, BURN_USER);
	set(b, b->dir_id, PART);
	burn_go(b->one);
	wait_cpu(b->one, NSEC_PER_SEC);
	finish(b);
	burn_end(b->one);
	b->one = 0;
	all = b->n_one + stat_of(b, SAMPLE_STAT_THINNED);
	assert_int_equal(stat_of(b, SAMPLE_STAT_LEFT_OUT), 0);
	assert_drawn(b->n_one, all, p);
	assert_time(b, all, sqrt(variance_ns(b, all, p)));
	/* each stands for the same, exactly: the period by the share */
	assert_true(fabs((double)b->value_one / (double)b->n_one -
			 (double)oncpu_period(b->oc) / p) < 100);
}

/* All, a fifth, a half: each sample has the weight of its time. */
static void test_changes(void **state)
{
	static const unsigned int parts[] = {WHOLE, PART, WHOLE / 2};
	struct bench *b = *state;
	double variance = 0;
	uint64_t cpu_ns, before = 0;

	open_tree(b, HIERARCHY_V2);
	start(b, BURN_USER);
	burn_go(b->one);
	for (size_t i = 0; i < array_size(parts); i++) {
		set(b, b->dir_id, parts[i]);
		wait_cpu(b->one, NSEC_PER_SEC / 3);
		cpu_ns = cpu_of(b->one);
		variance += variance_ns(b, (cpu_ns - before) / oncpu_period(b->oc),
					(double)parts[i] / WHOLE);
		before = cpu_ns;
	}
	finish(b); /* one drain for all: a stack has samples of each weight */
	burn_end(b->one);
	b->one = 0;
	assert_time(b, b->n_one + stat_of(b, SAMPLE_STAT_THINNED), sqrt(variance));
}

/* ---------------------------------------------------------------- off the CPUs */

/* A second: no switch is passed over, however many the machine has. */
#define OFF_CPU_STACKS 1000000

static void start_off_cpu(struct bench *b, unsigned int part)
{
	struct bpfobj_why why = {""};

	open_tree(b, HIERARCHY_V2);
	start(b, BURN_SLEEP);
	set(b, b->dir_id, part);
	if (offcpu_new(oncpu_object(b->oc), 1, OFF_CPU_STACKS, &why, &b->off))
		fail_msg("no sampler: %s", why.text);
	burn_go(b->one);
}

/* Voluntary switches of the process, counted by the kernel. */
static uint64_t switches_of(pid_t pid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[256];
	unsigned long long n;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &n) == 1)
			return n;
	fail_msg("no number of switches");
	return 0;
}

static void wait_switches(pid_t pid, uint64_t n)
{
	const uint64_t until = switches_of(pid) + n;

	while (switches_of(pid) < until)
		usleep(10000);
}

static void test_off_cpu_left_out(void **state)
{
	struct bench *b = *state;

	start_off_cpu(b, 0);
	wait_switches(b->one, 50);
	assert_int_equal(offcpu_finish(b->off, take_off_cpu, b), 0);
	assert_int_equal(b->n_one, 0);
	print_message("%ju left out\n",
		      (uintmax_t)stat_in(offcpu_stacks(b->off), SAMPLE_STAT_LEFT_OUT));
	assert_true(stat_in(offcpu_stacks(b->off), SAMPLE_STAT_LEFT_OUT) > 0);
}

/* Taken switches also represent the others: a standard error is sqrt((1 - p) / np). On a busy
 * machine a sleep may end before it begins, so some are no waits. */
static void test_off_cpu_thinned(void **state)
{
	const double p = 0.5;
	struct bench *b = *state;
	uint64_t n, before;
	double error;

	start_off_cpu(b, WHOLE / 2 + 1);
	before = switches_of(b->one);
	wait_switches(b->one, 400);
	assert_int_equal(offcpu_finish(b->off, take_off_cpu, b), 0);
	n = switches_of(b->one) - before;
	error = sqrt((double)n * (1 - p) / p);
	print_message("%ju switches of %ju\n", (uintmax_t)b->n_one, (uintmax_t)n);
	assert_true(stat_in(offcpu_stacks(b->off), SAMPLE_STAT_THINNED) > 0);
	assert_true((double)b->n_one <= (double)n + SIGMAS * error);
	assert_true((double)b->n_one >= (double)n * 3 / 4 - SIGMAS * error);
}

/* ---------------------------------------------------------------- the table */

static uint64_t cgroups(struct bench *b, const char *taken)
{
	return metrics_get(cgroup_sampling_collect, b->cgroup_sampling,
			   "podprof_cgroup_sampling_entries", taken);
}

/* An entry without room changes nothing, and room returns. */
static void test_full(void **state)
{
	struct bench *b = *state;

	open_tree(b, HIERARCHY_V2);
	start(b, BURN_USER);
	cgroup_sampling_begin(b->cgroup_sampling);
	for (uint64_t i = 0; i < CGROUP_SAMPLING_ENTRIES; i++)
		assert_int_equal(cgroup_sampling_set(b->cgroup_sampling, HIERARCHY_V2,
						     (1ull << 40) + i, 1, 2),
				 0);
	assert_int_equal(cgroup_sampling_set(b->cgroup_sampling, b->hierarchy, b->dir_id, 0, 1),
			 CGROUP_SAMPLING_FULL);
	assert_int_equal(cgroup_sampling_end(b->cgroup_sampling), 0);
	assert_int_equal(cgroups(b, "reduced"), CGROUP_SAMPLING_ENTRIES);
	assert_int_equal(metrics_get(cgroup_sampling_collect, b->cgroup_sampling,
				     "podprof_cgroup_sampling_refused", ""),
			 1);
	burn_go(b->one);
	wait_cpu(b->one, NSEC_PER_SEC / 10);
	drain(b);
	assert_true(b->n_one > 0);

	set(b, 0, 0); /* removed entries make room for the next time */
	set(b, b->dir_id, 0);
	assert_int_equal(cgroups(b, "reduced"), 0);
	assert_int_equal(cgroups(b, "off"), 1);
	set(b, 0, 0);
	assert_int_equal(cgroups(b, "off"), 0);
	assert_int_equal(*bpfobj_cgroup_sampling(oncpu_object(b->oc)).in_use, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_left_out),
		TEST(test_left_out_v1),
		TEST(test_other_tree),
		TEST(test_inner),
		TEST(test_newest),
		TEST(test_moves),
		TEST(test_thinned),
		TEST(test_changes),
		TEST(test_full),
		TEST(test_off_cpu_left_out),
		TEST(test_off_cpu_thinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
