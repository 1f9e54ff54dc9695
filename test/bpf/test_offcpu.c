// SPDX-License-Identifier: Apache-2.0
/*
 * Durations of waits, measured by the off-CPU programs in the real kernel and by the threads
 * themselves.
 */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/nsec.h"
#include "base/root.h"
#include "profile/offcpu.h"
#include "profile/oncpu.h"
#include "profile/pid_filter.h"
#include "profile/stacks.h"
#include "profile/verifier.h"
#include "shared/offcpu.h"
#include "shared/sample.h"
#include "support/threads.h"
#include "support/verified.h"

/* Between the child's reads of the two clocks, twice. */
#define CLOCKS_NS 20000
/* For a row; why is told at is_enough(). */
#define TRIES	  8

struct bench {
	struct root proc, sys;
	struct oncpu *oc;
	struct offcpu *off;
	pid_t child;
	uint64_t total_ns; /* of the child's waits, and so on */
	uint64_t count;
	uint64_t with_kernel;
	uint64_t others;
	size_t n_waiting; /* least number of frames of a wait in the section */
};

static struct bench bench;

/* ---------------------------------------------------------------- a waiting child */

/* Bounds of the section, defined by the linker. */
extern const char __start_waiting[], __stop_waiting[];

enum wait_kind { WAIT_SLEEP, WAIT_DEEP, WAIT_PIPE, WAIT_FUTEX, WAIT_MOVED, WAIT_DISK };

/* The child's own measurements. */
struct waited {
	uint64_t ns; /* elapsed time without CPU time */
	uint64_t n;
	uint64_t ready_ns; /* the largest part of this time in which the child was ready to run */
};

/* How long this process was ready to run and did not, since its start: the second number. */
static uint64_t ready_ns(void)
{
	unsigned long long ran, ready = 0;
	FILE *f = fopen("/proc/self/schedstat", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llu %llu", &ran, &ready), 2);
	fclose(f);
	return ready;
}

/* Large, so waits are long: a virtual machine's host takes a part of each request that is neither
 * CPU time nor a wait. */
static char disk_bytes[4 << 20];

/* Hide the function body from callers. */
#ifdef __clang__
#define NOIPA __attribute__((noinline, optnone))
#else
#define NOIPA __attribute__((noipa))
#endif

/* syscall() leaves the frame pointer alone, so the walk goes on in wait_often(). */
static NOIPA void wait_once(enum wait_kind kind, int fd, uint64_t ns)
{
	const struct timespec t = {.tv_nsec = (long)ns};
	static uint32_t word;
	char c;

	switch (kind) {
	case WAIT_SLEEP:
	case WAIT_DEEP:
	case WAIT_MOVED:
		syscall(SYS_nanosleep, &t, NULL);
		break;
	case WAIT_PIPE:
		assert_int_equal(syscall(SYS_read, fd, &c, 1), 1);
		break;
	case WAIT_FUTEX:
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
		break;
	case WAIT_DISK:
		assert_int_equal(syscall(SYS_pwrite64, fd, disk_bytes, sizeof(disk_bytes), 0),
				 sizeof(disk_bytes));
		assert_int_equal(syscall(SYS_fsync, fd), 0);
		break;
	}
}

static NOIPA __attribute__((section("waiting"))) void
wait_often(enum wait_kind kind, int fd, uint64_t n, uint64_t ns, struct waited *ret)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t start = nsec_monotonic();
		uint64_t cpu = nsec_read(CLOCK_THREAD_CPUTIME_ID);

		wait_once(kind, fd, ns + i % 7 * (ns / 8));
		cpu = nsec_read(CLOCK_THREAD_CPUTIME_ID) - cpu;
		ret->ns += nsec_monotonic() - start - cpu;
		ret->n++;
	}
}

/* Depth of a wait: more words than the large class has. */
#define DEPTH (SAMPLE_LARGE_FRAMES + 140)

