// SPDX-License-Identifier: Apache-2.0
/* The agent's whole path of a stack: samples reveal processes, mappings and tables reach the
 * walker, and from then on stacks are complete, through all changes of processes. */
#include "support/test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "procmap/image.h"
#include "shared/stack_dump.h"
#include "support/command.h"
#include "support/fixture.h"
#include "support/metrics.h"
#include "support/sampling.h"
#include "support/until.h"
#include "unwindtable/unwind_publisher.h"

#define RATE	     997
/* Consecutive complete stacks that count as success. */
#define STREAK	     60
/* The same for a young process, which has to stay young, and below the rate of its dumps. */
#define YOUNG_RATE   197
#define YOUNG_STREAK 10

/* Fewer than the libraries of this program, more than those in the stacks of its own code. */
#define LIBRARIES 12

struct bench {
	struct sampling on;
	pid_t child;
	const char *in;	    /* expected name of the innermost user frame's file */
	uint64_t n;	    /* samples of the child */
	uint64_t streak;    /* consecutive complete stacks */
	uint64_t inside;    /* complete stacks in this file */
	uint64_t n_in;	    /* samples in it */
	bool first_whole;   /* the first one's stack */
	uint64_t most_rows; /* of one table */
};

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;
	bool whole;

	assert_int_equal(cpu_sampler_resolve(b->on.sampler, sample, &stack), 0);
	cpu_sampler_settle(b->on.sampler, &stack);
	if ((pid_t)sample->pid.pid == b->child && sample->n_user) {
		const struct image *image = stack.frames[sample->n_kernel].image;

		b->n += sample->count;
		whole = sample->end == SAMPLE_END_COMPLETE && !sample->flags;
		if (strstr(image->path, b->in) && !b->n_in++)
			b->first_whole = whole;
		b->streak = whole ? b->streak + sample->count : 0;
		if (whole && strstr(image->path, b->in))
			b->inside += sample->count;
		if (b->streak && sample->n_rows > b->most_rows)
			b->most_rows = sample->n_rows;
	}
	cpu_stack_deinit(&stack);
}

static bool streak(void *ctx)
{
	struct bench *b = ctx;

	return b->streak >= STREAK && b->inside >= STREAK;
}

static bool young_streak(void *ctx)
{
	struct bench *b = ctx;

	return b->streak >= YOUNG_STREAK && b->inside >= YOUNG_STREAK;
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->in = "";
	*state = b;
	return sampling_open(&b->on);
}

static void end_child(struct bench *b)
{
	if (b->child) {
		kill(b->child, SIGKILL);
		waitpid(b->child, NULL, 0);
	}
	b->child = 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	end_child(b);
	sampling_close(&b->on);
	free(b);
	return 0;
}

static void start_sampler_with(struct bench *b, double rate_hz, bool all_tables)
{
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = rate_hz,
				       .all_tables = all_tables,
				       .kernel_stacks = true,
				       .scope = SETTINGS_SCOPE_PROCESSES,
				       .interval_ns = 100 * NSEC_PER_MSEC,
				       .fn = take,
				       .ctx = b,
			       });
	sampling_want(&b->on, b->child);
}

static void start_sampler(struct bench *b)
{
	start_sampler_with(b, RATE, false);
}

/* ---------------------------------------------------------------- children */

static volatile sig_atomic_t told;

static void on_told(int signo)
{
	(void)signo;
	told = 1;
}

static volatile unsigned int sink;

/* Until the order to continue. */
__attribute__((noinline)) static void spin(void)
{
	while (!told)
		for (unsigned int i = 0; i < 10000; i++)
			sink += i * sink + 1;
	told = 0;
}

static void start_child(struct bench *b, void (*fn)(const struct bench *b))
{
	b->child = fork();
	if (b->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGUSR1, on_told);
		fn(b);
		_exit(0);
	}
	assert_true(b->child > 0);
}

/* Counts what the child does after the call. */
static void go_on(struct bench *b, const char *in)
{
	assert_int_equal(kill(b->child, SIGUSR1), 0);
	b->in = in;
	b->streak = b->inside = 0;
	b->most_rows = 0;
}

static void exec_zoo(const char *fixture)
{
	char path[FIXTURE_PATH_MAX];

	execl(fixture_path(fixture, path), "zoo", "spin", "plain", NULL);
	_exit(127);
}

static void only_zoo(const struct bench *b)
{
	(void)b;
	exec_zoo("zoo-pie");
}

