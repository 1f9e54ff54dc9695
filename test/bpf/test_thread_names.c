// SPDX-License-Identifier: Apache-2.0
/* Names of threads on samples, in the real kernel: on the CPU, off the CPU and in stack dumps; and
 * a process that changes its names at full speed. */
#include "support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/nsec.h"
#include "base/root.h"
#include "base/vec.h"
#include "profile/offcpu.h"
#include "profile/oncpu.h"
#include "profile/pid_filter.h"
#include "profile/stack_dump.h"
#include "profile/stacks.h"
#include "shared/sample.h"

/* A prime, and high enough for many samples in a second of CPU time. */
#define RATE 997

#define CHILDREN 2

/* Hide the function body from callers. */
#ifdef __clang__
#define NOIPA __attribute__((noinline, optnone))
#else
#define NOIPA __attribute__((noipa))
#endif

/* A thread of a child: its names one after the other, and what it does then. */
struct thread_row {
	const char *names[2];
	void (*fn)(void);
};

struct count {
	char name[PID_COMM_MAX];
	uint64_t n;
};

struct bench {
	struct root proc, sys;
	struct oncpu *oc;
	struct offcpu *off;
	struct stack_dumps *dumps;
	pid_t children[CHILDREN];
	/* of the samples of a child, by name */
	struct count *counts[CHILDREN];
	size_t n[CHILDREN], cap[CHILDREN];
	uint64_t mixed_up; /* with the function of another thread */
};

static struct bench bench;

/* ---------------------------------------------------------------- threads */

static NOIPA __attribute__((section("alpha"))) void burn_alpha(void)
{
	for (volatile unsigned int i = 0;; i++)
		;
}

static NOIPA __attribute__((section("beta"))) void burn_beta(void)
{
	for (volatile unsigned int i = 0;; i++)
		;
}

extern const char __start_alpha[], __stop_alpha[], __start_beta[], __stop_beta[];

static void sleep_often(void)
{
	const struct timespec t = {.tv_nsec = 1000000};

	for (;;)
		syscall(SYS_nanosleep, &t, NULL);
}

static void rename_often(void)
{
	char name[PID_COMM_MAX];

	for (unsigned int i = 0;; i++) {
		snprintf(name, sizeof(name), "%x-%x", (unsigned int)gettid() & 0xfff, i);
		prctl(PR_SET_NAME, name);
	}
}

static void *thread_main(void *arg)
{
	const struct thread_row *row = arg;

	for (size_t i = 0; i < array_size(row->names) && row->names[i]; i++)
		prctl(PR_SET_NAME, row->names[i]);
	row->fn();
	return NULL;
}

static void start_child(struct bench *b, size_t i, const struct thread_row *rows, size_t n)
{
	pthread_t thread;

	b->children[i] = fork();
	assert_true(b->children[i] >= 0);
	if (b->children[i])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t k = 0; k < n; k++)
		if (pthread_create(&thread, NULL, thread_main, (void *)(uintptr_t)&rows[k]))
			_exit(1);
	for (;;)
		pause();
}

/* Wait for so much more CPU time of a child, however busy the machine is. */
static void wait_cpu(const struct bench *b, size_t i, uint64_t ns)
{
	clockid_t clock;
	uint64_t until;

	assert_int_equal(clock_getcpuclockid(b->children[i], &clock), 0);
	until = nsec_read(clock) + ns;
	while (nsec_read(clock) < until)
		usleep(1000);
}

/* ---------------------------------------------------------------- samples */

static struct count *count_of(struct bench *b, size_t i, const char *name)
{
	for (size_t k = 0; k < b->n[i]; k++)
		if (strcmp(b->counts[i][k].name, name) == 0)
			return &b->counts[i][k];
	assert_int_equal(
		vec_grow(&b->counts[i], &b->cap[i], b->n[i] + 1, sizeof(struct count), 100000), 0);
	snprintf(b->counts[i][b->n[i]].name, sizeof(b->counts[i]->name), "%s", name);
	b->counts[i][b->n[i]].n = 0;
	return &b->counts[i][b->n[i]++];
}

