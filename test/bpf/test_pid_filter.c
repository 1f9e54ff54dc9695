// SPDX-License-Identifier: Apache-2.0
/* Samples of some processes alone, and by events other than the clock, in the real kernel. */
#include "support/test.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/nsec.h"
#include "base/root.h"
#include "profile/cgroup_sampling.h"
#include "profile/event.h"
#include "profile/oncpu.h"
#include "profile/pid_filter.h"
#include "shared/pid_filter.h"
#include "shared/sample.h"
#include "support/burn.h"

#define RATE 997

/* A sampler, and the number of samples of each process. */
struct bench {
	struct root proc, sys;
	struct oncpu *oc;
	pid_t one, other;
	struct pid_id reused; /* with samples of its own */
	uint64_t n_reused;
	uint64_t n_one, n_other, n_else;
	pid_t children[64]; /* other sampled processes */
	size_t n_children;
};

static struct bench bench;

static void note_child(struct bench *b, pid_t pid)
{
	for (size_t i = 0; i < b->n_children; i++)
		if (b->children[i] == pid)
			return;
	if (b->n_children < array_size(b->children))
		b->children[b->n_children++] = pid;
}

static void take(void *ctx, const struct sample *s)
{
	struct bench *b = ctx;

	if (pid_id_equal(&s->pid, &b->reused))
		b->n_reused += s->count;
	if (s->pid.pid == (uint64_t)b->one)
		b->n_one += s->count;
	else if (s->pid.pid == (uint64_t)b->other)
		b->n_other += s->count;
	else
		b->n_else += s->count;
	note_child(b, (pid_t)s->pid.pid);
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

	if (b->one > 0)
		burn_end(b->one);
	if (b->other > 0)
		burn_end(b->other);
	oncpu_free(b->oc);
	root_deinit(&b->proc);
	root_deinit(&b->sys);
	return 0;
}

static void start(struct bench *b, enum settings_scope scope, const struct event *event,
		  uint64_t period)
{
	const struct oncpu_opts opts = {
		.rate_hz = RATE,
		.event = event,
		.period = period,
		.scope = scope,
		.kernel_stacks = true,
		.proc = &b->proc,
		.sys = &b->sys,
	};
	struct bpfobj_why why = {""};

	if (oncpu_new(&opts, &why, &b->oc))
		fail_msg("no sampler: %s", why.text);
}

static void start_burning(struct bench *b)
{
	b->one = burn_start(BURN_USER);
	b->other = burn_start(BURN_USER);
	assert_true(b->one > 0 && b->other > 0);
	burn_go(b->one);
	burn_go(b->other);
}

/* Until the process has had so much of a CPU, however busy the machine is. */
static void wait_cpu(pid_t pid, uint64_t cpu_ns)
{
	clockid_t clock;
	uint64_t until;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	until = nsec_read(clock) + cpu_ns;
	while (nsec_read(clock) < until)
		usleep(10000);
}

static uint64_t stat_of(const struct bench *b, enum sample_stat stat)
{
	uint64_t stats[SAMPLE_STAT_MAX];

	assert_int_equal(oncpu_stats(b->oc, stats, SAMPLE_STAT_MAX), 0);
	return stats[stat];
}

/* ---------------------------------------------------------------- processes */

static void test_nobody(void **state)
{
	struct bench *b = *state;

	start_burning(b);
	start(b, SETTINGS_SCOPE_PROCESSES, NULL, 0);
	wait_cpu(b->one, NSEC_PER_SEC / 10);
	assert_int_equal(oncpu_finish(b->oc, take, b), 0);
	assert_int_equal(b->n_one + b->n_other + b->n_else, 0);
	assert_true(stat_of(b, SAMPLE_STAT_FILTERED) > 0);
	assert_int_equal(pid_filter_sweep(oncpu_pid_filter(b->oc)), 0);
}

static void test_one_of_two(void **state)
{
	struct bench *b = *state;

	start_burning(b);
	start(b, SETTINGS_SCOPE_PROCESSES, NULL, 0);
	assert_int_equal(pid_filter_add(oncpu_pid_filter(b->oc), b->one), 0);
	assert_int_equal(pid_filter_add(oncpu_pid_filter(b->oc), b->one), 0); /* twice is once */
	assert_int_equal(pid_filter_sweep(oncpu_pid_filter(b->oc)), 1);
	wait_cpu(b->one, NSEC_PER_SEC / 5);
	assert_int_equal(oncpu_finish(b->oc, take, b), 0);
	assert_true(b->n_one > 0);
	assert_int_equal(b->n_other + b->n_else, 0);
}