static void spin_then_zoo(const struct bench *b)
{
	(void)b;
	spin();
	exec_zoo("zoo-static");
}

/* A program without frame pointers. */
static void test_whole(void **state)
{
	struct bench *b = *state;

	start_child(b, only_zoo);
	b->in = "zoo-pie";
	start_sampler(b);
	loop_until(b->on.loop, streak, b);
	assert_true(b->most_rows >= 3);
}

/* Another program in the same process, at once and with the same identity but for its exec id. */
static void test_exec(void **state)
{
	struct bench *b = *state;

	start_child(b, spin_then_zoo);
	b->in = "test_unwind_publisher";
	start_sampler(b);
	loop_until(b->on.loop, streak, b);
	go_on(b, "zoo-static");
	loop_until(b->on.loop, streak, b);
}

#define COPY "/tmp/podprof-test-library.so"

/* Calls into a library loaded later, then loaded at another address. Its function is a leaf. */
static void load_later(const struct bench *b)
{
	void *taken = NULL;

	(void)b;
	spin();
	for (;;) {
		void *library = dlopen(COPY, RTLD_NOW | RTLD_LOCAL);
		double (*root)(double) =
			library ? (double (*)(double))dlsym(library, "cbrt") : NULL;

		if (!root)
			_exit(1);
		for (double x = 0; !told; x++)
			sink += (unsigned int)root(x);
		told = 0;
		dlclose(library);
		if (taken)
			continue;
		/* the next load is at another address */
		taken = mmap((void *)((uintptr_t)root & ~0xfffull), 4096, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
}

/* The mathematical library, next to the C library, under another name. */
static void copy_library(void)
{
	char command[512];
	Dl_info info;

	assert_true(dladdr(dlsym(RTLD_DEFAULT, "getppid"), &info) != 0);
	snprintf(command, sizeof(command), "cp $(dirname %s)/libm.so.6 " COPY, info.dli_fname);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c,bugprone-command-processor)
}

static void test_load_later(void **state)
{
	struct bench *b = *state;

	copy_library();
	start_child(b, load_later);
	b->in = "test_unwind_publisher";
	start_sampler(b);
	loop_until(b->on.loop, streak, b);
	go_on(b, COPY);
	loop_until(b->on.loop, streak, b);
	go_on(b, COPY);
	loop_until(b->on.loop, streak, b);
	unlink(COPY);
}

/* A young process enters a library that is not in its record yet: also the first stack is whole. */
static void test_load_young(void **state)
{
	struct bench *b = *state;

	copy_library();
	start_child(b, load_later);
	b->in = "test_unwind_publisher";
	start_sampler_with(b, YOUNG_RATE, false);
	loop_until(b->on.loop, young_streak, b);
	b->n_in = 0;
	go_on(b, COPY);
	loop_until(b->on.loop, young_streak, b);
	assert_true(b->first_whole);
	unlink(COPY);
}

static void *thread_spins(void *arg)
{
	(void)arg;
	spin();
	return NULL;
}

static void leader_dies(const struct bench *b)
{
	pthread_t thread;

	(void)b;
	spin();
	if (pthread_create(&thread, NULL, thread_spins, NULL))
		_exit(1);
	pthread_exit(NULL);
}

/* The thread group continues without its leader. */
static void test_dead_leader(void **state)
{
	struct bench *b = *state;

	start_child(b, leader_dies);
	b->in = "test_unwind_publisher";
	start_sampler(b);
	loop_until(b->on.loop, streak, b);
	go_on(b, "test_unwind_publisher");
	loop_until(b->on.loop, streak, b);
}

static uint64_t known(struct bench *b)
{
	return metrics_get(cpu_sampler_collect, b->on.sampler, "podprof_unwind_entries",
			   "processes");
}

static bool forgotten(void *ctx)
{
	struct bench *b = ctx;

	return known(b) == 0;
}

/* An exited process leaves the walker's table. */
static void test_exit(void **state)
{
	struct bench *b = *state;

	start_child(b, only_zoo);
	b->in = "zoo-pie";
	start_sampler(b);
	loop_until(b->on.loop, streak, b);
	assert_int_equal(known(b), 1); /* nobody else is sampled */
	end_child(b);
	loop_until(b->on.loop, forgotten, b);
	cpu_sampler_sweep(b->on.sampler);
	cpu_sampler_finish(b->on.sampler);
}

static uint64_t n_loaded(struct bench *b)
{
	return metrics_get(cpu_sampler_collect, b->on.sampler, "podprof_unwind_table_changes",
			   "loaded");
}

static bool all_loaded(void *ctx)
{
	return n_loaded(ctx) >= LIBRARIES;
}

static bool two_loaded(void *ctx)
{
	return n_loaded(ctx) >= 2; /* of the program and of main()'s caller */
}

static void only_spin(const struct bench *b)
{
	(void)b;
	spin();
}

/* A program that runs in its own code has the tables of its libraries, if these are requested. */
static void test_all_tables(void **state)
{
	struct bench *b = *state;

	start_child(b, only_spin);
	start_sampler_with(b, RATE, true);
	loop_until(b->on.loop, all_loaded, b);
	cpu_sampler_finish(b->on.sampler);
	sampling_close(&b->on);
	assert_int_equal(sampling_open(&b->on), 0);
	start_sampler(b);
	loop_until(b->on.loop, two_loaded, b);
	assert_true(n_loaded(b) < LIBRARIES);
	cpu_sampler_finish(b->on.sampler);
}

/* Files that are mapped and never run. */
static const char *const unused[] = {"zoo-static", "zoo-pie", "work-static"};

static bool all_ahead(void *ctx)
{
	return n_loaded(ctx) >= 2 + array_size(unused); /* and the program, and main()'s caller */
}

/* From the second page on: the first one has no code. */
static void map_unused(const char *fixture)
{
	char path[FIXTURE_PATH_MAX];
	const int fd = open(fixture_path(fixture, path), O_RDONLY | O_CLOEXEC);

	if (mmap(NULL, UNWIND_PUBLISHER_AHEAD_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
		 4096) == MAP_FAILED)
		_exit(1);
}

/* A frame of several dumps. */
__attribute__((noinline)) static void spin_below(void)
{
	char room[4 * STACK_DUMP_BYTES];

	memset(room, 1, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	spin();
	__asm__ volatile("" : : "r"(room) : "memory");
}

static void spin_deep(const struct bench *b)
{
	(void)b;
	for (size_t i = 0; i < array_size(unused); i++)
		map_unused(unused[i]);
	spin_below();
}

/* After a stack that is larger than its dump, a process's large files have tables ahead of their
 * samples. */
static void test_ahead(void **state)
{
	struct bench *b = *state;

	start_child(b, spin_deep);
	start_sampler(b);
	loop_until(b->on.loop, all_ahead, b);
	cpu_sampler_finish(b->on.sampler);
}

static void inspect(const struct bench *b, const char *more, struct command_run *ret)
{
	char line[80];

	snprintf(line, sizeof(line), "inspect unwind --pid %d %s", (int)b->child, more);
	command_run(line, ret);
	assert_int_equal(ret->status, 0);
}

/* 'inspect unwind --pid' shows this walker's data: the table, the frames seen there, and a row at
 * every address of the program. */
static void test_inspected(void **state)
{
	unsigned long long start, limit, bias, table_start, table_limit, frames;
	struct bench *b = *state;
	struct command_run r;
	const char *line;
	unsigned int image;
	char more[40];

	start_child(b, only_zoo);
	b->in = "zoo-pie";
	start_sampler(b);
	loop_until(b->on.loop, streak, b);
	inspect(b, "", &r);
	assert_non_null(strstr(r.out.data, "read from the kernel's walker\n"));
	line = strstr(r.out.data, "/zoo-pie\n");
	assert_non_null(line);
	while (line[-1] != '\n')
		line--;
	// NOLINTNEXTLINE(cert-err34-c): our own numbers
	assert_int_equal(sscanf(line, "%llx %llx %llx %u %llx-%llx %llu", &start, &limit, &bias,
				&image, &table_start, &table_limit, &frames),
			 7);
	assert_true(image > 0 && frames >= STREAK);
	assert_true(start < limit && table_start + bias < limit && table_limit + bias > start);
	command_run_deinit(&r);
	snprintf(more, sizeof(more), "--json --lookup %llx", bias + table_start);
	inspect(b, more, &r);
	assert_non_null(strstr(r.out.data, "\"source\":\"kernel\""));
	assert_non_null(strstr(r.out.data, "\"rule\":\"cfa="));
	command_run_deinit(&r);
	end_child(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_whole),	TEST(test_exec),  TEST(test_load_later),
		TEST(test_dead_leader), TEST(test_exit),  TEST(test_inspected),
		TEST(test_all_tables),	TEST(test_ahead), TEST(test_load_young),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