static bool is_in(const struct sample *s, const char *start, const char *stop)
{
	return s->n_user && s->user[0] >= (uintptr_t)start && s->user[0] < (uintptr_t)stop;
}

static void take(void *ctx, const struct sample *s)
{
	struct bench *b = ctx;

	for (size_t i = 0; i < CHILDREN; i++)
		if (s->pid.pid == (uint64_t)b->children[i])
			count_of(b, i, s->thread)->n += s->count;
	if ((is_in(s, __start_alpha, __stop_alpha) && strcmp(s->thread, "beta") == 0) ||
	    (is_in(s, __start_beta, __stop_beta) && strcmp(s->thread, "alpha") == 0))
		b->mixed_up += s->count;
}

static void take_dump(void *ctx, struct stack_dump_copy *copy)
{
	struct stack_dump dump;

	assert_int_equal(stack_dump_decode(copy->record, copy->size, &dump), STACK_DUMP_OK);
	take(ctx, &dump.sample);
	free(copy);
}

static void forget(struct bench *b)
{
	for (size_t i = 0; i < CHILDREN; i++)
		b->n[i] = 0;
}

/* One whole drain. */
static void drain(struct bench *b)
{
	do {
		assert_int_equal(oncpu_tick(b->oc, take, b), 0);
		usleep(1000);
	} while (oncpu_interval_ns(b->oc) <= 10 * NSEC_PER_MSEC);
	if (b->off)
		assert_int_equal(offcpu_tick(b->off, take, b), 0);
	if (b->dumps)
		assert_int_equal(stack_dumps_drain(b->dumps, take_dump, b), 0);
}

static uint64_t lost_full(const struct bench *b)
{
	uint64_t stats[SAMPLE_STAT_MAX];

	assert_int_equal(oncpu_stats(b->oc, stats, SAMPLE_STAT_MAX), 0);
	return stats[SAMPLE_STAT_LOST_FULL];
}

/* Drain until the child 0 has each of the names. */
static void expect(struct bench *b, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		row_begin(names[i]);
		while (!count_of(b, 0, names[i])->n)
			drain(b);
	}
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

	for (size_t i = 0; i < CHILDREN; i++) {
		if (b->children[i] > 0) {
			kill(b->children[i], SIGKILL);
			waitpid(b->children[i], NULL, 0);
		}
		free(b->counts[i]);
	}
	stack_dumps_free(b->dumps);
	offcpu_free(b->off);
	oncpu_free(b->oc);
	root_deinit(&b->proc);
	root_deinit(&b->sys);
	return 0;
}

static struct oncpu_opts usual(struct bench *b)
{
	return (struct oncpu_opts){.rate_hz = RATE,
				   .scope = SETTINGS_SCOPE_PROCESSES,
				   .thread_names = true,
				   .proc = &b->proc,
				   .sys = &b->sys};
}

/* Other processes would fill the maps of a busy machine. */
static void select_children(struct bench *b)
{
	for (size_t i = 0; i < CHILDREN; i++)
		if (b->children[i])
			assert_int_equal(pid_filter_add(oncpu_pid_filter(b->oc), b->children[i]),
					 0);
}

static void sample_with(struct bench *b, const struct oncpu_opts *opts)
{
	struct bpfobj_why why = {""};

	if (oncpu_new(opts, &why, &b->oc))
		fail_msg("no sampler: %s", why.text);
	select_children(b);
}

/* ---------------------------------------------------------------- names */

static const struct thread_row threads[] = {
	{{"alpha"}, burn_alpha},
	{{"beta"}, burn_beta},
	{{"fifteen-bytes-x"}, burn_alpha},
	{{"sixteen-bytes-xy"}, burn_beta},
	{{"a-longer-name", "x"}, burn_alpha},
	{{"\xff\xfe"}, burn_beta},
	{{""}, burn_alpha},
};

static const char *const names[] = {
	"alpha", "beta", "fifteen-bytes-x", "sixteen-bytes-x", "x", "\xff\xfe", "",
};