static NOIPA __attribute__((section("waiting"))) void wait_below(unsigned int depth,
								 enum wait_kind kind, int fd,
								 uint64_t n, uint64_t ns,
								 struct waited *ret)
{
	if (depth)
		wait_below(depth - 1, kind, fd, n, ns, ret);
	else
		wait_often(kind, fd, n, ns, ret);
	__asm__ volatile(""); /* the call above is no jump */
}

/* As deep, in no section: its frames in the child's stacks would be wrong. */
static NOIPA void other_below(unsigned int depth, uint64_t ns)
{
	if (depth)
		other_below(depth - 1, ns);
	else
		wait_once(WAIT_SLEEP, -1, ns);
	__asm__ volatile("");
}

static pid_t start_other(uint64_t ns)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	threads_pin(); /* the BPF programs have a record a CPU */
	for (;;)
		other_below(DEPTH, ns);
}

static bool in_waiting(uint64_t pc)
{
	return pc >= (uintptr_t)__start_waiting && pc <= (uintptr_t)__stop_waiting;
}

/* Writes a byte to @fd every now and then. */
static pid_t start_writer(int fd, uint64_t n, uint64_t ns)
{
	const struct timespec t = {.tv_nsec = (long)ns};
	pid_t pid = fork();

	if (pid)
		return pid;
	for (uint64_t i = 0; i < n; i++) {
		nanosleep(&t, NULL);
		if (write(fd, "x", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

/* Move the mostly sleeping child to another CPU every millisecond until the answer: the thread
 * leaves a CPU and returns on another. */
static void move_about(pid_t child, int answer)
{
	struct pollfd ready = {.fd = answer, .events = POLLIN};
	cpu_set_t all, one;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (size_t cpu = 0; poll(&ready, 1, 1) == 0; cpu = (cpu + 1) % CPU_SETSIZE) {
		while (!CPU_ISSET(cpu, &all))
			cpu = (cpu + 1) % CPU_SETSIZE;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		assert_int_equal(sched_setaffinity(child, sizeof(one), &one), 0);
	}
}

/* A file on this machine's disk, deleted on close. */
static int disk_file(void)
{
	char path[] = "build/test-offcpu-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

/* The child waits @n times and says for how long. */
static struct waited let_wait(struct bench *b, enum wait_kind kind, uint64_t n, uint64_t ns)
{
	struct waited waited = {0};
	int bytes[2], answer[2];
	pid_t writer, other;

	assert_int_equal(pipe(bytes), 0);
	assert_int_equal(pipe(answer), 0);
	b->child = fork();
	if (b->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (kind == WAIT_DEEP)
			threads_pin();
		wait_below(kind == WAIT_DEEP ? DEPTH : 0, kind,
			   kind == WAIT_DISK ? disk_file() : bytes[0], n, ns, &waited);
		waited.ready_ns = ready_ns();
		_exit(write(answer[1], &waited, sizeof(waited)) != sizeof(waited));
	}
	writer = kind == WAIT_PIPE ? start_writer(bytes[1], n, ns) : 0;
	other = kind == WAIT_DEEP ? start_other(ns / 3) : 0;
	if (kind == WAIT_MOVED)
		move_about(b->child, answer[0]);
	assert_int_equal(read(answer[0], &waited, sizeof(waited)), sizeof(waited));
	assert_int_equal(waitpid(b->child, NULL, 0), b->child);
	if (writer)
		assert_int_equal(waitpid(writer, NULL, 0), writer);
	if (other) {
		kill(other, SIGKILL);
		assert_int_equal(waitpid(other, NULL, 0), other);
	}
	for (int i = 0; i < 2; i++) {
		close(bytes[i]);
		close(answer[i]);
	}
	return waited;
}

/* ---------------------------------------------------------------- the sampler */

static void take_cpu(void *ctx, const struct sample *s)
{
	(void)ctx;
	assert_int_equal(s->total, s->count * SAMPLE_ONE);
}

static void take(void *ctx, const struct sample *s)
{
	struct bench *b = ctx;
	size_t waiting = 0;

	assert_true(s->total > 0);
	for (size_t i = 0; i < s->n_user; i++)
		waiting += in_waiting(s->user[i]);
	if (s->pid.pid != (uint64_t)b->child || !waiting) {
		b->others += s->count;
		return;
	}
	b->n_waiting = b->count && b->n_waiting < waiting ? b->n_waiting : waiting;
	b->total_ns += s->total;
	b->count += s->count;
	if (s->n_kernel)
		b->with_kernel += s->count;
}

static int setup(void **state)
{
	bench = (struct bench){0};
	*state = &bench;
	return root_open("/proc", &bench.proc) || root_open("/sys", &bench.sys);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	offcpu_free(b->off);
	oncpu_free(b->oc);
	root_deinit(&b->proc);
	root_deinit(&b->sys);
	return 0;
}

static void sample_those(struct bench *b, enum settings_scope scope, double share,
			 unsigned int stacks_max)
{
	const struct oncpu_opts opts = {.rate_hz = 97,
					.scope = scope,
					.kernel_stacks = true,
					.offcpu = true,
					.proc = &b->proc,
					.sys = &b->sys};
	struct bpfobj_why why = {""};

	if (oncpu_new(&opts, &why, &b->oc) ||
	    offcpu_new(oncpu_object(b->oc), share, stacks_max, &why, &b->off))
		fail_msg("no sampler: %s", why.text);
}

static void sample_with(struct bench *b, double share, unsigned int stacks_max)
{
	sample_those(b, SETTINGS_SCOPE_ALL, share, stacks_max);
}

static void finish(struct bench *b)
{
	assert_int_equal(offcpu_finish(b->off, take, b), 0);
	assert_int_equal(oncpu_finish(b->oc, take_cpu, b), 0);
}

/* ---------------------------------------------------------------- tests */

struct row {
	const char *name;
	enum wait_kind kind;
	double share;
	uint64_t n;
	uint64_t ns;
	unsigned int tolerance; /* per cent */
};

/* With a share of 1: exact except for the time between the child's two reads of the clock. With a
 * smaller share and k chosen switches the error of the number is some 1/sqrt(k); four times this
 * error is permitted. Times are not compared then: on a busy machine a few waits are much longer
 * than the rest. While a virtual disk works, the CPU's clock and the wall clock differ by up to a
 * sixth: only the order of magnitude is checked. */
static const struct row rows[] = {
	{"sleep, all", WAIT_SLEEP, 1, 100, 4 * NSEC_PER_MSEC, 5},
	{"sleep below many calls, all", WAIT_DEEP, 1, 100, 4 * NSEC_PER_MSEC, 5},
	{"pipe, all", WAIT_PIPE, 1, 100, 4 * NSEC_PER_MSEC, 5},
	{"futex, all", WAIT_FUTEX, 1, 100, 4 * NSEC_PER_MSEC, 5},
	{"sleep, moved to another CPU, all", WAIT_MOVED, 1, 100, 4 * NSEC_PER_MSEC, 5},
	{"disk, all", WAIT_DISK, 1, 20, 0, 40},
	{"sleep, a fifth", WAIT_SLEEP, 0.2, 4000, NSEC_PER_MSEC / 10, 14},
};

/* On a busy machine a sleep may end before it begins, so some are no waits. */
static bool is_near(uint64_t got, uint64_t want, unsigned int per_cent)
{
	print_message("%llu of %llu\n", (unsigned long long)got, (unsigned long long)want);
	return got >= want * 3 / 4 - want * per_cent / 100 && got <= want + want * per_cent / 100;
}

static void assert_count(uint64_t got, uint64_t want, unsigned int per_cent)
{
	assert_true(is_near(got, want, per_cent));
}

/* The child's measurement of a wait may include time at the edges in which the child was ready and
 * another thread ran (all of the time, on a busy machine), or in which a virtual machine's host had
 * taken the CPU unreported. So a smaller value may be chance, and a larger value may not. */
static bool is_enough(const struct bench *b, const struct waited *waited, unsigned int per_cent)
{
	/* a wait for the disk is several switches */
	uint64_t n = b->count > waited->n ? b->count : waited->n, got = b->total_ns;
	uint64_t slack = waited->ns * per_cent / 100 + n * CLOCKS_NS;

	print_message("%llu of %llu, %llu ready, %llu switches\n", (unsigned long long)got,
		      (unsigned long long)waited->ns, (unsigned long long)waited->ready_ns,
		      (unsigned long long)b->count);
	assert_true(got <= waited->ns + slack);
	return got + slack + waited->ready_ns >= waited->ns;
}

/* Whether as much time was seen as there was. */
static bool try_row(struct bench *b, const struct row *row)
{
	struct waited waited;
	bool enough = true;

	sample_with(b, row->share, UINT_MAX);
	waited = let_wait(b, row->kind, row->n, row->ns);
	finish(b);
	if (row->share == 1)
		enough = is_enough(b, &waited, row->tolerance);
	if (row->kind == WAIT_PIPE) /* a byte may be there already */
		assert_in_range(b->count, waited.n / 2, waited.n);
	else if (row->kind != WAIT_DISK) /* several waits, or none */
		assert_count(b->count, waited.n, row->tolerance);
	assert_int_equal(b->with_kernel, b->count);
	assert_int_equal(b->n_waiting, 2 + (row->kind == WAIT_DEEP ? DEPTH : 0));
	return enough;
}

/* A busy machine may spoil a try; not each of them. @row: for @fn, or NULL. */
static void try_often(void **state, bool (*fn)(struct bench *b, const struct row *row),
		      const struct row *row)
{
	bool good = false;

	for (unsigned int tries = 0; tries < TRIES && !good; tries++) {
		good = fn(*state, row);
		teardown(state);
		setup(state);
	}
	assert_true(good);
}

static void test_waits(void **state)
{
	for (size_t i = 0; i < array_size(rows); i++) {
		row_begin(rows[i].name);
		try_often(state, try_row, &rows[i]);
	}
}

/* Lets a child yield its CPU all the time. @return: whether no sample was lost: the other threads
 * of a busy node fill the maps between two drains. */
static bool try_busy(struct bench *b, const struct row *row)
{
	uint64_t stats[SAMPLE_STAT_MAX];

	(void)row;
	sample_with(b, 1, UINT_MAX);
	b->child = fork();
	if (b->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			sched_yield();
	}
	for (unsigned int i = 0; i < 30; i++) {
		usleep(10000);
		assert_int_equal(offcpu_tick(b->off, take, b), 0);
	}
	kill(b->child, SIGKILL);
	assert_int_equal(waitpid(b->child, NULL, 0), b->child);
	finish(b);
	assert_int_equal(b->count, 0);
	assert_true(b->others > 0);
	assert_int_equal(stacks_stats(offcpu_stacks(b->off), stats, SAMPLE_STAT_MAX), 0);
	assert_int_equal(stats[SAMPLE_STAT_LOST_INTERNAL], 0);
	return stats[SAMPLE_STAT_LOST_FULL] == 0;
}

/* No waits of always ready threads, and none after the end. */
static void test_busy(void **state)
{
	try_often(state, try_busy, NULL);
}

/* Stacks taken by the programs. */
static uint64_t count_stacks(const struct bench *b)
{
	uint64_t stats[SAMPLE_STAT_MAX], n = 0;

	assert_int_equal(stacks_stats(offcpu_stacks(b->off), stats, SAMPLE_STAT_MAX), 0);
	for (unsigned int i = 0; i < SAMPLE_STAT_MAX; i++)
		n += stats[i];
	return n;
}

/* A process that mostly waits, with a share of 1: the number of stacks follows the budget, and they
 * represent all waits. Each CPU may add its savings, and the same again on the way to the fitting
 * level. */
static bool is_within_budget(struct bench *b, const struct row *row)
{
	const uint64_t n_cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t start_ns, most, stacks;
	struct waited waited;

	(void)row;
	sample_with(b, 1, 1);
	start_ns = nsec_monotonic();
	waited = let_wait(b, WAIT_SLEEP, 30000, NSEC_PER_MSEC / 50);
	most = (nsec_monotonic() - start_ns) * OFFCPU_STACKS_MIN / NSEC_PER_SEC;
	most = n_cpus * (2 * most + 2 * OFFCPU_BURST);
	finish(b);
	stacks = count_stacks(b);
	print_message("%llu stacks of at most %llu\n", (unsigned long long)stacks,
		      (unsigned long long)most);
	assert_in_range(stacks, OFFCPU_BURST, most);
	return is_near(b->count, waited.n, 50);
}

/* The number is an estimate from some hundred stacks, whose chance changes with the budget: on a
 * busy machine one in many runs is farther off (172 % in one). */
static void test_budget(void **state)
{
	try_often(state, is_within_budget, NULL);
}

/* Two waiting processes, one selected: the other one waits all the time and uses none of the
 * budget. */
static void test_pid_filter(void **state)
{
	struct bench *b = *state;
	uint64_t stats[SAMPLE_STAT_MAX];
	struct waited waited;
	pid_t other;

	sample_those(b, SETTINGS_SCOPE_PROCESSES, 1, 1);
	other = fork();
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		wait_often(WAIT_SLEEP, -1, UINT64_MAX, NSEC_PER_MSEC / 50, &waited);
	}
	/* The child is wanted as a child of ours. */
	assert_int_equal(pid_filter_add(oncpu_pid_filter(b->oc), getpid()), 0);
	waited = let_wait(b, WAIT_SLEEP, OFFCPU_BURST / 2, 5 * NSEC_PER_MSEC);
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
	finish(b);
	assert_count(b->count, waited.n, 0);
	assert_int_equal(stacks_stats(offcpu_stacks(b->off), stats, SAMPLE_STAT_MAX), 0);
	assert_int_equal(stats[SAMPLE_STAT_FILTERED], 0);
}

static void test_bad_share(void **state)
{
	static const double cgroup_sampling[] = {0, -1, 1.01, 1.0 / 0.0, 0.0 / 0.0};
	struct bench *b = *state;
	struct bpfobj_why why = {""};

	sample_with(b, 1, UINT_MAX);
	for (size_t i = 0; i < array_size(cgroup_sampling); i++) {
		struct offcpu *off = NULL;

		assert_int_equal(offcpu_new(oncpu_object(b->oc), cgroup_sampling[i], 1, &why, &off),
				 -EINVAL);
		assert_null(off);
	}
}

/* The number of off-CPU programs. */
static size_t check_verified(const struct verifier *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++) {
		if (strncmp(v->programs[i].name, "offcpu", 6) != 0)
			continue;
		print_message("%s: %u instructions verified\n", v->programs[i].name,
			      v->programs[i].insns);
		assert_in_range(v->programs[i].insns, 1, VERIFIED_OFFCPU_MAX);
		n++;
	}
	return n;
}

static void test_verifier_cost(void **state)
{
	struct bpfobj_runtime loaded;
	struct bench *b = *state;

	sample_with(b, 1, UINT_MAX);
	/* the switch and the walk */
	assert_int_equal(check_verified(bpfobj_verifier(oncpu_object(b->oc))), 2);
	for (uint32_t i = FRAME_RUNTIME_NONE + 1; i < FRAME_RUNTIME_MAX; i++) {
		assert_int_equal(bpfobj_load_runtime(oncpu_object(b->oc), i, &loaded), 0);
		assert_true(check_verified(&loaded.verifier) > 0);
		bpfobj_runtime_deinit(&loaded);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_waits),      TEST(test_busy),	     TEST(test_budget),
		TEST(test_pid_filter), TEST(test_bad_share), TEST(test_verifier_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
