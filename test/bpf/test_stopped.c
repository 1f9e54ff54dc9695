// SPDX-License-Identifier: Apache-2.0
/*
 * The sampler stands still while processes execute programs, change libraries, fork and recycle a
 * pid, and the kernel's rings are full by then: no event tells of any of this. Afterwards each
 * process has its present program in its samples, and none has the one before.
 */
#include "support/test.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/nsec.h"
#include "procmap/image.h"
#include "support/fixture.h"
#include "support/metrics.h"
#include "support/sampling.h"
#include "support/until.h"

#define RATE	 97
#define ENOUGH	 5 /* samples of a program with its mappings */
/* More executable mappings than records fit into a CPU's ring. */
#define MAPPINGS 8000
#define SHOWN	 20

/* What a process runs, in the order of its names: it has the first until the sampler stands still,
 * and then the second. */
static const struct change {
	const char *name;
	const char *steps[8];
	const char *before;
	const char *after;
} changes[] = {
	{"exec", {"ape", "stay", "exec", "bat", "stay"}, "ape", "bat"},
	{"exec by a thread", {"cat", "stay", "thread", "cow", "stay"}, "cat", "cow"},
	{"exec twice", {"dog", "stay", "exec", "ape", "exec", "bat", "stay"}, "dog", "bat"},
	{"library", {"cat", "swap"}, "plugin_ant", "plugin_bee"},
	{"fork", {"cow", "stay", "fork", "stay"}, "cow", "cow"},
	{"pid", {"bat", "stay"}, "bat", "ape"},
};
#define CHANGES (sizeof(changes) / sizeof(changes[0]))
#define FORK	(CHANGES - 2)
#define PID	(CHANGES - 1)

struct bench {
	struct sampling on;
	pid_t farm;
	int go;			    /* a byte tells the farm to change all */
	int says;		    /* the farm's pids */
	pid_t pids[CHANGES + 1];    /* the last: child of the fork */
	uint64_t n[CHANGES + 1][2]; /* samples with the right program, before and after */
	bool is_after;
	uint64_t wrong;
	uint64_t n_lost; /* events, before the sampler stands still */
};

/* ---------------------------------------------------------------- the processes */

static void become(const char *const *steps)
{
	char path[FIXTURE_PATH_MAX];
	char *argv[9] = {path};

	for (int i = 1; i < 8 && steps[i]; i++)
		argv[i] = (char *)steps[i];
	fixture_path(steps[0], path);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execv(path, argv);
	_exit(127);
}

static pid_t start(const char *const *steps, pid_t pid)
{
	struct clone_args args = {.exit_signal = SIGCHLD,
				  .set_tid = pid ? (uintptr_t)&pid : 0,
				  .set_tid_size = pid != 0};
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (child == 0)
		become(steps);
	return child;
}