static void burn_briefly(void)
{
	const uint64_t until = nsec_read(CLOCK_PROCESS_CPUTIME_ID) + 10 * NSEC_PER_MSEC;

	while (nsec_read(CLOCK_PROCESS_CPUTIME_ID) < until)
		continue;
}

#define CHILDREN 20

/* Waits for a byte. Then makes children one after the other; each child makes a burning grandchild,
 * waits for its end, and ends. */
static pid_t start_forking(int *ret_go)
{
	int pipe_fds[2];
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	pid = fork();
	if (pid == 0) {
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(pipe_fds[0], &byte, 1) != 1)
			_exit(1);
		for (int i = 0; i < CHILDREN; i++) {
			if (fork() == 0) {
				if (fork() == 0)
					burn_briefly();
				wait(NULL);
				_exit(0);
			}
			wait(NULL);
		}
		_exit(0);
	}
	close(pipe_fds[0]);
	*ret_go = pipe_fds[1];
	return pid;
}

/* No grandchild is missed, although each lives for 10 ms only; ended processes leave the table. */
static void test_descendants(void **state)
{
	struct bench *b = *state;
	int go, status;
	pid_t pid;

	start_burning(b);
	pid = start_forking(&go);
	start(b, SETTINGS_SCOPE_PROCESSES, NULL, 0);
	assert_int_equal(pid_filter_add(oncpu_pid_filter(b->oc), pid), 0);
	assert_int_equal(write(go, "g", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(go);
	assert_int_equal(status, 0);
	assert_int_equal(pid_filter_sweep(oncpu_pid_filter(b->oc)), 0); /* nobody lives */
	assert_int_equal(pid_filter_sweep(oncpu_pid_filter(b->oc)), 0);
	assert_int_equal(pid_filter_n_refused(oncpu_pid_filter(b->oc)), 0);
	assert_int_equal(oncpu_finish(b->oc, take, b), 0);
	assert_int_equal(b->n_one + b->n_other, 0);
	print_message("%ju samples of %zu processes\n", (uintmax_t)b->n_else, b->n_children);
	assert_true(b->n_children >= CHILDREN);
}

/* A full table reports so, and has room again after some processes have ended. */
static void test_full(void **state)
{
	struct bench *b = *state;
	struct pid_filter *set;
	int go, status;
	pid_t pid;

	pid = start_forking(&go);
	start(b, SETTINGS_SCOPE_PROCESSES, NULL, 0);
	set = oncpu_pid_filter(b->oc);
	assert_int_equal(pid_filter_add(set, pid), 0);
	for (int i = 1; i < PID_FILTER_ENTRIES; i++) /* unused pids */
		assert_int_equal(pid_filter_add(set, 10000000 + i), 0);
	assert_int_equal(pid_filter_add(set, 9999999), -E2BIG);
	assert_int_equal(write(go, "g", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(go);
	assert_int_equal(pid_filter_n_refused(set), CHILDREN);
	assert_int_equal(pid_filter_sweep(set), PID_FILTER_ENTRIES - 1);
	assert_int_equal(pid_filter_sweep(set), PID_FILTER_ENTRIES - 1);
	assert_int_equal(pid_filter_add(set, 9999999), 0);
}

enum behaviour { IDLES, BURNS, FORKS };

/* A child with this pid, which burns, or a child of it; 0: any pid. -errno without the right to
 * choose. */
static pid_t start_as(pid_t pid, enum behaviour behaviour)
{
	struct clone_args args = {.exit_signal = SIGCHLD,
				  .set_tid = pid ? (uintptr_t)&pid : 0,
				  .set_tid_size = pid != 0};
	const long child = syscall(SYS_clone3, &args, sizeof(args));

	if (child < 0)
		return -errno;
	if (child == 0) {
		bool burns = behaviour == BURNS || (behaviour == FORKS && fork() == 0);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			if (!burns)
				pause();
	}
	return (pid_t)child;
}

/* The pid of an ended process is soon another's. */
static void reuse(struct bench *b, enum behaviour behaviour)
{
	const struct timespec tick = {.tv_nsec = 20 * NSEC_PER_MSEC};
	pid_t pid = start_as(0, IDLES);

	assert_true(pid > 0);
	start(b, SETTINGS_SCOPE_PROCESSES, NULL, 0);
	assert_int_equal(pid_filter_add(oncpu_pid_filter(b->oc), pid), 0);
	burn_end(pid);
	nanosleep(&tick, NULL); /* another start time */
	b->one = start_as(pid, behaviour);
	if (b->one == -EPERM || b->one == -EINVAL) {
		b->one = 0;
		print_message("no right to choose a pid, or its namespace is another\n");
		skip();
	}
	assert_int_equal(b->one, pid);
}

/* The process is not sampled. */
static void test_reused(void **state)
{
	struct bench *b = *state;

	reuse(b, BURNS);
	assert_int_equal(pid_read(&b->proc, b->one, &b->reused), 0);
	wait_cpu(b->one, NSEC_PER_SEC / 5);
	assert_int_equal(oncpu_finish(b->oc, take, b), 0);
	assert_int_equal(b->n_reused, 0);
	assert_true(stat_of(b, SAMPLE_STAT_FILTERED) > 0);
}

/* Its children are none of a sampled process. */
static void test_reused_forks(void **state)
{
	struct bench *b = *state;
	char path[64];
	pid_t child = 0;

	reuse(b, FORKS);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)b->one, (int)b->one);
	while (!child) {
		FILE *f = fopen(path, "re");

		assert_non_null(f);
		if (fscanf(f, "%d", &child) != 1)
			child = 0;
		fclose(f);
	}
	wait_cpu(child, NSEC_PER_SEC / 5);
	assert_int_equal(oncpu_finish(b->oc, take, b), 0);
	for (size_t i = 0; i < b->n_children; i++)
		assert_int_not_equal(b->children[i], child);
	assert_true(stat_of(b, SAMPLE_STAT_FILTERED) > 0);
}

/* ---------------------------------------------------------------- cgroups */

/* In any hierarchy of this machine that allows moving a process. */
static void test_cgroup(void **state)
{
	const char *root = access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0
				   ? "/sys/fs/cgroup/unified"
				   : "/sys/fs/cgroup";
	struct bench *b = *state;
	char dir[128], file[160];
	FILE *procs;
	struct stat st;

	start_burning(b);
	snprintf(dir, sizeof(dir), "%s/podprof-wanted-%d", root, getpid());
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(stat(dir, &st), 0);
	snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
	procs = fopen(file, "we");
	assert_non_null(procs);
	assert_true(fprintf(procs, "%d\n", b->one) > 0);
	assert_int_equal(fclose(procs), 0);
	start(b, SETTINGS_SCOPE_CGROUPS, NULL, 0);
	assert_int_equal(
		cgroup_sampling_set(oncpu_cgroup_sampling(b->oc), HIERARCHY_V2, st.st_ino, 1, 1),
		0);
	wait_cpu(b->one, NSEC_PER_SEC / 5);
	assert_int_equal(oncpu_finish(b->oc, take, b), 0);
	burn_end(b->one);
	rmdir(dir);
	assert_true(b->n_one > 0);
	assert_int_equal(b->n_other + b->n_else, 0);
	b->one = 0;
}

/* ---------------------------------------------------------------- events */

#define FAULTS 1000

/* Each fault, no more and no less. */
static void test_page_faults(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = FAULTS * page;
	struct bench *b = *state;
	volatile char *memory;

	start(b, SETTINGS_SCOPE_PROCESSES, event_find("page-faults"), 1);
	assert_int_equal(oncpu_period(b->oc), 1);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	assert_int_equal(madvise((void *)memory, bytes, MADV_NOHUGEPAGE), 0);
	b->one = getpid();
	assert_int_equal(pid_filter_add(oncpu_pid_filter(b->oc), b->one), 0);
	for (size_t i = 0; i < bytes; i += page)
		memory[i] = 1;
	b->one = 0;
	assert_int_equal(oncpu_finish(b->oc, take, b), 0);
	munmap((void *)memory, bytes);
	print_message("%ju faults\n", (uintmax_t)b->n_else);
	assert_in_range(b->n_else, FAULTS, 2 * FAULTS);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(event_find("faults")->name, "page-faults");
	assert_ptr_equal(event_find("cpu-clock"), event_clock());
	assert_null(event_find("nonsense"));
	assert_null(event_find(""));
	for (size_t i = 0; i < n_events; i++) {
		row_begin(events[i].name);
		assert_ptr_equal(event_find(events[i].name), &events[i]);
		assert_true(events[i].clock == !events[i].period);
		/* the kernel's own are everywhere; counters are not */
		if (!events[i].hardware)
			assert_int_equal(event_probe(&events[i]), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nobody), TEST(test_one_of_two),  TEST(test_descendants),
		TEST(test_full),   TEST(test_reused),	   TEST(test_reused_forks),
		TEST(test_cgroup), TEST(test_page_faults), TEST(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