/* Names before a thread has its own: the program's. */
static bool is_expected(const char *name)
{
	char own[PID_COMM_MAX] = "";

	prctl(PR_GET_NAME, own);
	for (size_t i = 0; i < array_size(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strcmp(name, own) == 0 || strcmp(name, "a-longer-name") == 0;
}

static void check_names(struct bench *b)
{
	expect(b, names, array_size(names));
	for (size_t k = 0; k < b->n[0]; k++) {
		row_begin(b->counts[0][k].name);
		assert_true(is_expected(b->counts[0][k].name));
	}
	assert_int_equal(b->mixed_up, 0);
}

static void test_on_cpu(void **state)
{
	struct bench *b = *state;
	const struct oncpu_opts opts = usual(b);

	start_child(b, 0, threads, array_size(threads));
	sample_with(b, &opts);
	check_names(b);
}

/* The kernel knows no process here, so all stacks go through the ring. */
static void test_dumps(void **state)
{
	struct bench *b = *state;
	struct oncpu_opts opts = usual(b);
	struct bpfobj_stack_dumps maps;

	opts.stack_dumps = true;
	start_child(b, 0, threads, array_size(threads));
	sample_with(b, &opts);
	maps = oncpu_stack_dumps(b->oc);
	assert_int_equal(stack_dumps_new(&maps, &b->dumps), 0);
	check_names(b);
}

static void test_off_cpu(void **state)
{
	static const struct thread_row rows[] = {{{"sleeper-a"}, sleep_often},
						 {{"sleeper-b"}, sleep_often}};
	const char *const expected[] = {"sleeper-a", "sleeper-b"};
	struct bench *b = *state;
	struct oncpu_opts opts = usual(b);
	struct bpfobj_why why = {""};

	opts.rate_hz = 1; /* the other samples are of no use */
	opts.offcpu = true;
	start_child(b, 0, rows, array_size(rows));
	sample_with(b, &opts);
	assert_int_equal(offcpu_new(oncpu_object(b->oc), 1, OFFCPU_STACKS_MAX, &why, &b->off), 0);
	expect(b, expected, array_size(expected));
}

static void test_not_requested(void **state)
{
	struct bench *b = *state;
	struct oncpu_opts opts = usual(b);

	opts.thread_names = false;
	start_child(b, 0, threads, array_size(threads));
	sample_with(b, &opts);
	wait_cpu(b, 0, NSEC_PER_SEC / 4);
	drain(b);
	assert_int_equal(b->n[0], 1);
	assert_string_equal(b->counts[0][0].name, "");
	assert_true(b->counts[0][0].n > 0);
}

/* ---------------------------------------------------------------- too many names */

/* After 1.5 s of CPU time with new names at all times: without the limit, 1,500 names. */
static void check_limit(struct bench *b)
{
	size_t n_names;

	forget(b);
	wait_cpu(b, 1, 3 * NSEC_PER_SEC / 2);
	drain(b);
	assert_true(count_of(b, 1, SAMPLE_OTHER_THREAD)->n > 0);
	n_names = b->n[1] - 1;
	print_message("%zu names, %ju samples of others\n", n_names,
		      (uintmax_t)count_of(b, 1, SAMPLE_OTHER_THREAD)->n);
	/* at once on several CPUs, a few more */
	assert_in_range(n_names, SAMPLE_NAMES_MAX / 2, SAMPLE_NAMES_MAX + oncpu_n_cpus(b->oc));
}

/* Its neighbour keeps names and room, and the next drain has other names. */
static void test_limit(void **state)
{
	static const struct thread_row hostile[] = {{{"h1"}, rename_often},
						    {{"h2"}, rename_often},
						    {{"h3"}, rename_often},
						    {{"h4"}, rename_often}};
	struct bench *b = *state;
	const struct oncpu_opts opts = usual(b);

	start_child(b, 1, hostile, array_size(hostile));
	sample_with(b, &opts);
	check_limit(b);
	start_child(b, 0, threads, array_size(threads));
	select_children(b);
	check_limit(b);
	check_names(b);
	assert_int_equal(count_of(b, 0, SAMPLE_OTHER_THREAD)->n, 0);
	assert_int_equal(lost_full(b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_on_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dumps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_off_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_requested, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