static void say_pid(int fd, pid_t pid)
{
	if (pid < 0 || write(fd, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
}

static bool is_stopped(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		_exit(1);
	fclose(f);
	return state == 'T';
}

static void await_name(pid_t pid, const char *name)
{
	char path[64], now[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	while (strcmp(now, name) != 0) {
		f = fopen(path, "re");
		if (!f || fscanf(f, "%15s", now) != 1)
			_exit(1);
		fclose(f);
		usleep(1000);
	}
}

static void fill_ring(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return; /* it is offline */
	for (int i = 0; i < MAPPINGS; i++) {
		void *memory =
			mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			_exit(1);
		munmap(memory, 4096);
	}
}

static pid_t child_of(pid_t pid)
{
	char path[64];
	int child = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	while (!child) {
		f = fopen(path, "re");
		if (!f)
			_exit(1);
		if (fscanf(f, "%d", &child) != 1)
			child = 0;
		fclose(f);
		usleep(1000);
	}
	return child;
}

static void recycle(pid_t pid)
{
	static const char *const steps[8] = {"ape", "stay"};

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (start(steps, pid) != pid)
		_exit(2);
}

static void farm(pid_t sampler, int go, int says)
{
	pid_t pids[CHANGES];
	cpu_set_t all;
	sigset_t set;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; i < CHANGES; i++)
		say_pid(says, pids[i] = start(changes[i].steps, 0));
	if (read(go, &byte, 1) != 1)
		_exit(1);
	sched_getaffinity(0, sizeof(all), &all);
	kill(sampler, SIGSTOP);
	while (!is_stopped(sampler))
		usleep(1000);
	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++)
		fill_ring(cpu);
	sched_setaffinity(0, sizeof(all), &all);
	for (size_t i = 0; i < PID; i++)
		kill(pids[i], SIGUSR1);
	recycle(pids[PID]);
	for (size_t i = 0; i < CHANGES; i++)
		await_name(pids[i], changes[i].after);
	say_pid(says, child_of(pids[FORK]));
	kill(sampler, SIGCONT);
	for (;;)
		pause();
}

/* ---------------------------------------------------------------- samples */

static bool is_program(const char *name)
{
	static const char *const names[] = {"ape", "bat",	 "cat",	      "cow",
					    "dog", "plugin_ant", "plugin_bee"};

	for (size_t i = 0; i < array_size(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* A library is called by a program, whose name the process has no longer. */
static bool fits(const char *comm, const char *name)
{
	return strcmp(comm, name) == 0 ||
	       (strncmp(comm, "plugin_", 7) == 0 && strcmp(name, "cat") == 0);
}

static void judge(struct bench *b, size_t i, const struct sample *sample,
		  const struct cpu_stack *stack)
{
	const struct change *change = &changes[i < CHANGES ? i : FORK];
	bool named = false;

	if (strcmp(sample->comm, change->before) != 0 && strcmp(sample->comm, change->after) != 0)
		return; /* on the way */
	for (size_t k = 0; k < stack->n; k++) {
		const char *name = image_name(stack->frames[k].image);

		if (!is_program(name))
			continue;
		named |= strcmp(name, sample->comm) == 0;
		if (fits(sample->comm, name))
			continue;
		if (b->wrong++ < SHOWN)
			print_message("%s: %s in %s\n", change->name, name, sample->comm);
	}
	if (named)
		b->n[i][b->is_after && strcmp(sample->comm, change->after) == 0] += sample->count;
}

static void take(void *ctx, const struct sample *sample)
{
	struct cpu_stack stack = {.n = 0};
	struct bench *b = ctx;

	for (size_t i = 0; i < array_size(b->pids); i++) {
		if (sample->pid.pid != (uint64_t)b->pids[i] || !sample->n_user)
			continue;
		assert_int_equal(cpu_sampler_resolve(b->on.sampler, sample, &stack), 0);
		judge(b, i, sample, &stack);
		cpu_stack_deinit(&stack);
	}
}

/* The process that forked only waits for its child. */
static bool has_all(void *ctx)
{
	const struct bench *b = ctx;

	for (size_t i = 0; i < CHANGES + b->is_after; i++)
		if (b->n[i][b->is_after] < ENOUGH && !(b->is_after && i == FORK))
			return false;
	return true;
}

/* ---------------------------------------------------------------- the test */

static void read_pid(int fd, pid_t *ret)
{
	assert_int_equal(read(fd, ret, sizeof(*ret)), sizeof(*ret));
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	int go[2], says[2];

	assert_non_null(b);
	*state = b;
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(says, O_CLOEXEC), 0);
	fflush(stdout);
	b->farm = fork();
	if (b->farm == 0)
		farm(getppid(), go[0], says[1]);
	close(go[0]);
	close(says[1]);
	b->go = go[1];
	b->says = says[0];
	for (size_t i = 0; i < CHANGES; i++)
		read_pid(b->says, &b->pids[i]);
	return sampling_open(&b->on);
}

/* Two programs do not end with the farm: one is a child's child, one was executed by a thread. */
static int teardown(void **state)
{
	struct bench *b = *state;

	sampling_close(&b->on);
	for (size_t i = 0; i < array_size(b->pids); i++)
		if (b->pids[i])
			kill(b->pids[i], SIGKILL);
	kill(b->farm, SIGKILL);
	waitpid(b->farm, NULL, 0);
	close(b->go);
	close(b->says);
	free(b);
	return 0;
}

static uint64_t metric(const struct bench *b, const char *family, const char *label)
{
	return metrics_get(cpu_sampler_collect, b->on.sampler, family, label);
}

/* The kernel tells of lost events with the next one. */
static bool has_lost(void *ctx)
{
	const struct bench *b = ctx;
	const pid_t next = fork();

	if (next == 0)
		_exit(0);
	assert_int_equal(waitpid(next, NULL, 0), next);
	return metric(b, "podprof_process_events_lost", "ring_full") > b->n_lost;
}

static void test_stopped(void **state)
{
	struct bench *b = *state;
	sampling_start(&b->on, (struct cpu_sampler_opts){
				       .rate_hz = RATE,
				       .kernel_stacks = true,
				       .interval_ns = 200 * NSEC_PER_MSEC,
				       .fn = take,
				       .ctx = b,
			       });
	loop_until(b->on.loop, has_all, b);
	b->n_lost = metric(b, "podprof_process_events_lost", "ring_full");
	assert_int_equal(write(b->go, "", 1), 1);
	/* the whole process stands still between this and the farm's answer */
	read_pid(b->says, &b->pids[CHANGES]);
	b->is_after = true;
	loop_until(b->on.loop, has_all, b);
	loop_until(b->on.loop, has_lost, b);
	assert_true(metric(b, "podprof_process_event_gaps", "") > 0);
	assert_int_equal(b->wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stopped, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
